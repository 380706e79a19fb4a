// SPDX-License-Identifier: Apache-2.0
//
// Random steps of a program that saves and needs in some order, with growth of its own in
// between, played with what the plan says: the budget is kept wherever it can be, and no
// tensor is away that could have stayed.
#include "pager/course.h"

#include <stdlib.h>

#include <criterion/criterion.h>

enum { PAGES_MAX = 8, RUNS = 3000, STEPS = 5 };

struct program {
    int pages;
    size_t bytes[PAGES_MAX];
    int order[PAGES_MAX]; // of use
    uint64_t growth[2 * PAGES_MAX]; // of the program between two points
    uint64_t base, states; // alive before; made by the first step
};

// A step's memory.
struct meter {
    uint64_t live, swing, peak;
};

static void move(struct meter *meter, uint64_t more, uint64_t less)
{
    meter->live += more;
    if (meter->live > meter->swing)
        meter->swing = meter->live;
    if (meter->live > meter->peak)
        meter->peak = meter->live;
    meter->live -= less;
}

static uint64_t swing(struct meter *meter)
{
    const uint64_t bytes = meter->swing;
    meter->swing = meter->live;
    return bytes;
}

static struct program make_program(void)
{
    struct program program = {.pages = 1 + rand() % PAGES_MAX,
                              .base = (uint64_t)(rand() % 200),
                              .states = (uint64_t)(rand() % 100)};
    for (int i = 0; i < program.pages; i++) {
        program.bytes[i] = (size_t)(1 + rand() % 50);
        program.order[i] = program.pages - 1 - i;
    }
    for (int i = 0; i < 2 * PAGES_MAX; i++)
        program.growth[i] = (uint64_t)(rand() % 60);
    if (rand() % 2) { // no stack
        const int a = rand() % program.pages, b = rand() % program.pages;
        const int other = program.order[a];
        program.order[a] = program.order[b];
        program.order[b] = other;
    }
    return program;
}

// Plays one step and returns its peak. `stays` is what the plan says, or, if `forced`,
// what is done whatever it says.
static uint64_t play(const struct program *program, struct as_course *course,
                     struct meter *meter, bool stays[PAGES_MAX], bool forced)
{
    struct as_course_ticket tickets[PAGES_MAX];
    meter->peak = meter->live;
    for (int i = 0; i < program->pages; i++) {
        bool planned;
        move(meter, program->bytes[i], 0);
        as_course_add(course, program->bytes[i], &tickets[i], &planned);
        if (!forced)
            stays[i] = planned;
        else if (planned && !stays[i])
            as_course_moved(course, &tickets[i]);
        move(meter, program->growth[i], program->growth[i]);
        if (!stays[i])
            meter->live -= program->bytes[i];
        as_course_leave(course, &tickets[i], swing(meter));
    }
    for (int i = 0; i < program->pages; i++) {
        const int page = program->order[i];
        as_course_come(course, &tickets[page], swing(meter));
        if (!stays[page])
            move(meter, program->bytes[page], 0);
        move(meter, program->growth[PAGES_MAX + i], program->growth[PAGES_MAX + i]);
        meter->live -= program->bytes[page];
    }
    return meter->peak;
}

static void end(struct as_course *course, struct meter *meter, uint64_t budget)
{
    as_course_end(course, swing(meter), meter->live, budget);
}

// The peak of a step with these stays, in a program that has run before.
static uint64_t peak_with(const struct program *program, const bool stays[PAGES_MAX])
{
    bool copy[PAGES_MAX];
    struct meter meter = {.live = program->base + program->states};
    struct as_course *course = as_course_create(0);
    for (int i = 0; i < PAGES_MAX; i++)
        copy[i] = stays[i];
    const uint64_t peak = play(program, course, &meter, copy, true);
    as_course_destroy(course);
    return peak;
}

