// SPDX-License-Identifier: Apache-2.0
// The rules: what each statement comes after and waits for.
#include "compile.h"

#include <string.h>

enum { OWN_STREAMS = STATEMENTS_MAX, ALL_STREAMS = STREAMS + OWN_STREAMS };

// The operations that a graph launches, as captured: `before` counts from 0.
struct captured {
    struct operation operations[OPERATIONS_MAX];
    int count;
    bool on[STREAMS]; // takes part
    set last[STREAMS];
    bool active;
};

struct state {
    struct compiled *to;
    set tails[ALL_STREAMS]; // of one operation, or none
    int stream_count;
    set records[EVENTS];
    bool marked[EVENTS]; // the last record was captured
    set marks[EVENTS];
    struct captured graph;
    set launched; // its last end
    bool full;
    const struct statement *at; // that is compiled
};

static bool legacy(int stream)
{
    return stream < STREAMS && stream_is_legacy(stream);
}

static bool blocking(int stream)
{
    return stream >= STREAMS || stream_is_blocking(stream);
}

static int device(int stream)
{
    return stream < STREAMS ? stream_device(stream) : 0;
}

static set others(const struct state *state, int stream)
{
    set all = 0;

    for (int i = 0; i < state->stream_count; i++)
        if (device(i) == device(stream) &&
            ((legacy(stream) && blocking(i)) || (blocking(stream) && legacy(i))))
            all |= state->tails[i];
    return all;
}

static void add_step(struct state *state, struct step step)
{
    struct compiled *to = state->to;

    if (to->step_count == 3 * STATEMENTS_MAX) {
        state->full = true;
        return;
    }
    step.thread = state->at->thread;
    step.rank = to->thread_steps[step.thread]++;
    step.handover = state->at->handover;
    step.seen = state->at->seen;
    step.query = state->at->query;
    to->of_thread[step.thread][step.rank] = to->step_count;
    to->steps[to->step_count++] = step;
}

static int add_operation(struct state *state, struct operation operation)
{
    if (state->to->operation_count == OPERATIONS_MAX) {
        state->full = true;
        return 0;
    }
    state->to->operations[state->to->operation_count] = operation;
    add_step(state,
             (struct step){.kind = SUBMIT, .operation = state->to->operation_count});
    return state->to->operation_count++;
}

// Behind everything that the stream is ordered after. Returns its set.
static set submit(struct state *state, int stream, struct operation operation)
{
    struct captured *graph = &state->graph;

    if (graph->active && stream < STREAMS && graph->on[stream]) {
        operation.before |= graph->last[stream];
        graph->operations[graph->count] = operation;
        graph->last[stream] = (set)1 << graph->count++;
        return 0;
    }
    operation.before |= state->tails[stream] | others(state, stream);

    const set own = (set)1 << add_operation(state, operation);

    state->tails[stream] = own;
    return own;
}

static void need(struct state *state, set needed)
{
    add_step(state, (struct step){.kind = NEED, .needed = needed});
}

static set of_stream(const struct state *state, int stream)
{
    set all = state->tails[stream];

    for (int i = 0; i < state->stream_count && legacy(stream); i++)
        if (blocking(i) && device(i) == device(stream))
            all |= state->tails[i];
    return all;
}

static set of_device(const struct state *state, int which)
{
    set all = 0;

    for (int i = 0; i < state->stream_count; i++)
        if (device(i) == which)
            all |= state->tails[i];
    return all;
}

static bool host_side(int place)
{
    return place_kind(place) == PINNED || place_kind(place) == PAGEABLE;
}

static void compile_copy(struct state *state, const struct statement *at, int stream)
{
    const bool async = at->stream >= 0, to_host = host_side(at->to);
    const bool from_pageable = place_kind(at->from) == PAGEABLE;
    const bool staged = from_pageable && !to_host;
    const bool waits = to_host && host_side(at->from) ? true
                       : async                        ? place_kind(at->to) == PAGEABLE
                               : to_host || (host_side(at->from) && !from_pageable);
    struct operation operation = {.to = at->to, .from = staged ? -2 : at->from};

    if (staged && !async)
        need(state, of_stream(state, stream));
    if (staged)
        add_step(state, (struct step){.kind = STAGE,
                                      .operation = state->to->operation_count,
                                      .place = at->from});

    const set own = submit(state, stream, operation);

    if (waits)
        need(state, own);
}

