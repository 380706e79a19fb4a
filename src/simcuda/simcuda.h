// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_SIMCUDA_H
#define AS_SIMCUDA_SIMCUDA_H

// simcuda, seen from the operator bodies and from tests: what a CUDA program cannot say
// through the runtime API. Exported by the simulated runtime library beside cuda*.
//
// The device's memory is host memory in one reserved range per device. All work on
// streams (copies, memsets, host functions, operator bodies) becomes entries of the C
// queue in src/simcuda/order, which runs one at a time, in an order that the
// program's own synchronisation allows: on a thread of its own or on one that waits.
//
// Thread-safety: every function may be called from any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// How operators compute (ACTSWAP_SIM_COMPUTE).
enum sim_compute {
    SIM_SHAPES, // nothing is computed: allocations and order only, memory is not touched
    SIM_AUTO, // bodies compute where it is cheap and all that they read has values
    SIM_VALUES, // bodies compute on host memory that aliases the device's
};

enum sim_compute sim_compute(void);

// What a result rests on, beside what was read for it (SIM_AUTO).
enum sim_assumption {
    SIM_ASSUMES_NOTHING,
    SIM_ASSUMES_LIKELY, // that numbers not computed are finite, or fall so by chance
    SIM_ASSUMES_ANSWER, // an answer that the card might not give
};

// At which of the card's rates arithmetic is done.
enum sim_rate {
    SIM_RATE_FP32,
    SIM_RATE_FP64,
    SIM_RATE_TF32,
    SIM_RATE_FP16,
    SIM_RATE_BF16,
    SIM_RATE_FP8,
    SIM_RATE_INT8,
};

// What work asks of the card, for the virtual clock.
struct sim_effort {
    unsigned kernels; // launched; 0: it takes no time, on the host neither
    double flops;
    enum sim_rate rate;
    double bytes; // of device memory, read and written
    bool dispatched; // the host came through a framework's dispatcher
    bool unknown; // it takes longer than all this, nobody knows how much
};

// One operator body's work. `run` is called at most once, or, if the stream was captured
// (sim_captures), once for each replay, never twice at a time; it must not call
// CUDA and must not wait for any other thread. `destroy` is called once, after that: there,
// or on the thread that destroys the graph. Both may be NULL: the work takes its time on
// the stream and computes nothing.
struct sim_work {
    const char *name; // operator, for messages; must live as long as the process
    void (*run)(void *arg);
    void (*destroy)(void *arg);
    void *arg;
    enum sim_assumption assumes;
    const struct sim_effort *effort; // NULL: one kernel for the accesses
};

// Of each `step` bytes, counted from the first, the first `run`.
struct sim_rows {
    size_t step, run;
};

enum { SIM_ROWS = 2 };

// What a piece of work reads and writes, in device memory. kernels.py of simcuda_torch has
// it, too.
struct sim_access {
    const void *address;
    size_t bytes;
    bool write;
    bool unread; // written without being read first
    bool gaps; // some of the bytes are not the tensor's
    struct sim_rows rows[SIM_ROWS]; // where it lies: each holds; a step of 0: no more
};

// Queues work behind everything that `stream` (a cudaStream_t, NULL is the legacy
// stream) is ordered after. The accesses are copied. Returns a cudaError_t. Under
// SIM_AUTO it runs only if all that it reads has values; what it writes then has, too.
int sim_submit(void *stream, const struct sim_work *work,
               const struct sim_access *accesses, size_t count);

// True if what is submitted to the stream becomes part of a graph.
bool sim_captures(void *stream);

// Between enter and leave, this thread runs the framework's own CUDA host code for its
// allocations only: kernel launches, device memsets and copies into device memory do
// nothing, and a copy from device to host is an error that names `op` (its host code
// needs a value; such an operator must have a body of its own), unless `readable` says of
// its source that it was computed before. Calls nest.
void sim_host_pass_enter(const char *op);
void sim_host_pass_leave(void);
bool sim_in_host_pass(void);
const char *sim_host_pass_name(void);
void sim_host_pass_readable(bool (*readable)(const void *address));

// A kernel launch outside a host pass is an error under SIM_VALUES: no body computed it.
// Between these two, launches are known to be harmless and pass.
void sim_launches_allow(void);
void sim_launches_forbid(void);

// Names what the thread's next launch of that kernel writes: under SIM_AUTO only this
// loses its values, and not everything on every device. What it is known to read may be
// named, too, for the checker. It holds for one launch, or until sim_launch_end(); kernel
// and accesses must stay that long.
void sim_launch_begin(const char *kernel, const struct sim_access *accesses,
                      size_t count);
void sim_launch_end(void);