Test(course, the_budget_is_kept_and_nothing_is_away_that_could_stay)
{
    srand(1);
    for (int run = 0; run < RUNS; run++) {
        static const bool none[PAGES_MAX];
        const struct program program = make_program();
        const uint64_t least = peak_with(&program, none);
        const uint64_t budget = least + (uint64_t)(rand() % 200);
        struct as_course *course = as_course_create(program.base);
        struct meter meter = {.live = program.base, .swing = program.base};
        bool stays[PAGES_MAX] = {0};
        for (int step = 0; step < STEPS; step++) {
            const uint64_t peak = play(&program, course, &meter, stays, false);
            cr_assert_leq(peak, budget, "run %d, step %d", run, step);
            meter.live += step ? 0 : program.states;
            end(course, &meter, budget);
        }
        for (int i = 0; i < program.pages; i++) {
            bool more[PAGES_MAX];
            for (int k = 0; k < PAGES_MAX; k++)
                more[k] = stays[k] || k == i;
            cr_assert(stays[i] || peak_with(&program, more) > budget, "run %d, page %d",
                      run, i);
        }
        as_course_destroy(course);
    }
}

Test(course, below_what_must_be_there_nothing_stays_while_it_is)
{
    const struct program program = {
        .pages = 2, .bytes = {10, 10}, .order = {1, 0}, .growth = {[PAGES_MAX] = 90}};
    struct as_course *course = as_course_create(0);
    struct meter meter = {0};
    bool stays[PAGES_MAX];
    for (int step = 0; step < 3; step++) {
        cr_expect_eq(play(&program, course, &meter, stays, false), 100);
        end(course, &meter, 50);
    }
    cr_expect(stays[1], "it is there before the growth and after it");
    cr_expect_not(stays[0]);
    as_course_destroy(course);
}

Test(course, what_is_needed_again_soonest_stays_first)
{
    const struct program program = {
        .pages = 3, .bytes = {10, 10, 10}, .order = {2, 1, 0}};
    struct as_course *course = as_course_create(0);
    struct meter meter = {0};
    bool stays[PAGES_MAX];
    for (int step = 0; step < 3; step++) {
        play(&program, course, &meter, stays, false);
        end(course, &meter, 20);
    }
    cr_expect(!stays[0] && stays[1] && stays[2], "two of them is all there is room for");
    as_course_destroy(course);
}

Test(course, another_step_than_the_last_is_noticed_once)
{
    struct as_course_ticket ticket;
    bool stays;
    struct as_course *course = as_course_create(0);
    cr_expect(as_course_add(course, 10, &ticket, &stays), "nothing is expected yet");
    as_course_end(course, 10, 0, 100);

    cr_expect(as_course_add(course, 10, &ticket, &stays));
    cr_expect(stays);
    cr_expect_not(as_course_add(course, 20, &ticket, &stays), "one more");
    cr_expect_not(stays);
    cr_expect(as_course_add(course, 20, &ticket, &stays));
    as_course_end(course, 10, 0, 100);

    cr_expect_not(as_course_add(course, 11, &ticket, &stays), "of another size");
    cr_expect(as_course_add(course, 20, &ticket, &stays));
    cr_expect_not(stays, "all that follows is new");
    as_course_destroy(course);
}

Test(course, without_a_budget_nothing_stays)
{
    struct as_course_ticket ticket;
    bool stays;
    struct as_course *course = as_course_create(0);
    for (int step = 0; step < 3; step++) {
        as_course_add(course, 10, &ticket, &stays);
        cr_expect_not(stays);
        as_course_end(course, 10, 0, 0);
    }
    as_course_destroy(course);
}

Test(course, a_page_of_an_earlier_step_counts_in_no_later_one)
{
    struct as_course_ticket old, ticket;
    bool stays;
    struct as_course *course = as_course_create(0);
    as_course_add(course, 10, &old, &stays);
    as_course_end(course, 10, 10, 100);
    as_course_add(course, 10, &ticket, &stays);
    as_course_leave(course, &ticket, 20);
    as_course_come(course, &old, 20);
    as_course_come(course, &ticket, 500);
    as_course_end(course, 20, 10, 100);

    as_course_add(course, 10, &ticket, &stays);
    cr_expect_not(stays, "500 were reached while it would have stayed");
    as_course_destroy(course);
}

Test(course, a_step_without_end_has_no_plan)
{
    struct as_course_ticket ticket;
    bool stays;
    struct as_course *course = as_course_create(0);
    for (int i = 0; i < 1 << 17; i++)
        as_course_add(course, 10, &ticket, &stays);
    as_course_end(course, 10, 0, 100);
    as_course_add(course, 10, &ticket, &stays);
    cr_expect_not(stays);
    as_course_destroy(course);
}
