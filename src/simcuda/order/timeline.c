// SPDX-License-Identifier: Apache-2.0
#include "simcuda/order/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "simcuda/order/entry.h"
#include "simcuda/runtime/device.h"
#include "simcuda/simcuda.h"

// How many spans are kept before those that are over are let go of.
enum { SPANS_KEPT = 512 };

// When an engine is busy: apart from each other, in order.
struct spans {
    struct span {
        uint64_t start_ns, end_ns;
    } * at;
    size_t count, capacity;
};

static struct timeline {
    struct spans busy[SIM_ENGINES];
    size_t keep; // so many spans
    uint64_t settled_ns; // what is hidden was counted until then
    uint64_t hidden_ns[SIM_ENGINES];
    uint64_t stalled_ns[SIM_ENGINES]; // by whom the kernels' streams were kept waiting
    struct sim_times times; // the rest of them
} timelines[SIM_DEVICES_MAX];

static uint64_t host_ns;

void sim_timeline_spend(uint64_t ns)
{
    host_ns += ns;
}

void sim_timeline_reach(uint64_t ns)
{
    if (ns > host_ns)
        host_ns = ns;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// --- Spans

// The first that ends at `ns` or behind it.
static size_t find(const struct spans *spans, uint64_t ns)
{
    size_t low = 0, high = spans->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (spans->at[middle].end_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// From `ns` on the first moment at which `length_ns` are free.
static uint64_t find_room(const struct spans *spans, uint64_t ns, uint64_t length_ns)
{
    for (size_t i = find(spans, ns); i < spans->count; i++) {
        if (ns + length_ns <= spans->at[i].start_ns)
            return ns;
        ns = later(ns, spans->at[i].end_ns);
    }
    return ns;
}

static void grow(struct spans *spans)
{
    const size_t capacity = spans->capacity * 2 + 64;
    struct span *at = realloc(spans->at, capacity * sizeof(*at));

    if (!at)
        sim_fail("no memory for the virtual clock");
    spans->at = at;
    spans->capacity = capacity;
}

// What it touches becomes one span with it.
static void add(struct spans *spans, uint64_t start_ns, uint64_t end_ns)
{
    const size_t first = find(spans, start_ns);
    size_t behind = first;

    for (; behind < spans->count && spans->at[behind].start_ns <= end_ns; behind++) {
        if (spans->at[behind].start_ns < start_ns)
            start_ns = spans->at[behind].start_ns;
        end_ns = later(end_ns, spans->at[behind].end_ns);
    }
    if (behind == first && spans->count == spans->capacity)
        grow(spans);
    memmove(&spans->at[first + 1], &spans->at[behind],
            (spans->count - behind) * sizeof(*spans->at));
    spans->count = spans->count - (behind - first) + 1;
    spans->at[first] = (struct span){start_ns, end_ns};
}

// How long both were busy in a window.
static uint64_t shared(const struct spans *a, const struct spans *b, uint64_t from_ns,
                       uint64_t to_ns)
{
    uint64_t sum = 0;

    for (size_t i = find(a, from_ns), j = find(b, from_ns);
         i < a->count && j < b->count;) {
        const uint64_t start =
            later(from_ns, later(a->at[i].start_ns, b->at[j].start_ns));
        const bool first = a->at[i].end_ns < b->at[j].end_ns;
        uint64_t end = first ? a->at[i].end_ns : b->at[j].end_ns;

        if (start >= to_ns)
            break;
        end = end < to_ns ? end : to_ns;
        sum += end > start ? end - start : 0;
        i += first;
        j += !first;
    }
    return sum;
}

// Nothing begins before the host's time any more.
static void let_go(struct timeline *timeline, struct spans *spans)
{
    if (spans->count <= timeline->keep)
        return;
    for (int i = SIM_COPY_IN; i <= SIM_COPY_OUT; i++)
        timeline->hidden_ns[i] += shared(&timeline->busy[i], &timeline->busy[SIM_KERNELS],
                                         timeline->settled_ns, host_ns);
    timeline->settled_ns = host_ns;
    timeline->keep = SPANS_KEPT;
    for (int i = 0; i < SIM_ENGINES; i++) {
        struct spans *each = &timeline->busy[i];
        const size_t over = find(each, host_ns);

        if (over) {
            each->count -= over;
            memmove(each->at, each->at + over, each->count * sizeof(*each->at));
        }
        if (2 * each->count > timeline->keep)
            timeline->keep = 2 * each->count;
    }
}

static void occupy(int device, enum sim_engine engine, const struct sim_when *when)
{
    struct timeline *timeline = &timelines[device];

    if (!timeline->keep)
        timeline->keep = SPANS_KEPT;
    add(&timeline->busy[engine], when->start_ns, when->end_ns);
    let_go(timeline, &timeline->busy[engine]);
}

// --- Entries

void sim_timeline_after(struct sim_when *when, const struct sim_when *before,
                        bool same_stream)
{
    if (before->end_ns > when->ready_ns) {
        when->ready_ns = before->end_ns;
        when->behind = before->behind;
    }
    if (same_stream)
        when->worked_ns = later(when->worked_ns, before->worked_ns);
}

// The first moment from `ns` on at which both ends of the copy are free.
static uint64_t find_peer_room(uint64_t ns, uint64_t length_ns, int from, int to)
{
    for (uint64_t before = ns;; before = ns) {
        ns = find_room(&timelines[from].busy[SIM_COPY_OUT], ns, length_ns);
        ns = find_room(&timelines[to].busy[SIM_COPY_IN], ns, length_ns);
        if (ns == before)
            return ns;
    }
}

static uint64_t find_start(uint64_t ns, const struct sim_cost *cost, int device)
{
    if (cost->engine == SIM_COPY_PEER)
        return find_peer_room(ns, cost->ns, cost->peer, device);
    if (cost->engine == SIM_COPY_IN || cost->engine == SIM_COPY_OUT)
        return find_room(&timelines[device].busy[cost->engine], ns, cost->ns);
    return ns;
}

// Since its last work the stream had nothing to do until the host had submitted this; from
// then on it waited for what this comes after.
static void note_kernel(struct timeline *timeline, const struct sim_when *when)
{
    const uint64_t idle_ns = later(when->worked_ns, host_ns);

    if (!when->worked_ns)
        return;
    if (host_ns > when->worked_ns)
        timeline->stalled_ns[SIM_NOTHING] += host_ns - when->worked_ns;
    if (when->start_ns > idle_ns)
        timeline->stalled_ns[when->behind] += when->start_ns - idle_ns;
}

static void note(const struct sim_when *when, const struct sim_cost *cost, int device)
{
    struct sim_times *times = &timelines[device].times;

    switch (cost->engine) {
    case SIM_KERNELS:
        note_kernel(&timelines[device], when);
        times->kernels++;
        times->unknown += cost->unknown;
        times->kernels_ns += cost->ns;
        occupy(device, SIM_KERNELS, when);
        break;
    case SIM_COPY_IN:
        times->in_ns += cost->ns;
        occupy(device, SIM_COPY_IN, when);
        break;
    case SIM_COPY_OUT:
        times->out_ns += cost->ns;
        occupy(device, SIM_COPY_OUT, when);
        break;
    case SIM_COPY_PEER:
        timelines[cost->peer].times.out_ns += cost->ns;
        times->in_ns += cost->ns;
        occupy(cost->peer, SIM_COPY_OUT, when);
        occupy(device, SIM_COPY_IN, when);
        break;
    case SIM_NOTHING:
        break;
    }
}

void sim_timeline_place(struct sim_when *when, const struct sim_cost *cost, int device)
{
    const uint64_t first_ns = later(when->ready_ns, host_ns);

    when->start_ns = first_ns;
    if (cost->ns)
        when->start_ns = find_start(first_ns, cost, device);
    when->end_ns = when->start_ns + cost->ns;
    timelines[device].times.end_ns = later(timelines[device].times.end_ns, when->end_ns);
    if (host_ns >= when->ready_ns)
        when->behind = SIM_NOTHING;
    if (cost->ns) {
        note(when, cost, device);
        if (cost->engine == SIM_KERNELS)
            when->worked_ns = when->end_ns;
        when->behind = cost->engine == SIM_COPY_PEER ? SIM_COPY_IN : cost->engine;
    }
    host_ns += cost->host_beside_ns;
}

static uint64_t hidden(const struct timeline *timeline, enum sim_engine engine)
{
    return timeline->hidden_ns[engine] + shared(&timeline->busy[engine],
                                                &timeline->busy[SIM_KERNELS],
                                                timeline->settled_ns, UINT64_MAX);
}

static void add_times(struct sim_times *all, const struct timeline *timeline)
{
    const struct sim_times *own = &timeline->times;

    all->end_ns = later(all->end_ns, own->end_ns);
    all->kernels_ns += own->kernels_ns;
    all->in_ns += own->in_ns;
    all->out_ns += own->out_ns;
    all->in_hidden_ns += hidden(timeline, SIM_COPY_IN);
    all->out_hidden_ns += hidden(timeline, SIM_COPY_OUT);
    all->stalled_in_ns += timeline->stalled_ns[SIM_COPY_IN];
    all->stalled_out_ns += timeline->stalled_ns[SIM_COPY_OUT];
    all->stalled_kernels_ns += timeline->stalled_ns[SIM_KERNELS];
    all->stalled_host_ns += timeline->stalled_ns[SIM_NOTHING];
    all->kernels += own->kernels;
    all->unknown += own->unknown;
}

void sim_times_get(int device, struct sim_times *times)
{
    sim_queue_lock();
    *times = (struct sim_times){.now_ns = host_ns, .end_ns = host_ns};
    for (int i = 0; i < SIM_DEVICES_MAX; i++)
        if (device < 0 || device == i)
            add_times(times, &timelines[i]);
    sim_queue_unlock();
}
