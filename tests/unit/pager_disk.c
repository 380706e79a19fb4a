// SPDX-License-Identifier: Apache-2.0
//
// Pinned memory for two pages and a file below it: whatever the disk does, a page comes
// back as it was or the need of it fails, and nothing is lost or left behind.
#include "pager/pager.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "fake_cuda.h"
#include "fake_file.h"
#include "framework.h"
#include "pager/jobs.h"
#include "pager/state.h"

enum { BYTES = 3 * 4096 + 20, PINNED = 2, PAGES = 7 };

static void start(void)
{
    framework_start();
    framework_use_disk(PINNED * BYTES);
    fake_file_reset();
}

TestSuite(pager_disk, .init = start, .timeout = 60);

static void put_in(const char *folder_and_size, uint64_t bytes)
{
    as_pager_destroy(fw.pager);
    fw.settings.disk = folder_and_size;
    fw.settings.disk_folder_bytes =
        (size_t)(strrchr(folder_and_size, ':') - folder_and_size);
    fw.settings.disk_bytes = bytes;
    fw.pager = as_pager_create(&fw.settings, fw.ledger);
    as_pager_attach(fw.pager, &fw.verbs, NULL);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
}

// One step's pages; those that the pager did not take stay ours.
struct step {
    struct actswap_page *pages[PAGES];
    struct storage *kept[PAGES];
    int reasons[PAGES];
};

static void save_one(struct step *step, int i)
{
    struct storage *storage = storage_create(BYTES, NULL);
    fake_fill(NULL, storage->address, i + 1, BYTES);
    enter((uint64_t)i);
    step->reasons[i] = save(storage, NULL, &step->pages[i]);
    if (step->reasons[i])
        step->kept[i] = storage;
    else
        storage_drop(storage);
    leave((uint64_t)i, NULL);
}

static void forward(struct step *step)
{
    *step = (struct step){0};
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    for (int i = 0; i < PAGES; i++)
        save_one(step, i);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
}

static bool is_whole(const unsigned char *address, int i)
{
    bool whole = true;
    for (size_t at = 0; at < BYTES; at++)
        whole = whole && address[at] == i + 1;
    return whole;
}

// Returns what need did; bytes that come back are right.
static int need_one(const struct step *step, int i)
{
    if (step->reasons[i]) {
        cr_expect(is_whole(step->kept[i]->address, i));
        return 0;
    }
    struct actswap_resident back = {.size = sizeof(back)};
    const int err = as_pager_need(fw.pager, step->pages[i], NULL, &back);
    fake_finish();
    cr_expect(err || is_whole(back.address, i), "page %d", i);
    return err;
}

static void drop_one(struct step *step, int i)
{
    as_pager_drop(fw.pager, step->pages[i]);
    if (step->kept[i])
        storage_drop(step->kept[i]);
}

// What of them was lost.
static int backward(struct step *step)
{
    int lost = 0;
    for (int i = PAGES - 1; i >= 0; i--) {
        const int err = need_one(step, i);
        cr_expect(!err || err == -EIO);
        lost += err != 0;
        drop_one(step, i);
    }
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
    as_pager_mark(fw.pager, ACTSWAP_STEP);
    return lost;
}

static void expect_nothing_left(void)
{
    cr_expect_eq(fw.held, 0);
    cr_expect_eq(totals().pages, 0);
    cr_expect_leq(totals().pinned_peak_bytes, PINNED * BYTES);
    as_pager_destroy(fw.pager);
}

Test(pager_disk, pages_that_pinned_memory_has_no_room_for_go_on_to_the_disk)
{
    struct step step;
    for (int n = 0; n < 3; n++) {
        forward(&step);
        cr_expect_eq(fw.held, 0, "all were let go");
        cr_expect_eq(backward(&step), 0);
    }

    const struct as_pager_totals now = totals();
    cr_expect_eq(now.out_bytes, 3 * PAGES * BYTES);
    cr_expect_geq(now.disk.out_bytes, 3 * (PAGES - PINNED) * BYTES);
    cr_expect_geq(now.disk.in_bytes, 3 * (PAGES - PINNED) * BYTES);
    cr_expect_leq(now.disk.out_bytes, 3 * PAGES * BYTES);
    cr_expect_leq(now.disk.in_bytes, 3 * PAGES * BYTES, "none was read twice");
    cr_expect_leq(now.disk.peak_bytes, PAGES * (BYTES + 4096));
    cr_expect_eq(now.disk.bytes, 0);
    cr_expect_eq(now.kept[ACTSWAP_KEPT_HOST_FULL] + now.kept[ACTSWAP_KEPT_DISK], 0);
    cr_expect_str_empty(now.disk.problem);
    expect_nothing_left();
}

