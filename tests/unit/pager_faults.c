// SPDX-License-Identifier: Apache-2.0
//
// Each CUDA call of the pager's, refused once: the tensor stays or comes back another way,
// values are right and no reference is lost.
#include "pager/pager.h"

#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "cuda/runtime.h"
#include "fake_cuda.h"
#include "framework.h"

enum { BYTES = 4096 };

TestSuite(pager_faults, .init = framework_start);

static struct storage *filled(int value)
{
    struct storage *storage = storage_create(BYTES, NULL);
    fake_fill(NULL, storage->address, value, BYTES);
    return storage;
}

// A page of this value that has been let go.
static struct actswap_page *away(int value)
{
    struct actswap_page *page;
    struct storage *x = filled(value);
    enter(1);
    cr_assert_eq(save(x, NULL, &page), 0);
    storage_drop(x);
    leave(1, NULL);
    return page;
}

struct fault {
    char function[40];
    int nth, reason;
};

ParameterizedTestParameters(pager_faults, a_refused_save_leaves_the_tensor)
{
    static struct fault faults[] = {
        {"as_cuda_host_alloc", 1, ACTSWAP_KEPT_HOST_FULL},
        {"as_cuda_stream_capturing", 1, ACTSWAP_KEPT_CAPTURE},
        {"as_cuda_stream_create", 1, ACTSWAP_KEPT_DEVICE},
        {"as_cuda_stream_create", 2, ACTSWAP_KEPT_DEVICE},
        {"as_cuda_event_create", 1, ACTSWAP_KEPT_DEVICE},
        {"as_cuda_event_create", 2, ACTSWAP_KEPT_DEVICE},
        {"as_cuda_event_record", 1, ACTSWAP_KEPT_DEVICE},
        {"as_cuda_event_record", 2, ACTSWAP_KEPT_DEVICE},
        {"as_cuda_stream_wait", 1, ACTSWAP_KEPT_DEVICE},
        {"as_cuda_copy_out", 1, ACTSWAP_KEPT_DEVICE},
        {"as_cuda_device_get", 1, ACTSWAP_KEPT_DEVICE},
        {"as_cuda_device_get", 2, ACTSWAP_KEPT_DEVICE},
    };
    return cr_make_param_array(struct fault, faults, sizeof(faults) / sizeof(faults[0]));
}

ParameterizedTest(struct fault *fault, pager_faults, a_refused_save_leaves_the_tensor)
{
    struct actswap_page *page;
    struct storage *x = filled(7);
    fake_fail(fault->function, fault->nth);

    enter(1);
    cr_expect_eq(save(x, NULL, &page), fault->reason);
    cr_expect_null(page);
    leave(1, NULL);
    cr_expect_eq(x->references, 1);
    cr_expect_eq(totals().kept[fault->reason], 1);
    cr_expect_eq(totals().pages, 0);

    cr_expect_eq(save(x, NULL, &page), 0, "the next one works");
    as_pager_drop(fw.pager, page);
    storage_drop(x);
    cr_expect_eq(fw.held, 0);
    as_pager_destroy(fw.pager);
}

ParameterizedTestParameters(pager_faults, a_refused_edge_at_the_exit_keeps_the_memory)
{
    static struct fault faults[] = {
        {"as_cuda_stream_wait", 1, 0},      {"as_cuda_device_get", 1, 0},
        {"as_cuda_stream_capturing", 1, 0}, {"as_cuda_stream_capturing", 2, 0},
        {"as_cuda_stream_query", 1, 0},
    };
    return cr_make_param_array(struct fault, faults, sizeof(faults) / sizeof(faults[0]));
}

ParameterizedTest(struct fault *fault, pager_faults,
                  a_refused_edge_at_the_exit_keeps_the_memory)
{
    struct actswap_page *page;
    struct storage *x = filled(7);
    as_pager_stream_made(fw.pager, 0, fake_stream(FAKE_EAGER));
    enter(1);
    cr_assert_eq(save(x, NULL, &page), 0);
    storage_drop(x);
    fake_fail(fault->function, fault->nth);

    leave(1, NULL);
    cr_expect_eq(fw.held, 1);
    cr_expect_eq(totals().let_go, 0);
    cr_expect_eq(need(page, NULL).address, x->address);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
}

ParameterizedTestParameters(pager_faults, a_refused_copy_in_is_done_by_the_host)
{
    static struct fault faults[] = {
        {"as_cuda_copy_in", 1, 0},      {"as_cuda_event_record", 1, 0},
        {"as_cuda_event_record", 2, 0}, {"as_cuda_stream_wait", 1, 0},
        {"as_cuda_stream_wait", 2, 0},  {"as_cuda_stream_wait", 3, 0},
        {"as_cuda_device_get", 1, 0},   {"as_cuda_event_create", 1, 0},
    };
    return cr_make_param_array(struct fault, faults, sizeof(faults) / sizeof(faults[0]));
}

