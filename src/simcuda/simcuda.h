// SPDX-License-Identifier: Apache-2.0
#ifndef AS_SIMCUDA_SIMCUDA_H
#define AS_SIMCUDA_SIMCUDA_H

// simcuda, seen from the operator bodies and from tests: what a CUDA program cannot say
// through the runtime API. Exported by the simulated runtime library beside cuda*.
//
// The device's memory is host memory in one reserved range per device. All work on
// streams (copies, memsets, host functions, operator bodies) becomes entries of the C
// queue in src/simcuda/order, which runs them on one thread of its own, in an order
// that the program's own synchronisation allows.
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
    SIM_VALUES, // bodies compute on host memory that aliases the device's
};

enum sim_compute sim_compute(void);

// One operator body's work. `run` is called at most once, or, if the stream was captured
// (sim_captures), once for each replay, never twice at a time, on the queue's thread; it
// must not call CUDA and must not wait for any other thread. `destroy` is called once,
// after that: on the queue's thread, or on that which destroys the graph.
struct sim_work {
    const char *name; // operator, for messages; must live as long as the process
    void (*run)(void *arg);
    void (*destroy)(void *arg);
    void *arg;
};

// What a piece of work reads and writes, in device memory.
struct sim_access {
    const void *address;
    size_t bytes;
    bool write;
};

// Queues work behind everything that `stream` (a cudaStream_t, NULL is the legacy
// stream) is ordered after. The accesses are copied. Returns a cudaError_t.
int sim_submit(void *stream, const struct sim_work *work,
               const struct sim_access *accesses, size_t count);

// True if what is submitted to the stream becomes part of a graph.
bool sim_captures(void *stream);

// Between enter and leave, this thread runs the framework's own CUDA host code for its
// allocations only: kernel launches, device memsets and copies into device memory do
// nothing, and a copy from device to host is an error that names `op` (its host code
// needs a value; such an operator must have a body of its own). Calls nest.
void sim_host_pass_enter(const char *op);
void sim_host_pass_leave(void);
bool sim_in_host_pass(void);

// A kernel launch outside a host pass is an error under SIM_VALUES: no body computed it.
// Between these two, launches are known to be harmless and pass.
void sim_launches_allow(void);
void sim_launches_forbid(void);

// True where a launch by this thread does nothing and is no error.
bool sim_launches_do_nothing(void);

// Waits for the stream as cudaStreamSynchronize does; a cudaError_t.
int sim_drain(void *stream);

// The reserved address range of a device, or NULL.
void *sim_arena(int device, size_t *bytes);

// True if the address lies in any device's memory.
bool sim_is_device(const void *address);

// Calls into stand-ins for closed libraries so far; a run's results stand only if 0.
unsigned long sim_closed_calls(void);

// Looks for libraries of NVIDIA's in this process. 0: none. Else 1, with a sentence in
// `message` that names the file.
int sim_guard(char *message, size_t bytes);

// Prints one line ("simcuda: error: ...") and ends the process with status 70: a number
// would be wrong from here on.
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#ifdef __cplusplus
}
#endif

#endif
