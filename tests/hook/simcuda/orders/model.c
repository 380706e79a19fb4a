// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "compile.h"

enum { STATES_MAX = 1 << 17 };

// Where a run is. Compared as bytes: no padding may stay unset.
struct state {
    set done; // operations that have run
    set known[THREADS]; // that a thread has been told have run
    set given[HANDOVERS]; // what was known to who gave it
    int values[PLACES];
    int staged[OPERATIONS_MAX];
    int observed[OBSERVED_MAX];
    uint32_t queries, asked; // answers so far, of which queries
    uint16_t steps[THREADS]; // that it has made
    uint32_t posted; // hand-overs
};

struct search {
    const struct compiled *program;
    struct model *model;
    bool spurious, values; // false: what memory holds does not matter
    struct state *states;
    uint32_t *slots; // index + 1 of a state
    uint32_t count;
    bool full;
};

static uint64_t hash(const struct state *state)
{
    const unsigned char *at = (const unsigned char *)state;
    uint64_t sum = 14695981039346656037u;

    for (size_t i = 0; i < sizeof(*state); i += 4) {
        uint32_t word;

        memcpy(&word, at + i, sizeof(word));
        sum = (sum ^ word) * 1099511628211u;
        sum ^= sum >> 29;
    }
    return sum;
}

static void visit(struct search *search, const struct state *state)
{
    uint32_t slot = (uint32_t)hash(state) % (2 * STATES_MAX);

    for (; search->slots[slot]; slot = (slot + 1) % (2 * STATES_MAX))
        if (!memcmp(&search->states[search->slots[slot] - 1], state, sizeof(*state)))
            return;
    if (search->count == STATES_MAX) {
        search->full = true;
        return;
    }
    search->states[search->count] = *state;
    search->slots[slot] = ++search->count;
}

static void run(const struct search *search, struct state *state, int which)
{
    const struct operation *operation = &search->program->operations[which];
    int value = operation->value;

    state->done |= (set)1 << which;
    if (!search->values || operation->to < 0 || operation->idle)
        return;
    if (operation->from == -2)
        value += state->staged[which];
    else if (operation->from >= 0)
        value += state->values[operation->from];
    state->values[operation->to] = value;
}

static set submitted(const struct search *search, const struct state *state)
{
    set all = 0;

    for (int i = 0; i < search->program->step_count; i++) {
        const struct step *step = &search->program->steps[i];

        if (step->kind == SUBMIT && step->rank < state->steps[step->thread])
            all |= (set)1 << step->operation;
    }
    return all;
}

// With all that they come after.
static set closed(const struct search *search, set of)
{
    for (int i = search->program->operation_count - 1; i >= 0; i--)
        if (of >> i & 1)
            of |= search->program->operations[i].before;
    return of;
}

static void answer(struct search *search, struct state next, const struct step *step,
                   bool done)
{
    if (done)
        next.known[step->thread] |= closed(search, step->needed);
    next.queries |= (uint32_t)done << step->query;
    next.asked |= (uint32_t)1 << step->query;
    next.observed[step->seen] = done;
    visit(search, &next);
}

static void advance_host(struct search *search, const struct state *at, int thread)
{
    const int which = search->program->of_thread[thread][at->steps[thread]];
    const struct step *step = &search->program->steps[which];
    const bool done = !(step->needed & ~at->done);
    const bool known = !(step->needed & ~at->known[thread]);
    struct state next = *at;

    next.steps[thread]++;
    switch (step->kind) {
    case NEED:
        if (!done)
            return;
        next.known[thread] |= closed(search, step->needed);
        break;
    case ASK:
        if (done)
            answer(search, next, step, true);
        if (!done || (search->spurious && !known))
            answer(search, next, step, false);
        return;
    case LOOK:
        next.observed[step->seen] = search->values ? at->values[step->place] : 0;
        break;
    case GIVE:
        next.posted |= (uint32_t)1 << step->handover;
        next.given[step->handover] = at->known[thread];
        break;
    case GET:
        if (!(at->posted >> step->handover & 1))
            return;
        next.known[thread] |= at->given[step->handover];
        break;
    case PUT:
        if (search->values)
            next.values[step->place] = step->value;
        break;
    case STAGE:
        if (search->values)
            next.staged[step->operation] = at->values[step->place];
        break;
    default:
        break;
    }
    visit(search, &next);
}

static bool is_final(const struct search *search, const struct state *state)
{
    return state->steps[0] == search->program->thread_steps[0] &&
           state->steps[1] == search->program->thread_steps[1] &&
           state->done == ((set)1 << search->program->operation_count) - 1;
}

static void expand(struct search *search, uint32_t which)
{
    const struct state at = search->states[which];
    const set there = submitted(search, &at);

    for (int i = 0; i < search->program->operation_count; i++) {
        const set before = search->program->operations[i].before;
        struct state next = at;

        if (!(there >> i & 1) || at.done >> i & 1 || before & ~at.done)
            continue;
        run(search, &next, i);
        visit(search, &next);
    }
    for (int thread = 0; thread < THREADS; thread++)
        if (at.steps[thread] < search->program->thread_steps[thread])
            advance_host(search, &at, thread);
}

