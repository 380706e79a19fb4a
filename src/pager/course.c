// SPDX-License-Identifier: Apache-2.0
#include "pager/course.h"

#include <stdlib.h>
#include <string.h>

#include "track/digest.h"

// A step without end, such as one without an optimizer, is not planned for.
enum { PAGES_MAX = 1 << 16 };

struct stay {
    size_t bytes;
    uint32_t from, to; // away between these points; equal: never
    bool left, planned, stayed;
};

struct as_course {
    uint64_t step; // counts from 1
    uint64_t level_bytes; // that it began with
    struct stay *stays;
    size_t count, room;
    uint64_t *peaks; // before each point
    size_t point_count, point_room;
    bool lost; // too long, or no memory: there will be no plan
    bool strange; // it is not what the plan is for
    struct stay *plan; // the last step's stays
    size_t plan_count, plan_room;
    uint64_t seen; // digest of what the plan was made from
};

struct as_course *as_course_create(uint64_t level_bytes)
{
    struct as_course *course = calloc(1, sizeof(*course));
    if (!course)
        return NULL;
    course->step = 1;
    course->level_bytes = level_bytes;
    return course;
}

void as_course_destroy(struct as_course *course)
{
    if (!course)
        return;
    free(course->stays);
    free(course->plan);
    free(course->peaks);
    free(course);
}

// --- A step

static bool make_room(void **array, size_t count, size_t *room, size_t each_bytes)
{
    if (count < *room)
        return true;
    const size_t more = *room ? 2 * *room : 256;
    void *grown = realloc(*array, more * each_bytes);
    if (!grown)
        return false;
    *array = grown;
    *room = more;
    return true;
}

static bool plans(const struct as_course *course, size_t number, size_t bytes)
{
    return number < course->plan_count && course->plan[number].bytes == bytes;
}

bool as_course_add(struct as_course *course, size_t bytes,
                   struct as_course_ticket *ticket, bool *stays)
{
    *stays = false;
    *ticket = (struct as_course_ticket){0};
    course->lost |=
        course->count == PAGES_MAX || !make_room((void **)&course->stays, course->count,
                                                 &course->room, sizeof(*course->stays));
    if (!course->lost) {
        const size_t number = course->count++;
        *ticket = (struct as_course_ticket){course->step, number};
        const bool known = !course->strange && plans(course, number, bytes);
        *stays = known && course->plan[number].planned;
        course->stays[number] = (struct stay){.bytes = bytes, .stayed = *stays};
        if (known)
            return true;
    }
    const bool news = course->plan_count && !course->strange;
    course->strange = true;
    return !news;
}

static struct stay *stay_of(struct as_course *course,
                            const struct as_course_ticket *ticket)
{
    return ticket->step == course->step ? &course->stays[ticket->number] : NULL;
}

void as_course_moved(struct as_course *course, const struct as_course_ticket *ticket)
{
    struct stay *stay = stay_of(course, ticket);
    if (stay)
        stay->stayed = false;
}

// Returns the number of the stretch that begins here.
static uint32_t add_point(struct as_course *course, uint64_t peak_bytes)
{
    course->lost |= course->point_count >= 4 * (size_t)PAGES_MAX ||
                    !make_room((void **)&course->peaks, course->point_count,
                               &course->point_room, sizeof(*course->peaks));
    if (!course->lost)
        course->peaks[course->point_count++] = peak_bytes;
    return (uint32_t)course->point_count;
}

void as_course_leave(struct as_course *course, const struct as_course_ticket *ticket,
                     uint64_t peak_bytes)
{
    const uint32_t point = add_point(course, peak_bytes);
    struct stay *stay = stay_of(course, ticket);
    if (!stay || stay->left)
        return;
    stay->left = true;
    stay->from = stay->to = point;
}

void as_course_come(struct as_course *course, const struct as_course_ticket *ticket,
                    uint64_t peak_bytes)
{
    const uint32_t point = add_point(course, peak_bytes);
    struct stay *stay = stay_of(course, ticket);
    if (stay && stay->left)
        stay->to = point;
}

// --- The next one

// What would have been alive if nothing had stayed.
static void take_off(struct as_course *course)
{
    for (size_t i = 0; i < course->count; i++) {
        const struct stay *stay = &course->stays[i];
        for (uint32_t at = stay->from; stay->stayed && at < stay->to; at++)
            course->peaks[at] -=
                stay->bytes < course->peaks[at] ? stay->bytes : course->peaks[at];
    }
}

// Whether it stays below the budget, with what was chosen before. `level_bytes`: what the
// next step has more than this one from its beginning.
static bool fits(const struct as_course *course, const struct stay *stay,
                 uint64_t more_bytes, uint64_t budget_bytes)
{
    for (uint32_t at = stay->from; at < stay->to; at++)
        if (course->peaks[at] + more_bytes + stay->bytes > budget_bytes)
            return false;
    return true;
}

static void choose(struct as_course *course, uint64_t more_bytes, uint64_t budget_bytes)
{
    for (size_t i = course->count; i-- > 0;) {
        struct stay *stay = &course->stays[i];
        stay->planned = fits(course, stay, more_bytes, budget_bytes);
        for (uint32_t at = stay->from; stay->planned && at < stay->to; at++)
            course->peaks[at] += stay->bytes;
    }
}

// The same step as before, from the same level, has the same plan.
static bool is_known(struct as_course *course, uint64_t more_bytes, uint64_t budget_bytes)
{
    const uint64_t numbers[] = {more_bytes, budget_bytes};
    struct as_digest digest;
    as_digest_start(&digest);
    as_digest_add(&digest, numbers, sizeof(numbers));
    as_digest_add(&digest, course->peaks, course->point_count * sizeof(*course->peaks));
    for (size_t i = 0; i < course->count; i++) {
        const struct stay *stay = &course->stays[i];
        const uint64_t facts[] = {stay->bytes, stay->from, stay->to, stay->stayed};
        as_digest_add(&digest, facts, sizeof(facts));
    }
    const uint64_t seen = as_digest_value(&digest);
    const bool known = seen == course->seen;
    course->seen = seen;
    return known;
}

static uint64_t stayed_over(const struct as_course *course, uint64_t budget_bytes)
{
    uint64_t most = 0;
    for (size_t at = 0; at < course->point_count; at++) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < course->count && course->peaks[at] > budget_bytes; i++) {
            const struct stay *stay = &course->stays[i];
            const bool away = stay->from <= at && at < stay->to;
            bytes += stay->stayed && away ? stay->bytes : 0;
        }
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void swap_plan(struct as_course *course)
{
    struct stay *stays = course->stays;
    const size_t room = course->room;
    course->stays = course->plan;
    course->room = course->plan_room;
    course->plan = stays;
    course->plan_room = room;
    course->plan_count = course->count;
}

uint64_t as_course_end(struct as_course *course, uint64_t peak_bytes,
                       uint64_t level_bytes, uint64_t budget_bytes)
{
    const uint64_t more_bytes =
        level_bytes > course->level_bytes ? level_bytes - course->level_bytes : 0;
    add_point(course, peak_bytes);
    const uint64_t stayed = budget_bytes ? stayed_over(course, budget_bytes) : 0;
    if (course->lost || !budget_bytes) {
        course->plan_count = 0;
    } else if (!is_known(course, more_bytes, budget_bytes)) {
        take_off(course);
        choose(course, more_bytes, budget_bytes);
        swap_plan(course);
    }
    course->step++;
    course->level_bytes = level_bytes;
    course->count = course->point_count = 0;
    course->lost = course->strange = false;
    return stayed;
}