ParameterizedTest(struct fault *fault, pager_faults,
                  a_refused_copy_in_is_done_by_the_host)
{
    struct actswap_resident back = {.size = sizeof(back)};
    struct actswap_page *page = away(7);
    fake_fail(fault->function, fault->nth);

    cr_assert_eq(as_pager_need(fw.pager, page, NULL, &back), 0);
    cr_expect_eq(((unsigned char *)back.address)[BYTES - 1], 7);
    cr_expect_eq(totals().by_host, 1);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
    as_pager_destroy(fw.pager);
}

// Behind the copy out, and behind what used the memory before.
Test(pager_faults, what_the_host_copies_is_in_order)
{
    void *stream = fake_stream(FAKE_LAZY);
    fake_lane_pace(0, FAKE_LAZY);
    struct actswap_page *page;
    struct storage *x = storage_create(BYTES, stream);
    fake_fill(stream, x->address, 7, BYTES);
    enter(1);
    cr_assert_eq(save(x, stream, &page), 0);
    storage_drop(x);
    leave(1, stream);
    struct storage *other = storage_create(BYTES, stream);
    fake_fill(stream, other->address, 9, BYTES);
    storage_drop(other);

    fake_fail("as_cuda_event_record", 1);
    const unsigned char *back = need(page, stream).address;
    cr_expect_eq(back, x->address);
    cr_expect_eq(back[0], 7);
    fake_finish();
    cr_expect_eq(back[BYTES - 1], 7);
    as_pager_drop(fw.pager, page);
}

Test(pager_faults, a_copy_in_that_the_host_cannot_do_either_is_an_error_once)
{
    struct actswap_resident back = {.size = sizeof(back)};
    struct actswap_page *page = away(7);
    fake_fail("as_cuda_copy_in", 1);
    fake_fail("as_cuda_copy_now", 1);

    cr_expect_eq(as_pager_need(fw.pager, page, NULL, &back), -EIO);
    cr_expect_eq(fw.held, 0, "the new memory went back");
    cr_assert_eq(as_pager_need(fw.pager, page, NULL, &back), 0);
    fake_finish();
    cr_expect_eq(((unsigned char *)back.address)[BYTES - 1], 7);
    as_pager_drop(fw.pager, page);
    cr_expect_eq(fw.held, 0);
    as_pager_destroy(fw.pager);
}

Test(pager_faults, a_full_device_is_said_and_nothing_is_lost)
{
    struct actswap_resident back = {.size = sizeof(back)};
    struct actswap_page *page = away(7);

    fw.allocations_left = 0;
    cr_expect_eq(as_pager_need(fw.pager, page, NULL, &back), -ENOMEM);
    fw.allocations_left = -1;
    cr_expect_eq(as_pager_need(fw.pager, page, NULL, &back), 0);
    as_pager_drop(fw.pager, page);
}

Test(pager_faults, a_full_slab_keeps_the_tensor_and_refills)
{
    struct actswap_page *first, *second;
    struct storage *x = filled(1), *y = filled(2);
    fw.settings.host_memory_bytes = BYTES + 1;
    save(x, NULL, &first);

    cr_expect_eq(save(y, NULL, &second), ACTSWAP_KEPT_HOST_FULL);
    as_pager_drop(fw.pager, first);
    cr_expect_eq(save(y, NULL, &second), 0);
    cr_expect_leq(totals().pinned_peak_bytes, BYTES + 1);
    as_pager_drop(fw.pager, second);
}

Test(pager_faults, an_edge_that_cannot_be_made_at_the_end_is_waited_for)
{
    fake_lane_pace(0, FAKE_LAZY);
    struct actswap_page *page;
    struct storage *x = filled(7);
    save(x, NULL, &page);
    storage_drop(x);
    fake_fail("as_cuda_stream_wait", 1);

    as_pager_drop(fw.pager, page);
    cr_expect_eq(fake_calls("as_cuda_stream_synchronize"), 2, "the lane and the reader");
    cr_expect_eq(fw.held, 0);
}

Test(pager_faults, the_good_path_never_waits_on_the_host)
{
    for (int step = 0; step < 2; step++) {
        struct actswap_page *page = away(7);
        need(page, NULL);
        as_pager_drop(fw.pager, page);
    }

    cr_expect_eq(fake_calls("as_cuda_stream_synchronize"), 0);
    cr_expect_eq(fake_calls("as_cuda_event_synchronize"), 0);
}

Test(pager_faults, the_threads_device_is_what_it_was)
{
    fake_fail("as_cuda_copy_out", 1);
    struct actswap_page *page;
    struct storage *x = filled(7);
    as_cuda_device_set(3);
    save(x, NULL, &page);
    save(x, NULL, &page);
    as_pager_mark(fw.pager, ACTSWAP_BACKWARD);
    need(page, NULL);
    as_pager_drop(fw.pager, page);

    int device;
    as_cuda_device_get(&device);
    cr_expect_eq(device, 3);
}