Test(pager_disk, in_any_order_of_use)
{
    static const int order[PAGES] = {0, 3, 6, 1, 5, 2, 4};
    struct step step;
    forward(&step);

    for (int i = 0; i < PAGES; i++)
        cr_expect_eq(need_one(&step, order[i]), 0);
    for (int i = 0; i < PAGES; i++)
        drop_one(&step, i);
    expect_nothing_left();
}

// Reading ahead in the reverse of saving would read what is in the way again and again.
Test(pager_disk, the_second_step_reads_ahead_in_the_order_of_the_first)
{
    uint64_t before = 0;
    for (int n = 0; n < 3; n++) {
        struct step step;
        forward(&step);
        before = totals().disk.in_bytes;
        for (int i = 0; i < PAGES; i++) {
            cr_expect_eq(need_one(&step, i), 0);
            drop_one(&step, i);
        }
        as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
        as_pager_mark(fw.pager, ACTSWAP_STEP);
        cr_expect(n == 0 || totals().disk.in_bytes - before == (PAGES - 1) * BYTES,
                  "all but the last, which never left, once");
    }
    expect_nothing_left();
}

Test(pager_disk, a_kept_graph_comes_back_twice)
{
    struct step step;
    forward(&step);

    for (int n = 0; n < 2; n++) {
        for (int i = PAGES - 1; i >= 0; i--)
            cr_expect_eq(need_one(&step, i), 0);
        as_pager_mark(fw.pager, ACTSWAP_BACKWARD_END);
        as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    }
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

Test(pager_disk, a_graph_that_dies_unused_gives_its_room_back)
{
    struct step step;
    forward(&step);
    cr_expect_gt(totals().disk.bytes, 0);

    for (int i = 0; i < PAGES; i++)
        drop_one(&step, i);
    as_jobs_destroy(fw.pager->jobs); // what ran is over
    fw.pager->jobs = NULL;
    cr_expect_eq(totals().disk.bytes, 0);
    expect_nothing_left();
}

Test(pager_disk, lanes_that_run_late_are_waited_for)
{
    fake_lane_pace(0, FAKE_LAZY);
    fake_lane_pace(1, FAKE_LAZY);
    struct step step;
    for (int n = 0; n < 2; n++) {
        forward(&step);
        cr_expect_eq(backward(&step), 0);
    }
    expect_nothing_left();
}

static void *need_first(void *step)
{
    framework_lock();
    cr_expect_eq(need_one(step, 0), 0);
    framework_unlock();
    return NULL;
}

Test(pager_disk, whoever_waits_for_it_lets_others_go_on)
{
    struct step step;
    pthread_t threads[2];
    framework_use_lock();
    framework_lock();
    forward(&step);
    framework_unlock();
    fake_file_hold("pread");
    cr_assert_eq(pthread_create(&threads[0], NULL, need_first, &step), 0);
    fake_file_await_held("pread");
    framework_lock();
    framework_unlock();
    cr_assert_eq(pthread_create(&threads[1], NULL, need_first, &step), 0);
    fake_file_let_through("pread");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    framework_lock();
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

// Nothing runs on the device before somebody waits for it.
static void all_late(bool read_ahead)
{
    void *late = fake_stream(FAKE_LAZY);
    unsigned char seen[PAGES][BYTES];
    struct actswap_page *pages[PAGES];
    fake_lane_pace(0, FAKE_LAZY);
    fake_lane_pace(1, FAKE_LAZY);
    for (int i = 0; i < PAGES; i++) {
        struct storage *storage = storage_create(BYTES, late);
        fake_fill(late, storage->address, i + 1, BYTES);
        enter((uint64_t)i);
        cr_assert_eq(save(storage, late, &pages[i]), 0);
        storage_drop(storage);
        leave((uint64_t)i, late);
    }
    if (read_ahead)
        as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    for (int i = PAGES - 1; i >= 0; i--) {
        fake_read(late, need(pages[i], late).address, seen[i], BYTES);
        as_pager_drop(fw.pager, pages[i]);
    }
    fake_finish();
    for (int i = 0; i < PAGES; i++)
        cr_expect(is_whole(seen[i], i), "page %d", i);
    expect_nothing_left();
}

Test(pager_disk, a_device_that_is_late_is_waited_for)
{
    all_late(false);
}

Test(pager_disk, a_device_that_is_late_is_waited_for_when_reading_ahead)
{
    all_late(true);
}

Test(pager_disk, a_page_that_ends_while_it_is_read_ends_once)
{
    struct step step;
    forward(&step);
    fake_file_hold("pread");
    for (int i = PAGES - 1; i >= 0; i--) {
        drop_one(&step, i);
        if (i == PAGES - PINNED) // what pinned memory had is over
            fake_file_await_held("pread");
    }
    fake_file_let_through("pread");
    as_jobs_destroy(fw.pager->jobs);
    fw.pager->jobs = NULL;
    cr_expect_eq(totals().disk.bytes, 0);
    expect_nothing_left();
}

Test(pager_disk, small_buffers_make_room_for_a_large_one)
{
    struct step step;
    struct actswap_page *page;
    forward(&step);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    struct storage *large = storage_create(PINNED * BYTES, NULL);
    fake_fill(NULL, large->address, 9, PINNED * BYTES);

    cr_assert_eq(save(large, NULL, &page), 0);
    storage_drop(large);
    cr_expect_leq(totals().pinned_peak_bytes, PINNED * BYTES);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    struct actswap_resident back = need(page, NULL);
    fake_finish();
    cr_expect_eq(((unsigned char *)back.address)[PINNED * BYTES - 1], 9);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

Test(pager_disk, what_is_larger_than_pinned_memory_may_be_stays)
{
    struct step step;
    struct actswap_page *page;
    forward(&step);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD);
    struct storage *large = storage_create(PINNED * BYTES + 1, NULL);
    cr_expect_eq(save(large, NULL, &page), ACTSWAP_KEPT_DISK);
    storage_drop(large);
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

// --- Faults

struct fault {
    char function[16];
    int err;
    bool always, loses; // needs may fail
};

ParameterizedTestParameters(pager_disk, refused_at_each_call_nothing_comes_back_wrong)
{
    static struct fault faults[] = {
        {"open", EROFS, true, false},       {"open", EMFILE, false, false},
        {"fcntl", EINVAL, true, false},     {"fallocate", ENOSPC, false, false},
        {"fallocate", ENOSPC, true, false}, {"fallocate", EOPNOTSUPP, true, false},
        {"fallocate", EIO, true, false},    {"pwrite", EIO, false, false},
        {"pwrite", ENOSPC, true, false},    {"pwrite", EINVAL, false, false},
        {"pwrite", EINTR, false, false},    {"pread", EIO, false, false},
        {"pread", EIO, true, true},         {"pread", EINVAL, false, false},
    };
    return cr_make_param_array(struct fault, faults, sizeof(faults) / sizeof(faults[0]));
}

// Each call of two steps in its turn, until there are no more.
ParameterizedTest(struct fault *fault, pager_disk,
                  refused_at_each_call_nothing_comes_back_wrong)
{
    struct step step;
    int nth = 0, calls, lost = 0;
    do {
        fake_file_reset();
        fake_file_fail(fault->function, ++nth, fault->err, fault->always);
        for (int n = 0; n < 2; n++) {
            forward(&step);
            lost += backward(&step);
        }
        calls = fake_file_calls(fault->function);
        cr_expect_eq(fw.held, 0);
        cr_expect_eq(totals().pages, 0);
        put_in("/tmp:1GiB", 1 << 30);
    } while (nth < calls && nth < 100);
    cr_expect_gt(calls, 0);
    cr_expect(fault->loses ? lost > 0 : lost == 0, "%d lost", lost);
    fake_file_reset();
    expect_nothing_left();
}

Test(pager_disk, bytes_that_come_back_changed_are_read_again)
{
    struct step step;
    fake_file_spoil("pread", 1, false);
    forward(&step);
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

Test(pager_disk, bytes_that_come_back_changed_to_who_waits_are_read_again)
{
    struct step step;
    forward(&step);
    fake_file_spoil("pread", 1, false);
    cr_expect_eq(need_one(&step, 0), 0, "no buffer was free to read it ahead");
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

// Written wrong from the nth time on: nothing is lost, nothing more is written, and the
// rest stays.
static void write_wrong(int nth)
{
    struct step step;
    fake_file_reset();
    fake_file_spoil("pwrite", nth, true);
    for (int n = 0; n < 2; n++) {
        forward(&step);
        cr_expect_eq(backward(&step), 0);
    }
    cr_expect_gt(totals().kept[ACTSWAP_KEPT_DISK], 0);
    cr_expect_eq(strncmp(totals().disk.problem, "disk: other bytes", 17), 0);
    cr_expect_leq(totals().disk.out_bytes, (uint64_t)nth * BYTES);
    put_in("/tmp:1GiB", 1 << 30);
}

Test(pager_disk, bytes_that_were_written_wrong_cost_the_disk_and_nothing_else)
{
    for (int nth = 1; nth < 12; nth++)
        write_wrong(nth);
    expect_nothing_left();
}

Test(pager_disk, bytes_that_change_once_they_were_written_are_an_error_and_not_a_number)
{
    struct step step;
    forward(&step);
    as_pager_mark(fw.pager, ACTSWAP_FORWARD); // nothing is read ahead
    fake_file_spoil("pread", 1, true);
    cr_expect_gt(backward(&step), 0);
    cr_expect_eq(strncmp(totals().disk.problem, "disk: other bytes", 17), 0);
    expect_nothing_left();
}

Test(pager_disk, a_disk_that_hangs_is_waited_for_in_vain_and_the_tensor_stays)
{
    struct step step;
    as_jobs_set_patience(fw.pager->jobs, 20);
    fake_file_hold("pwrite");
    forward(&step);
    cr_expect_gt(totals().kept[ACTSWAP_KEPT_DISK], 0);
    cr_expect_eq(strncmp(totals().disk.problem, "disk: for too long", 18), 0);
    fake_file_let_through("pwrite");
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

Test(pager_disk, a_buffer_that_was_freed_for_a_larger_one_in_vain_is_nobodys)
{
    struct step step = {0};
    save_one(&step, 0);
    save_one(&step, 1);
    drop_one(&step,
             1); // one buffer is free, and too small; the other one is being written
    as_jobs_set_patience(fw.pager->jobs, 20);
    fake_file_hold("pwrite");
    struct storage *larger = storage_create(PINNED * BYTES, NULL);
    struct actswap_page *page;
    cr_expect_eq(save(larger, NULL, &page), ACTSWAP_KEPT_DISK);
    storage_drop(larger);
    fake_file_let_through("pwrite");
    cr_expect_eq(need_one(&step, 0), 0);
    drop_one(&step, 0);
    forward(&step);
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
    cr_expect_eq(fake_calls("as_cuda_host_free"), fake_calls("as_cuda_host_alloc"));
}

Test(pager_disk, a_page_that_ends_while_it_is_written_leaves_its_buffer_to_the_writer)
{
    struct step step;
    as_jobs_set_patience(fw.pager->jobs, 20);
    fake_file_hold("pwrite");
    forward(&step);
    fake_file_await_held("pwrite");
    for (int i = 0; i < PAGES; i++)
        drop_one(&step, i);
    fake_file_let_through("pwrite");
    forward(&step);
    cr_expect_eq(backward(&step), 0);
    as_jobs_destroy(fw.pager->jobs);
    fw.pager->jobs = NULL;
    cr_expect_eq(totals().disk.bytes, 0);
    expect_nothing_left();
}

Test(pager_disk, what_does_not_fit_its_size_stays_on_the_device)
{
    struct step step;
    put_in("/tmp:32768", 2 * 4 * 4096);
    forward(&step);
    cr_expect_eq(totals().kept[ACTSWAP_KEPT_DISK], PAGES - PINNED - 2);
    cr_expect_eq(strncmp(totals().disk.problem, "disk: no more room in /tmp", 26), 0);
    cr_expect_eq(totals().disk.peak_bytes, 2 * 4 * 4096);
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

static void expect_unused(const char *problem)
{
    struct step step;
    forward(&step);
    cr_expect_eq(totals().kept[ACTSWAP_KEPT_DISK], PAGES - PINNED);
    cr_expect_str_eq(totals().disk.problem, problem);
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

Test(pager_disk, a_folder_that_is_not_there_is_named)
{
    put_in("/tmp/no/such/folder:1GiB", 1 << 30);
    expect_unused("disk: cannot make a file in /tmp/no/such/folder: No such file or "
                  "directory");
}

Test(pager_disk, a_size_of_nothing_is_named)
{
    put_in("/tmp:0", 0);
    expect_unused("disk: a size of 0 was given for /tmp");
}

Test(pager_disk, more_than_is_free_is_cut_to_what_is)
{
    struct step step;
    put_in("/tmp:1EiB", UINT64_C(1) << 60);
    forward(&step);
    cr_expect_lt(totals().disk.cap_bytes, UINT64_C(1) << 60);
    cr_expect_eq(strncmp(totals().disk.problem, "disk: less is free", 18), 0);
    cr_expect_eq(totals().kept[ACTSWAP_KEPT_DISK], 0);
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}

Test(pager_disk, what_a_simulated_device_did_not_compute_is_only_counted)
{
    fake_skips_bytes(true);
    struct step step;
    forward(&step);
    cr_expect_gt(totals().disk.out_bytes, 0, "small ones are moved");
    cr_expect_eq(backward(&step), 0);
    expect_nothing_left();
}
