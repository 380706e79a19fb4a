// SPDX-License-Identifier: Apache-2.0
#ifndef AS_CUDA_RUNTIME_H
#define AS_CUDA_RUNTIME_H

// The device's own entry points: the CUDA runtime that the process already uses, found
// without loading another copy, never our own interposed functions.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AS_CUDA_NOT_READY = 600, AS_CUDA_RELAXED = 2 };

// The address of `symbol` in the runtime behind our hooks: RTLD_NEXT first, then the
// loaded object named libcudart.so* or carrying that SONAME (the caller's own runtime
// when `caller` lies in an object that needs one). NULL: no runtime here.
void *as_cuda_find(const char *symbol, const void *caller);

// Calls of our own. Each is looked up once; a missing one answers
// cudaErrorNotSupported (801). `stream` and `event` are cudaStream_t and cudaEvent_t.
int as_cuda_stream_create(void **stream); // non-blocking
int as_cuda_stream_destroy(void *stream);
int as_cuda_stream_wait(void *stream, void *event);
int as_cuda_stream_synchronize(void *stream);
int as_cuda_stream_query(void *stream); // 0: idle, 600: not, or an error
int as_cuda_stream_capturing(void *stream, int *capturing);
// Exchanges how strictly this thread is kept from calls that a capture may not see;
// AS_CUDA_RELAXED: not at all.
int as_cuda_capture_mode(int *mode);
int as_cuda_event_create(void **event); // no timing; who waits sleeps
int as_cuda_event_destroy(void *event);
int as_cuda_event_record(void *event, void *stream);
int as_cuda_event_query(void *event); // 0: passed, 600: not, or an error
int as_cuda_event_synchronize(void *event);
int as_cuda_copy_out(void *host, const void *device, size_t bytes, void *stream);
int as_cuda_copy_in(void *device, const void *host, size_t bytes, void *stream);
int as_cuda_copy_now(void *device, const void *host, size_t bytes); // the host waits
int as_cuda_host_alloc(void **host, size_t bytes);
int as_cuda_host_free(void *host);
// What a pool (NULL: the current device's) has from the driver and has not handed out; 0: not
// known.
size_t as_cuda_pool_spare(void *pool);
int as_cuda_memory(size_t *free_bytes, size_t *total_bytes); // of the current device
int as_cuda_device_get(int *device);
int as_cuda_device_set(int device);
// Whether the host reaches the device's memory as its own: they have one memory, or the
// device translates addresses with the host's page tables.
bool as_cuda_shares_memory(int device);
int as_cuda_device_name(int device, char *name, size_t name_bytes);

// True on a simulated device that does not compute everything (ACTSWAP_SIM_COMPUTE): most
// of its memory, and of what is pinned for it, are addresses that nobody writes to.
bool as_cuda_skips_bytes(void);

// False for device memory whose value a simulated device did not compute: reading it would
// give a placeholder.
bool as_cuda_computed(const void *address, size_t bytes);

// How often the program read what a simulated device did not compute, or what rests on an
// assumption, how often an operator was refused for lack of values, and after how many
// launches nothing had values, as nothing is known of what they write.
struct as_missed {
    unsigned long unknown, assumed, refused, forgotten;
};

struct as_missed as_cuda_missed(void);

// What a simulated device's checker found: pairs of places whose accesses race, how often
// they did, and places that read memory that nothing has written.
struct as_races {
    bool checked;
    unsigned long pairs, accesses, unwritten;
};

struct as_races as_cuda_races(void);

// The first of these races in words; NULL: no more.
const char *as_cuda_race(unsigned which);

// A simulated device's virtual clock, as src/simcuda/simcuda.h has it, of all devices.
struct as_times {
    uint64_t now_ns, end_ns;
    uint64_t kernels_ns, in_ns, out_ns;
    uint64_t in_hidden_ns, out_hidden_ns;
    uint64_t stalled_in_ns, stalled_out_ns, stalled_kernels_ns, stalled_host_ns;
    unsigned long kernels, unknown;
};

// All 0 on a real device.
struct as_times as_cuda_times(void);

// A function that refused calls of ours, and with which error at first.
enum { AS_REFUSED_MAX = 16 };

struct as_refused {
    const char *function;
    int error;
    unsigned long count; // 0: none, and none behind it
};

void as_cuda_refused(struct as_refused found[AS_REFUSED_MAX]);

#endif
