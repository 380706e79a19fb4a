// SPDX-License-Identifier: Apache-2.0
#ifndef AS_TESTS_HOOK_SIMCUDA_ORDERS_PROGRAM_H
#define AS_TESTS_HOOK_SIMCUDA_ORDERS_PROGRAM_H

// Small CUDA programs as text: statements between semicolons, each of a few words.
//
//   a D0=5          on stream a an operator writes an int; also D1=D0 and D0+=2
//   a copy P0 D0    cudaMemcpyAsync, to and from; without a stream cudaMemcpy
//   a memset D0 1   cudaMemsetAsync; without a stream cudaMemset
//   a host P0=3     a host function writes
//   a record e      a wait e      a sync      e sync      sync (the device)
//   a query, e query              observed: 1 done, 0 not ready
//   P0=4            the host writes
//   read P0         the host reads: observed
//   a alloc M0      cudaMallocAsync, zero for all who may look; a free M0: cudaFreeAsync
//   free D3         cudaFree; freehost P1: cudaFreeHost
//   a destroy       cudaStreamDestroy
//   a capture ... a end     what is captured is the graph; b launch: cudaGraphLaunch
//   show D0         its value once all is done: observed. Only at the end
//   2: read P0      a second thread of the program does it, at any time that its own
//                   statements and hand-overs allow
//   post s          hands over (a semaphore, used once) to who does: take s
//
// What orders one thread's streams and events with the other's must be handed over.
//
// Streams: a b c do not wait for the legacy stream, A B do, 0 is the legacy stream, p is
// the per-thread stream; what is said of q another thread does on its own, for each
// statement a new one. x does not wait, 1 is the legacy stream, h an event and E0 memory:
// of a second device.
// Memory, one int each, zero at first: D0-D3 device, P0 P1 pinned, H0 H1 pageable, M0 M1
// of cudaMallocAsync. Events: e f g, and h.

#include <stdbool.h>
#include <stdint.h>

enum {
    PLACES = 11,
    STREAMS = 10,
    EVENTS = 4,
    STATEMENTS_MAX = 24,
    OBSERVED_MAX = 16,
    THREADS = 2,
    HANDOVERS = 2,
};

enum verb {
    SET,
    MOVE,
    ADD,
    COPY,
    MEMSET,
    HOST,
    RECORD,
    WAIT,
    SYNC_STREAM,
    SYNC_EVENT,
    SYNC_DEVICE,
    QUERY_STREAM,
    QUERY_EVENT,
    WRITE,
    READ,
    ALLOC,
    FREE_ASYNC,
    FREE,
    FREE_HOST,
    DESTROY,
    CAPTURE,
    END,
    LAUNCH,
    POST,
    TAKE,
    SHOW,
};

struct statement {
    enum verb verb;
    int thread;
    int stream; // -1: none, a call without one
    int event;
    int to, from; // places
    int value;
    int handover;
    int seen, query; // what it shows: its places in `seen`, or -1
};

struct program {
    const char *text;
    int count;
    int seen_count, query_count; // without SHOW
    struct statement at[STATEMENTS_MAX];
};

enum kind { DEVICE, PINNED, PAGEABLE, POOL };

enum kind place_kind(int place);
int place_device(int place);
int stream_device(int stream);
bool stream_is_legacy(int stream);
bool stream_is_blocking(int stream); // waits for the legacy one, and it for this
int event_device(int event);

// Ends the process with a message when it does not understand.
void program_parse(struct program *program, const char *text);

// What a run showed.
struct seen {
    int count;
    int at[OBSERVED_MAX];
    uint32_t queries; // their answers, the first in bit 0
    unsigned long races; // that the checker found
};

// Runs it on the device, whose settings are the process's.
void program_run(const struct program *program, struct seen *seen);

#endif