// True where a closed library's call, which may launch anything, does nothing and is no
// error. Under SIM_AUTO nothing has values after it, nor after any graph from then on,
// unless it is in a host pass or allowed.
bool sim_launches_do_nothing(void);

// --- Which memory has values (SIM_AUTO)

enum sim_values {
    SIM_UNKNOWN, // not computed: a read by the program gives a placeholder
    SIM_ASSUMED, // computed from an assumption
    SIM_LIKELY, // from no other assumption than SIM_ASSUMES_LIKELY: sizes may hang on it
    SIM_KNOWN, // what the card would have
};

// The most that one operator may read and write to be computed, and a copy to the device
// to be made, in bytes of each kind of number. `heavy`: work grows faster than bytes.
enum {
    SIM_AUTO_INTEGERS = 16 << 20,
    SIM_AUTO_FLOATS = 1 << 20,
    SIM_AUTO_FLOATS_HEAVY = 256 << 10,
};

// The least of what is known of the bytes, once all work that was submitted is done.
enum sim_values sim_values_get(const void *address, size_t bytes);

// What the thread's copies move, until the next call: one element, which stands for
// those that have no value, and whether they are integers. NULL: not known, a zero byte.
struct sim_element {
    unsigned char placeholder[16];
    size_t bytes;
    bool known, integers;
};

void sim_element_set(const struct sim_element *element);

// Counted for the report: reads by the program of what was not computed, of what rests
// on assumptions, operators that were refused for lack of values, and launches of which
// nothing is known, so that nothing had values after them.
struct sim_missed {
    unsigned long unknown, assumed, refused, forgotten;
};

void sim_missed_read(enum sim_values values);
void sim_missed_refuse(void);
void sim_missed_get(struct sim_missed *missed);

// --- The checker (ACTSWAP_SIM_CHECK); each does nothing while it is off

// The host reads or writes memory that copies may be using: pinned memory. `name` is who
// does so, for messages, and lives as long as the process.
void sim_check_host(const void *address, size_t bytes, bool write, const char *name);

// A block of device memory was given out, or given back, by an allocator above the
// runtime's. Calls no Python.
void sim_check_block(const void *address, size_t bytes, bool allocated);

// Who knows at which line of the program the calling thread is: a text that lives as long
// as the process, or NULL.
void sim_check_lines(const char *(*line)(void));

// Between 1 and -1 what the calling thread does is not its program's: nothing is compared,
// and what it waits for it has not been told.
void sim_check_pause(int by);

struct sim_races {
    bool checked;
    unsigned long pairs; // of places, each reported once
    unsigned long accesses; // that raced
    unsigned long unwritten; // places that read what nothing has written
};

void sim_races_get(struct sim_races *races);

// --- The virtual clock (order/timeline.h)

// In virtual nanoseconds since the first call. A stream of kernels that has worked before
// *stalls* while it has nothing to do; why is what the kernel that comes then was waiting
// for.
struct sim_times {
    uint64_t now_ns; // the host's
    uint64_t end_ns; // when all that was submitted is over, too
    uint64_t kernels_ns, in_ns, out_ns; // how long kernels and copies ran, each by itself
    uint64_t in_hidden_ns, out_hidden_ns; // the copies' time while a kernel ran
    uint64_t stalled_in_ns, stalled_out_ns; // for a copy from the host, to the host
    uint64_t stalled_kernels_ns; // for another stream
    uint64_t stalled_host_ns; // for the host to submit something
    unsigned long kernels;
    unsigned long unknown; // of them, how long they take is not known
};

// Of one device, or the sum over all: -1.
void sim_times_get(int device, struct sim_times *times);

// Waits for the stream as cudaStreamSynchronize does; a cudaError_t.
int sim_drain(void *stream);

// Waits for the stream as a copy of so many bytes to the host does that brings nothing.
int sim_read(void *stream, size_t bytes);

// The reserved address range of a device, or NULL.
void *sim_arena(int device, size_t *bytes);

// True if the address lies in any device's memory.
bool sim_is_device(const void *address);

// Calls into stand-ins for closed libraries so far; a run's results stand only if 0.
unsigned long sim_closed_calls(void);

// Looks for libraries of NVIDIA's in this process. 0: none. Else 1, with a sentence in
// `message` that names the file.
int sim_guard(char *message, size_t bytes);

// What a piece of work found stops the device, as a failed assertion in a kernel stops a
// card: no work runs any more, and calls return cudaErrorAssert, whose text (`text`, cut
// at 400 bytes) says what it was. The first one stays. Prints one line.
void sim_assert(const char *text);
bool sim_asserted(void);

// Prints one line ("simcuda: error: ...") and ends the process with status 70: a number
// would be wrong from here on.
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#ifdef __cplusplus
}
#endif

#endif
