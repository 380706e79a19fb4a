// SPDX-License-Identifier: Apache-2.0
// Each edge and each missing edge: what may be seen, and what the checker must say.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"

// NONE: no race. RACE: always reported. QUERY: reported unless a query said that the work
// is done. UNSEEN: perhaps reported, as a host function that has begun may have told the
// program so.
enum verdict { NONE, RACE, QUERY, UNSEEN };

static const struct row {
    const char *name, *text, *allowed; // every other outcome is forbidden
    enum verdict verdict;
} rows[] = {
    // --- Streams
    {"a stream keeps its order", "a D0=5; a D0+=2; a D1=D0; show D1", "7", NONE},
    {"two streams are not ordered", "a D0=7; b D1=D0; show D1", "0|7", RACE},
    {"two streams may read the same", "a D1=D0; b D2=D0; show D1; show D2", "0 0", NONE},
    {"two writes without an edge", "a D0=1; b D0=2; show D0", "1|2", RACE},
    {"a write behind a read without an edge", "a D1=D0; b D0=7; show D1", "0|7", RACE},
    {"different memory needs no edge", "a D0=7; b D1=8; show D0; show D1", "7 8", NONE},
    {"a destroyed stream finishes its work", "a D0=7; a destroy; sync; b D1=D0; show D1",
     "7", NONE},
    {"destroying a stream is no edge", "a D0=7; a destroy; b D1=D0; show D1", "0|7",
     RACE},
    {"streams of two devices are not ordered", "a D0=7; x E0=D0; show E0", "0|7", RACE},
    // --- Events
    {"an event orders two streams", "a D0=7; a record e; b wait e; b D1=D0; show D1", "7",
     NONE},
    {"an event orders what comes before it only",
     "a record e; a D0=7; b wait e; b D1=D0; show D1", "0|7", RACE},
    {"a wait orders what comes behind it only",
     "a D0=7; a record e; b D1=D0; b wait e; show D1", "0|7", RACE},
    {"a wait is not the other stream's", "a D0=7; a record e; b wait e; c D1=D0; show D1",
     "0|7", RACE},
    {"a wait means the record before it",
     "a D0=1; a record e; b wait e; a D0=2; a record e; b D1=D0; show D1", "1|2", RACE},
    {"a second record replaces the first",
     "a D0=1; a record e; a D0=2; a record e; b wait e; b D1=D0; show D1", "2", NONE},
    {"an event recorded on another stream forgets the first",
     "a D0=7; a record e; b record e; c wait e; c D1=D0; show D1", "0|7", RACE},
    {"a wait for an event that was never recorded is no edge",
     "b wait e; a D0=7; a record e; b D1=D0; show D1", "0|7", RACE},
    {"a stream that waits for its own event",
     "a D0=7; a record e; a wait e; a D1=D0; show D1", "7", NONE},
    {"edges are followed over three streams",
     "a D0=7; a record e; b wait e; b record f; c wait f; c D1=D0; show D1", "7", NONE},
    {"two events each order their own",
     "a D0=1; a record e; b D1=2; b record f; c wait e; c wait f; c D2=D0; c D2+=1; "
     "c D3=D1; show D2; show D3",
     "2 2", NONE},
    {"one of two needed edges",
     "a D0=1; a record e; b D1=2; b record f; c wait e; c D2=D0; c D3=D1; show D2; show "
     "D3",
     "1 0|1 2", RACE},
    {"edges both ways around a buffer",
     "a D0=1; a record e; b wait e; b D1=D0; b record f; a wait f; a D0=2; show D1", "1",
     NONE},
    {"a write waits for the last of two readers only",
     "a D1=D0; b D2=D0; b record e; c wait e; c D0=7; show D1; show D2", "0 0|7 0", RACE},
    {"a write waits for both readers",
     "a D1=D0; a record f; b D2=D0; b record e; c wait e; c wait f; c D0=7; show D1; "
     "show D2",
     "0 0", NONE},
    {"the way back is forgotten",
     "a D0=1; a record e; b wait e; b D1=D0; b record f; a D0=2; show D1", "1|2", RACE},
    {"an event orders streams of two devices",
     "a D0=7; a record e; x wait e; x E0=D0; show E0", "7", NONE},
    {"an event of the second device",
     "x E0=7; x record h; a wait h; a copy D0 E0; show D0", "7", NONE},
    {"a copy between devices has its stream's order only",
     "x E0=7; a copy D0 E0; show D0", "0|7", RACE},
    // --- The legacy stream
    {"the legacy stream waits for blocking streams", "A D0=7; 0 D1=D0; show D1", "7",
     NONE},
    {"blocking streams wait for the legacy stream", "0 D0=7; A D1=D0; show D1", "7",
     NONE},
    {"two blocking streams alone are not ordered", "A D0=7; B D1=D0; show D1", "0|7",
     RACE},
    {"two blocking streams with legacy work between", "A D0=7; 0 D2=1; B D1=D0; show D1",
     "7", NONE},
    {"the legacy stream does not wait for others", "a D0=7; 0 D1=D0; show D1", "0|7",
     RACE},
    {"others do not wait for the legacy stream", "0 D0=7; a D1=D0; show D1", "0|7", RACE},
    {"an event record is legacy work", "A D0=7; 0 record e; b wait e; b D1=D0; show D1",
     "7", NONE},
    {"a destroyed blocking stream is still waited for",
     "A D0=7; A destroy; 0 D1=D0; show D1", "7", NONE},
    {"the per-thread stream is a blocking one", "p D0=7; 0 D1=D0; show D1", "7", NONE},
    {"per-thread streams of two threads are not ordered", "p D0=7; q D1=D0; show D1",
     "0|7", RACE},
    {"another thread's per-thread stream is a blocking one",
     "q D0=7; 0 D2=1; p D1=D0; show D1", "7", NONE},
    {"each device has a legacy stream", "0 D0=7; 1 E0=D0; show E0", "0|7", RACE},
    // --- Synchronisation
    {"synchronising a stream", "a D0=7; a sync; b D1=D0; show D1", "7", NONE},
    {"synchronising another stream", "a D0=7; b sync; b D1=D0; show D1", "0|7", RACE},
    {"synchronising the device",
     "a D0=7; b D1=1; sync; c D2=D0; c D3=D1; show D2; show D3", "7 1", NONE},
    {"synchronising the other device is no edge", "x E0=7; sync; a copy D0 E0; show D0",
     "0|7", RACE},
    {"synchronising an event", "a D0=7; a record e; e sync; b D1=D0; show D1", "7", NONE},
    {"synchronising an event leaves what came later",
     "a D0=1; a record e; a D0=2; e sync; b D1=D0; show D1", "1|2", RACE},
    {"synchronising an event that was never recorded", "a D0=7; e sync; b D1=D0; show D1",
     "0|7", RACE},
    {"synchronising the legacy stream covers blocking ones",
     "A D0=7; 0 sync; b D1=D0; show D1", "7", NONE},
    {"synchronising the legacy stream leaves others", "a D0=7; 0 sync; b D1=D0; show D1",
     "0|7", RACE},
    {"a free synchronises its device", "a D0=7; free D3; b D1=D0; show D1", "7", NONE},
    {"a free leaves the other device", "x E0=7; free D3; a copy D0 E0; show D0", "0|7",
     RACE},
    {"freeing pinned memory synchronises", "a D0=7; freehost P1; b D1=D0; show D1", "7",
     NONE},
    // --- Queries
    {"a query that succeeds is an edge", "a D0=7; a query; b D1=D0; show D1",
     "0 0|0 7|1 7", QUERY},
    {"an event query that succeeds is an edge",
     "a D0=7; a record e; e query; b D1=D0; show D1", "0 0|0 7|1 7", QUERY},
    {"an event query says nothing of what came later",
     "a D0=1; a record e; a D0=2; e query; b D1=D0; show D1", "0 0|0 1|0 2|1 1|1 2",
     RACE},
    {"a query of an event that was never recorded succeeds",
     "a D0=7; e query; b D1=D0; show D1", "1 0|1 7", RACE},
    {"a query of the legacy stream covers blocking ones",
     "A D0=7; 0 query; b D1=D0; show D1", "0 0|0 7|1 7", QUERY},
    {"after a synchronisation a query succeeds", "a D0=7; a sync; a query; show D0",
     "1 7", NONE},
    // --- Copies and the host
    {"a copy to pinned memory is not waited for", "a D0=7; a copy P0 D0; read P0", "0|7",
     RACE},
    {"a copy to pinned memory that was synchronised",
     "a D0=7; a copy P0 D0; a sync; read P0", "7", NONE},
    {"a copy to pinned memory, another stream synchronised",
     "a D0=7; a copy P0 D0; b sync; read P0", "0|7", RACE},
    {"pinned memory may change under a copy", "P0=7; a copy D0 P0; P0=8; show D0", "7|8",
     RACE},
    {"pinned memory changed once the copy was waited for",
     "P0=7; a copy D0 P0; a record e; e sync; P0=8; show D0", "7", NONE},
    {"reading what a copy reads", "P0=7; a copy D0 P0; read P0; show D0", "7 7", NONE},
    {"pageable memory is taken at the call", "H0=7; a copy D0 H0; H0=8; show D0", "7",
     NONE},
    {"a copy to pageable memory is waited for", "a D0=7; a copy H0 D0; read H0", "7",
     NONE},
    {"what comes before a submission is seen by it", "P0=7; a copy D0 P0; show D0", "7",
     NONE},
    {"a synchronous copy to the host waits for blocking streams",
     "A D0=7; copy P0 D0; read P0", "7", NONE},
    {"a synchronous copy does not wait for others", "a D0=7; copy P0 D0; read P0", "0|7",
     RACE},
    {"a synchronous copy from pinned memory is done at its end",
     "P0=7; copy D0 P0; P0=8; b D1=D0; show D1", "7", NONE},
    {"a synchronous copy of pageable memory may still arrive",
     "H0=7; copy D0 H0; b D1=D0; show D1", "0|7", RACE},
    {"a copy within the device is not waited for", "0 D0=7; copy D1 D0; b D2=D1; show D2",
     "0|7", RACE},
    {"a copy between host addresses is waited for", "P0=7; a copy H0 P0; read H0", "7",
     NONE},
    {"a memset is not waited for", "memset D0 1; b D1=D0; show D1", "0|16843009", RACE},
    {"a memset in its stream", "a memset D0 1; a D1=D0; show D1", "16843009", NONE},
    {"a pinned buffer used again too early",
     "a D0=1; a copy P0 D0; b D1=2; b copy P0 D1; sync; read P0", "1|2", RACE},
    {"a pinned buffer used again behind an event",
     "a D0=1; a copy P0 D0; a record e; b D1=2; b wait e; b copy P0 D1; sync; read P0",
     "2", NONE},
    // --- Host functions
    {"a host function runs in its place", "P0=1; a host P0=7; a copy D0 P0; show D0", "7",
     NONE},
    {"a host function on another stream", "a host P0=7; b copy D0 P0; show D0", "0|7",
     UNSEEN},
    {"a host function is done after a synchronisation", "a host P0=7; a sync; read P0",
     "7", NONE},
    // --- Two threads of the program
    {"a thread does not know what the other waited for",
     "a D0=7; a copy P0 D0; a sync; 2: read P0", "0|7", RACE},
    {"a thread knows what it waited for itself",
     "a D0=7; a copy P0 D0; post s; 2: take s; 2: a sync; 2: read P0", "7", NONE},
    {"a hand-over tells what was waited for",
     "a D0=7; a copy P0 D0; a sync; post s; 2: take s; 2: read P0", "7", NONE},
    {"a hand-over before the wait tells nothing of it",
     "a D0=7; a copy P0 D0; post s; a sync; 2: take s; 2: read P0", "0|7", RACE},
    {"a hand-over there and back",
     "a D0=7; a copy P0 D0; post s; 2: take s; 2: a sync; "
     "2: post t; take t; read P0",
     "7", NONE},
    {"a wait of one thread orders its own submissions only",
     "a D0=7; a sync; 2: b D1=D0; show D1", "0|7", RACE},
    {"a wait and a hand-over order the other's submissions",
     "a D0=7; a sync; post s; 2: take s; 2: b D1=D0; show D1", "7", NONE},
    {"what a thread wrote is not what the other copies", "P0=7; 2: b copy D0 P0; show D0",
     "0|7", RACE},
    {"what a thread wrote and handed over is copied",
     "P0=7; post s; 2: take s; 2: b copy D0 P0; show D0", "7", NONE},
    {"a thread must not write what the other's copy reads",
     "P0=7; post s; a copy D0 P0; 2: take s; 2: P0=8; show D0", "7|8", RACE},
    {"a write of one thread hides no read of the other's",
     "a D0=7; a sync; post s; read P0; 2: take s; 2: P0=3; 2: b copy P0 D0; show P0",
     "0 7|3 7|7 7", RACE},
    {"a submission handed over orders nothing by itself",
     "a D0=7; post s; 2: take s; 2: b D1=D0; show D1", "0|7", RACE},
    {"a stream keeps its order over threads",
     "a D0=7; post s; 2: take s; 2: a D1=D0; show D1", "7", NONE},
    {"an event orders streams of two threads",
     "a D0=7; a record e; post s; 2: take s; 2: b wait e; 2: b D1=D0; show D1", "7",
     NONE},
    {"a query's answer is the thread's that asked",
     "a D0=7; a copy P0 D0; a query; b D1=8; 2: read P0", "0 0|0 7|1 0|1 7", RACE},
    {"a query's answer is handed over",
     "a D0=7; a copy P0 D0; a query; b D1=8; post s; 2: take s; 2: read P0",
     "0 0|0 7|1 7", QUERY},
    {"two threads' own streams and memory",
     "a D0=7; a copy P0 D0; a sync; read P0; 2: b D1=8; 2: b copy P1 D1; 2: b sync; "
     "2: read P1",
     "7 8", NONE},
    // --- Memory in stream order
    {"memory in stream order", "a alloc M0; a M0=7; a D0=M0; a free M0; show D0", "7",
     NONE},
    {"a free in stream order before another stream's use",
     "a alloc M0; a M0=7; a record e; b wait e; b D0=M0; a free M0; show D0", "0|7",
     RACE},
    {"a free in stream order behind another stream's use",
     "a alloc M0; a M0=7; a record e; b wait e; b D0=M0; b record f; a wait f; a free "
     "M0; "
     "show D0",
     "7", NONE},
    {"a use of memory before its allocation",
     "a alloc M0; b M0=7; sync; b D0=M0; show D0", "7", RACE},
    // --- Graphs
    {"a graph runs in its stream's order",
     "a capture; a D1=D0; a end; a D0=7; a launch; a D2=D1; show D2", "7", NONE},
    {"a graph is not ordered with other streams",
     "a capture; a D1=D0; a end; b D0=7; a launch; show D1", "0|7", RACE},
    {"a graph's nodes on one stream are ordered",
     "a capture; a D0=7; a D1=D0; a end; a launch; show D1", "7", NONE},
    {"a graph's branches are not ordered",
     "a capture; a record e; b wait e; a D0=7; b D1=D0; b record f; a wait f; a end; "
     "a launch; show D1",
     "0|7", RACE},
    {"an event is an edge of a graph",
     "a capture; a D0=7; a record e; b wait e; b D1=D0; b record f; a wait f; a end; "
     "a launch; show D1",
     "7", NONE},
    {"what is captured does not run", "a capture; a D0=7; a end; a D1=D0; show D1", "0",
     NONE},
    {"a graph's launches follow each other",
     "a capture; a D0+=1; a end; a launch; b launch; show D0", "2", NONE},
    {"work behind a launch waits for all branches",
     "a capture; a record e; b wait e; b D0=7; b record f; a wait f; a end; a launch; "
     "a D1=D0; show D1",
     "7", NONE},
};