static void compile_record(struct state *state, const struct statement *at, int stream)
{
    struct captured *graph = &state->graph;

    state->marked[at->event] = graph->active && graph->on[stream];
    if (state->marked[at->event])
        state->marks[at->event] = graph->last[stream];
    else
        state->records[at->event] =
            submit(state, stream, (struct operation){.to = -1, .from = -1});
}

static void compile_wait(struct state *state, const struct statement *at, int stream)
{
    if (state->marked[at->event]) {
        state->graph.on[stream] = true;
        state->graph.last[stream] |= state->marks[at->event];
    } else if (state->records[at->event]) {
        (void)submit(state, stream,
                     (struct operation){
                         .before = state->records[at->event], .to = -1, .from = -1});
    }
}

static void compile_launch(struct state *state, int stream)
{
    const struct captured *graph = &state->graph;
    const int first = state->to->operation_count;
    struct operation end = {.to = -1, .from = -1};
    const set begin =
        submit(state, stream,
               (struct operation){.before = state->launched, .to = -1, .from = -1});

    for (int i = 0; i < graph->count; i++) {
        struct operation operation = graph->operations[i];

        operation.before = operation.before ? operation.before << (first + 1) : begin;
        end.before |= (set)1 << add_operation(state, operation);
    }
    state->launched = submit(state, stream, end);
}

static void compile_work(struct state *state, const struct statement *at, int stream)
{
    struct operation operation = {.to = at->to, .from = at->from, .value = at->value};

    switch (at->verb) {
    case COPY:
        compile_copy(state, at, stream);
        return;
    case ADD:
        operation.from = at->to;
        break;
    case MEMSET:
        operation.value = at->value * 0x01010101;
        break;
    case FREE_ASYNC:
        operation = (struct operation){.to = at->to, .from = -1};
        break;
    case ALLOC:
        operation = (struct operation){.to = at->to, .from = -1, .idle = true};
        break;
    default:
        break;
    }

    const set own = submit(state, stream, operation);

    if (at->verb == MEMSET && at->stream < 0 && host_side(at->to))
        need(state, own);
}

static void compile_order(struct state *state, const struct statement *at, int stream)
{
    switch (at->verb) {
    case RECORD:
        compile_record(state, at, stream);
        return;
    case WAIT:
        compile_wait(state, at, stream);
        return;
    case SYNC_STREAM:
        need(state, of_stream(state, stream));
        return;
    case SYNC_EVENT:
        need(state, state->records[at->event]);
        return;
    case QUERY_STREAM:
        add_step(state, (struct step){.kind = ASK, .needed = of_stream(state, stream)});
        return;
    case QUERY_EVENT:
        add_step(state, (struct step){.kind = ASK, .needed = state->records[at->event]});
        return;
    case FREE_HOST:
        need(state, of_device(state, 0) | of_device(state, 1));
        return;
    case FREE:
        need(state, of_device(state, place_device(at->to)));
        return;
    default:
        need(state, of_device(state, 0));
    }
}

static void compile_statement(struct state *state, const struct statement *at)
{
    int stream = at->stream < 0 ? 5 : at->stream;

    state->at = at;
    if (at->stream == 7)
        stream = state->stream_count++;
    switch (at->verb) {
    case SET:
    case MOVE:
    case ADD:
    case COPY:
    case MEMSET:
    case HOST:
    case ALLOC:
    case FREE_ASYNC:
        compile_work(state, at, stream);
        return;
    case WRITE:
        add_step(state, (struct step){.kind = PUT, .place = at->to, .value = at->value});
        return;
    case READ:
        add_step(state, (struct step){.kind = LOOK, .place = at->to});
        return;
    case POST:
    case TAKE:
        add_step(state, (struct step){.kind = at->verb == POST ? GIVE : GET});
        return;
    case CAPTURE:
        state->graph = (struct captured){.active = true};
        state->graph.on[stream] = true;
        return;
    case END:
        state->graph.active = false;
        return;
    case LAUNCH:
        compile_launch(state, stream);
        return;
    case DESTROY:
        return;
    case SHOW:
        state->to->shown[state->to->shown_count++] = at->to;
        return;
    default:
        compile_order(state, at, stream);
    }
}

bool compile_program(const struct program *program, struct compiled *to)
{
    struct state state = {.to = to, .stream_count = STREAMS};

    memset(to, 0, sizeof(*to));
    to->seen_count = program->seen_count;
    for (int i = 0; i < program->count && !state.full; i++)
        compile_statement(&state, &program->at[i]);
    return !state.full;
}
