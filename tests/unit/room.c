// SPDX-License-Identifier: Apache-2.0
#include "core/room.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <criterion/criterion.h>

#define PAGE ((uint64_t)AS_ROOM_PAGE)

static _Atomic uint64_t used;
static struct as_room room;

static bool tell(void *context, uint64_t *used_bytes)
{
    (void)context;
    *used_bytes = atomic_load(&used);
    return true;
}

static bool tell_nothing(void *context, uint64_t *used_bytes)
{
    (void)context;
    (void)used_bytes;
    return false;
}

static const struct as_room_meter meter = {tell, NULL}, broken = {tell_nothing, NULL};

static enum as_room_answer claim(uint64_t pages, uint64_t bytes)
{
    return as_room_claim(&room, pages * PAGE, bytes, &meter);
}

Test(room, the_last_page_can_be_taken_and_not_one_more)
{
    atomic_store(&used, 3 * PAGE);

    cr_expect_eq(claim(4, PAGE), AS_ROOM_FITS);
    as_room_settle(&room, PAGE);
    cr_expect_eq(claim(4, 2 * PAGE), AS_ROOM_FULL);
    cr_expect_eq(claim(3, PAGE), AS_ROOM_FULL);
    cr_expect_eq(claim(2, PAGE), AS_ROOM_FULL, "more is in use than there is room");
    cr_expect_eq(claim(4, UINT64_MAX), AS_ROOM_FULL);
}

Test(room, a_part_of_a_page_may_find_its_place_in_a_taken_one)
{
    atomic_store(&used, 4 * PAGE);

    cr_expect_eq(claim(5, 1), AS_ROOM_FITS);
    as_room_settle(&room, 1);
    cr_expect_eq(claim(4, 1), AS_ROOM_UNSURE);
    as_room_settle(&room, 1);
    cr_expect_eq(claim(5, PAGE + 1), AS_ROOM_UNSURE);
    as_room_settle(&room, PAGE + 1);
    cr_expect_eq(claim(4, PAGE + 1), AS_ROOM_FULL);
}

Test(room, a_refused_claim_leaves_nothing_behind)
{
    atomic_store(&used, 0);

    cr_expect_eq(claim(2, 3 * PAGE), AS_ROOM_FULL);
    cr_expect_eq(as_room_claim(&room, PAGE, PAGE, &broken), AS_ROOM_UNKNOWN);
    cr_expect_eq(atomic_load(&room.claimed_bytes), 0);
    cr_expect_eq(claim(2, 2 * PAGE), AS_ROOM_FITS);
}

Test(room, what_another_is_about_to_take_counts)
{
    atomic_store(&used, 0);

    cr_assert_eq(claim(3, 2 * PAGE), AS_ROOM_FITS);
    cr_expect_eq(claim(3, 2 * PAGE), AS_ROOM_FULL);
    cr_expect_eq(claim(3, PAGE), AS_ROOM_FITS);
    as_room_settle(&room, PAGE);
    as_room_settle(&room, 2 * PAGE);
    cr_expect_eq(claim(3, 2 * PAGE), AS_ROOM_FITS);
}

static sem_t asked;

static bool tell_that_it_was_asked(void *context, uint64_t *used_bytes)
{
    sem_post(&asked);
    return tell(context, used_bytes);
}

// Takes what it claimed, and settles when the other one has asked how much is taken.
static void *take_late(void *context)
{
    const uint64_t bytes = *(const uint64_t *)context;

    atomic_store(&used, bytes);
    sem_wait(&asked);
    as_room_settle(&room, bytes);
    return NULL;
}

Test(room, what_another_has_by_now_counts_once)
{
    const struct as_room_meter slow = {tell_that_it_was_asked, NULL};
    uint64_t bytes = 2 * PAGE;
    pthread_t thread;

    atomic_store(&used, 0);
    cr_assert_eq(sem_init(&asked, 0, 0), 0);
    cr_assert_eq(claim(5, bytes), AS_ROOM_FITS);
    cr_assert_eq(pthread_create(&thread, NULL, take_late, &bytes), 0);
    while (!atomic_load(&used))
        sched_yield();
    cr_expect_eq(as_room_claim(&room, 5 * PAGE, 2 * PAGE, &slow), AS_ROOM_FITS);
    pthread_join(thread, NULL);
}

// --- Several at once: what is taken never exceeds the room, and what fits is taken

enum { THREADS = 8, ROUNDS = 400, PAGES = 5 };

static _Atomic uint64_t highest, refused;

// As a driver's: what it has given shows before its caller knows.
static void take_and_give(uint64_t bytes)
{
    const uint64_t now = atomic_fetch_add(&used, bytes) + bytes;
    uint64_t before = atomic_load(&highest);

    while (before < now && !atomic_compare_exchange_weak(&highest, &before, now))
        ;
    as_room_settle(&room, bytes);
    atomic_fetch_sub(&used, bytes);
}

static void *compete(void *context)
{
    const uint64_t bytes = *(const uint64_t *)context;

    for (int i = 0; i < ROUNDS; i++) {
        if (claim(PAGES, bytes) == AS_ROOM_FITS)
            take_and_give(bytes);
        else
            atomic_fetch_add(&refused, 1);
    }
    return NULL;
}

static void run_threads(int count, uint64_t bytes)
{
    pthread_t threads[THREADS];

    atomic_store(&used, 0);
    for (int i = 0; i < count; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, compete, &bytes), 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(atomic_load(&room.claimed_bytes), 0);
}

Test(room, many_together_stay_within)
{
    run_threads(THREADS, 2 * PAGE);

    cr_expect_leq(atomic_load(&highest), 4 * PAGE);
    cr_expect_gt(atomic_load(&highest), 0);
}

Test(room, what_fits_beside_the_others_is_never_refused)
{
    run_threads(2, 2 * PAGE);

    cr_expect_eq(atomic_load(&refused), 0, "%llu", (unsigned long long)refused);
}