enum { ROWS = sizeof(rows) / sizeof(*rows), SEEDS = 32, SEEDS_MORE = 1024, TIMES = 4 };

// What the row allows, as the model lists it: each once.
static bool allowed_by_row(const struct row *row, const struct model *model)
{
    char copy[128], *state;
    int count = 0;

    (void)snprintf(copy, sizeof(copy), "%s", row->allowed);
    for (char *one = strtok_r(copy, "|", &state); one;
         one = strtok_r(NULL, "|", &state)) {
        struct seen seen = {0};

        for (char *end = one; *end; one = end)
            seen.at[seen.count++] = (int)strtol(one, &end, 10);
        count++;
        if (model_find(model, &seen) < 0)
            return false;
    }
    return count == model->outcome_count;
}

static bool verdict_of_row(const struct row *row, const struct model *model)
{
    switch (row->verdict) {
    case NONE:
        return !model->races;
    case RACE:
        return model->races == model->possible;
    case QUERY:
        return model->races == 1 && model->possible == 3;
    default:
        return true;
    }
}

static bool judge(const struct row *row, const struct tried *tried)
{
    if (!allowed_by_row(row, &tried->model)) {
        fprintf(stderr, "# %s: the model has %d outcomes, not %s\n", row->text,
                tried->model.outcome_count, row->allowed);
        return false;
    }
    if (!verdict_of_row(row, &tried->model)) {
        fprintf(stderr, "# %s: the model's races are %x of %x\n", row->text,
                tried->model.races, tried->model.possible);
        return false;
    }
    return tried_judge(tried, true);
}

int main(void)
{
    struct tried *tried = tried_create(ROWS);
    bool good = tried, repeats = false;

    for (size_t i = 0; i < ROWS && good; i++) {
        program_parse(&tried[i].program, rows[i].text);
        tried[i].unseen = rows[i].verdict == UNSEEN;
        good = model_explore(&tried[i].program, false, &tried[i].model);
    }
    good = good && tried_run(tried, ROWS, 1, SEEDS, TIMES);
    if (good)
        (void)tried_cover(tried, ROWS, 1 + SEEDS, SEEDS_MORE);
    repeats = good && tried_repeat(tried, ROWS, 7);
    printf("1..%d\n", ROWS + 2);
    printf("%sok 1 - every program ran under every order\n", good ? "" : "not ");
    printf("%sok 2 - a seed's order repeats\n", repeats ? "" : "not ");
    for (size_t i = 0; i < ROWS; i++) {
        const bool passed = judge(&rows[i], &tried[i]);

        printf("%sok %zu - %s\n", passed ? "" : "not ", i + 3, rows[i].name);
        good = good && passed;
    }
    return good && repeats ? 0 : 1;
}
