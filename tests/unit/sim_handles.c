// SPDX-License-Identifier: Apache-2.0
#include "simcuda/order/handles.h"

#include <criterion/criterion.h>

Test(sim_handles, a_handle_finds_its_object_until_it_is_removed)
{
    struct sim_handles handles = {0};
    int one, two;
    void *first = sim_handles_add(&handles, &one),
         *second = sim_handles_add(&handles, &two);

    cr_expect_eq(sim_handles_find(&handles, first), &one);
    cr_expect_eq(sim_handles_find(&handles, second), &two);
    sim_handles_remove(&handles, first);
    cr_expect_null(sim_handles_find(&handles, first));
    cr_expect_eq(sim_handles_find(&handles, second), &two);
}

Test(sim_handles, a_slot_that_is_used_again_has_another_handle)
{
    struct sim_handles handles = {0};
    int object;
    void *before = sim_handles_add(&handles, &object);

    for (int i = 0; i < 1000; i++) {
        sim_handles_remove(&handles, before);
        void *handle = sim_handles_add(&handles, &object);

        cr_assert_neq(handle, before);
        cr_assert_null(sim_handles_find(&handles, before));
        before = handle;
    }
    cr_expect_eq(handles.count, 1);
}

// PyTorch keeps a foreign stream's handle in a number whose lowest bit is its own.
Test(sim_handles, values_are_even_and_small_and_no_special_stream)
{
    struct sim_handles handles = {.tag = 8};
    static char objects[500];

    for (size_t i = 0; i < sizeof(objects); i++) {
        const uintptr_t value = (uintptr_t)sim_handles_add(&handles, &objects[i]);

        cr_assert(value > 2 && value % 8 == 0 && value < (uintptr_t)1 << 47);
    }
}

Test(sim_handles, what_never_was_a_handle_finds_nothing)
{
    struct sim_handles streams = {0}, events = {.tag = 8};
    int object;
    const char *stream = sim_handles_add(&streams, &object);

    sim_handles_add(&events, &object);
    cr_expect_null(sim_handles_find(&events, stream));
    cr_expect_null(sim_handles_find(&streams, stream + 1));
    cr_expect_null(sim_handles_find(&streams, &object));
    cr_expect_null(sim_handles_find(&streams, NULL));
}