static void explore(struct search *search)
{
    const struct state start = {0};

    search->count = 0;
    memset(search->slots, 0, 2 * STATES_MAX * sizeof(*search->slots));
    visit(search, &start);
    for (uint32_t i = 0; i < search->count && !search->full; i++)
        expand(search, i);
}

static void add_outcome(struct search *search, const struct state *state)
{
    struct model *model = search->model;
    struct seen seen = {.count = search->program->seen_count, .queries = state->queries};

    memcpy(seen.at, state->observed, sizeof(seen.at));
    for (int i = 0; i < search->program->shown_count; i++)
        seen.at[seen.count++] = state->values[search->program->shown[i]];
    if (model_find(model, &seen) >= 0)
        return;
    if (model->outcome_count == OUTCOMES_MAX)
        search->full = true;
    else
        model->outcomes[model->outcome_count++] = seen;
}

int model_find(const struct model *model, const struct seen *seen)
{
    for (int i = 0; i < model->outcome_count; i++)
        if (model->outcomes[i].count == seen->count &&
            !memcmp(model->outcomes[i].at, seen->at,
                    (size_t)seen->count * sizeof(seen->at[0])))
            return i;
    return -1;
}

// --- Races: orders of accesses, for each possible set of answers

// An access: an operation's, or a host step's.
struct access {
    int operation, step; // the other is -1
    int place;
    bool write;
};

struct accesses {
    struct access at[2 * OPERATIONS_MAX + 3 * STATEMENTS_MAX];
    int count;
};

static void list_accesses(const struct compiled *program, struct accesses *list)
{
    list->count = 0;
    for (int i = 0; i < program->operation_count; i++) {
        const struct operation *operation = &program->operations[i];

        if (operation->to >= 0)
            list->at[list->count++] = (struct access){i, -1, operation->to, true};
        if (operation->from >= 0)
            list->at[list->count++] = (struct access){i, -1, operation->from, false};
    }
    for (int i = 0; i < program->step_count; i++) {
        const struct step *step = &program->steps[i];

        if (step->kind == LOOK || step->kind == PUT || step->kind == STAGE)
            list->at[list->count++] =
                (struct access){-1, i, step->place, step->kind == PUT};
    }
}

static bool happened(const struct search *search, const struct state *state,
                     const struct access *access)
{
    if (access->operation >= 0)
        return state->done >> access->operation & 1;

    const struct step *step = &search->program->steps[access->step];

    return state->steps[step->thread] > step->rank;
}

static bool conflict(const struct access *a, const struct access *b)
{
    return a->place == b->place && (a->write || b->write) &&
           (a->operation != b->operation || a->operation < 0) &&
           (a->operation >= 0 || b->operation >= 0);
}

// Whether some run is in a state where a has happened and b has not.
static bool comes_first(const struct search *search, const struct access *a,
                        const struct access *b, uint32_t answers)
{
    for (uint32_t i = 0; i < search->count; i++) {
        const struct state *state = &search->states[i];

        if ((answers & state->asked) == state->queries && happened(search, state, a) &&
            !happened(search, state, b))
            return true;
    }
    return false;
}

static bool races_with(const struct search *search, const struct accesses *list,
                       uint32_t answers)
{
    for (int a = 0; a < list->count; a++)
        for (int b = a + 1; b < list->count; b++)
            if (conflict(&list->at[a], &list->at[b]) &&
                comes_first(search, &list->at[a], &list->at[b], answers) &&
                comes_first(search, &list->at[b], &list->at[a], answers))
                return true;
    return false;
}

static void find_races(struct search *search)
{
    struct accesses list;

    list_accesses(search->program, &list);
    for (uint32_t i = 0; i < search->count; i++)
        if (is_final(search, &search->states[i]))
            search->model->possible |= (uint32_t)1 << search->states[i].queries;
    for (unsigned answers = 0; answers < 32; answers++)
        if (search->model->possible >> answers & 1 && races_with(search, &list, answers))
            search->model->races |= (uint32_t)1 << answers;
}

bool model_explore(const struct program *program, bool spurious, struct model *model)
{
    struct compiled compiled;
    struct search search = {.program = &compiled, .model = model, .values = true};

    memset(model, 0, sizeof(*model));
    if (!compile_program(program, &compiled))
        return false;
    search.spurious = spurious;
    search.states = malloc(STATES_MAX * sizeof(*search.states));
    search.slots = malloc(2 * STATES_MAX * sizeof(*search.slots));
    search.full = !search.states || !search.slots;
    if (!search.full)
        explore(&search);
    for (uint32_t i = 0; i < search.count && !search.full; i++)
        if (is_final(&search, &search.states[i]))
            add_outcome(&search, &search.states[i]);
    if (!search.full) {
        search.values = false;
        search.spurious = true;
        explore(&search);
        find_races(&search);
    }
    free(search.states);
    free(search.slots);
    return !search.full;
}
