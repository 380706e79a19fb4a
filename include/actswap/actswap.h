// SPDX-License-Identifier: Apache-2.0
#ifndef ACTSWAP_ACTSWAP_H
#define ACTSWAP_ACTSWAP_H

// The C interface between a framework and libactswap.
//
// A framework (the PyTorch adapter, or a trainer written in C) says what happens:
// which tensors it saves for backward, where blocks begin and end, when a step is
// over. The library decides: what stays, what is copied to host memory and when it is
// let go, and which blocks are worth recomputing. It asks the framework for two things
// only, the verbs below.
//
// Glossary
//   saved tensor  a tensor that forward keeps for backward
//   page          one saved storage under the library's care
//   resident      the bytes are on the device
//   pinned        page-locked host memory, which a copy engine can reach by itself
//   evict         let go of the device copy of a page
//   offload       the policy that evicts; bytes go "out" to the host and come "in" again
//   recompute     the policy that keeps a block's inputs and runs its forward again
//   released      a free event from the framework's allocator after we let go
//   block         a repeated part of the model, such as one transformer layer
//   part          any other part of it: it has a name in the report, nothing is decided
//   step          from one optimizer update to the next
//
// Errors: functions return 0 or a negative errno unless they say otherwise. No error of
// the library is an error of the user's run: the tensor then stays where it is.
//
// Thread-safety: every function may be called from any thread. Verbs are called on the
// thread that called into the library, with no lock of the library held.
//
// Compatibility: each struct begins with its own size, so that an older framework and a
// newer library agree on the fields that both know.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACTSWAP_ABI_VERSION 1

// The version of this interface that the loaded library speaks.
int actswap_abi_version(void);

// The release, such as "0.1.0".
const char *actswap_version(void);

// --- What the library asks of the framework

struct actswap_verbs {
    size_t size;

    // Device memory of `bytes` bytes, whose first use is ordered on `stream`. Returns
    // the framework's reference, with its address in *address, or NULL when there is
    // none. The library owns the reference until it passes it to release().
    void *(*allocate)(void *context, int device, size_t bytes, void *stream,
                      void **address);

    // Drops a reference that the library owned.
    void (*release)(void *context, void *ref);

    // Who asks, for the report, such as "torch 2.15.0"; NULL: nobody says.
    const char *framework;

    // How many hold the storage behind `ref` beside this reference, which the library
    // owns. While there are any it keeps its own: letting go would free nothing, and the
    // storage would have to be brought in beside the one that lives. NULL: not known; it
    // lets go all the same.
    size_t (*holders)(void *context, void *ref);

    // How the names of native functions begin that lie between the script's code and a
    // save and say nothing of either, divided by newlines: the report leaves them out of
    // native stacks. NULL: there are none.
    const char *glue;

    // Around a wait for a disk, in which this thread calls no other verb: it may let go of
    // a lock that the framework's other threads need. resume() gets what pause() returned.
    // NULL: there is none.
    void *(*pause)(void *context);
    void (*resume)(void *context, void *paused);
};

// Connects the one framework of this process. `verbs` and `context` must outlive it.
// -EBUSY: one is attached already. -EINVAL: a verb is missing. -ENODEV: the library has
// seen no CUDA runtime yet.
int actswap_attach(const struct actswap_verbs *verbs, void *context);

// Stops all decisions: later saves stay where they are. Live pages keep working. Call
// it before the framework's verbs become invalid, and before the process ends: what is
// still to be read from the device (losses) is read here, which takes a second at most.
void actswap_detach(void);

// --- What memory holds

enum actswap_category {
    ACTSWAP_UNKNOWN,
    ACTSWAP_PARAMETER, // also what else a model keeps, such as buffers and copies of it
    ACTSWAP_GRADIENT, // of parameters; what else a backward makes is temporary
    ACTSWAP_OPTIMIZER_STATE,
    ACTSWAP_ACTIVATION, // made by a forward, kept for its backward or by the script
    ACTSWAP_INPUT, // older than the forward that uses it
    ACTSWAP_TEMPORARY, // freed by the phase that made it
    ACTSWAP_WORKSPACE, // kept by a library of the framework's, in no tensor of the script
    ACTSWAP_CACHED, // kept by the framework's allocator
    ACTSWAP_CONTEXT, // the driver's own
    ACTSWAP_COMM, // of libraries that talk to other devices
    ACTSWAP_CATEGORIES,
};

const char *actswap_category_name(enum actswap_category category);

// --- What memory there is: the kinds that a program takes from the driver

enum actswap_memory {
    ACTSWAP_MEMORY_DEVICE,
    ACTSWAP_MEMORY_PINNED, // host memory of the driver's
    ACTSWAP_MEMORY_REGISTERED, // host memory of the program's, pinned in place
    ACTSWAP_MEMORY_MANAGED, // moves between both
    ACTSWAP_MEMORY_IMPORTED, // another process's device memory
    ACTSWAP_MEMORY_GRAPH, // addresses of graphs, which have memory while they run
    ACTSWAP_MEMORIES,
};

const char *actswap_memory_name(enum actswap_memory kind);

// --- Saved tensors

struct actswap_page;

// Why a saved tensor was left where it is. Values are stable; names for people come from
// actswap_reason_name().
enum actswap_reason {
    ACTSWAP_KEPT_NOT = 0, // it has a page
    ACTSWAP_KEPT_POLICY, // the policy does not offload here
    ACTSWAP_KEPT_SMALL, // smaller than the floor
    ACTSWAP_KEPT_PART, // uses less than a quarter of its storage
    ACTSWAP_KEPT_OLD, // born before this forward: a parameter, buffer or cache
    ACTSWAP_KEPT_UNKNOWN, // address not known to the ledger
    ACTSWAP_KEPT_CAPTURE, // a stream capture is in progress
    ACTSWAP_KEPT_HOST_FULL, // no pinned memory left
    ACTSWAP_KEPT_TAIL, // saved last: needed again at once
    ACTSWAP_KEPT_KIND, // not a plain strided device tensor (said by the framework)
    ACTSWAP_KEPT_BACKWARD, // saved while a backward runs
    ACTSWAP_KEPT_DETACHED, // no framework attached, or the library is switched off
    ACTSWAP_KEPT_DEVICE, // the device refused a call of ours
    ACTSWAP_KEPT_DISK, // no pinned memory left, and the disk is full, slow or failed
    ACTSWAP_KEPT_INSIDE, // made by the block that saves it, or saved outside of any
    ACTSWAP_KEPT_BUDGET, // the budget has room for it: as long as it does
    ACTSWAP_KEPT_COHERENT, // the device's memory is the host's, or as good as
    ACTSWAP_KEPT_HELD, // the program held it, too, when its backward began
    ACTSWAP_KEPT_REASONS, // how many there are
};

const char *actswap_reason_name(enum actswap_reason reason);

// One saved storage. Views of it (shape, stride, offset, dtype) are the framework's.
struct actswap_saved {
    size_t size;
    int device;
    void *address; // first byte of the storage
    size_t bytes; // of the storage
    size_t used_bytes; // of it that this tensor covers
    uint64_t version; // changes when the storage is written in place
    void *stream; // the stream that the saving code runs on
    void *ref; // keeps the storage alive
    enum actswap_category category; // if the framework knows it, else ACTSWAP_UNKNOWN
    uint32_t stack; // that saves it: of actswap_stack(), or 0
};

// Puts a saved storage under the library's care.
//
// Returns 0 and a page: the library then owns saved->ref. The same storage at the same
// version has one page however often it is saved, and each save must be dropped; a ref
// that is one too many goes back through release() before the call returns.
// Returns an actswap_reason above 0: nothing was taken, keep the tensor yourself.
int actswap_save(const struct actswap_saved *saved, struct actswap_page **page);

struct actswap_resident {
    size_t size;
    void *address; // first byte of the storage, for work on the stream given
    void *ref; // borrowed until this thread's next call into the library
};

// Makes the page's bytes usable by later work on `stream`, allocating and copying in
// when they are on the host only. May be called again, also after a further eviction.
// While `stream` is captured the host waits for the copy, which is not part of the graph,
// and the page stays where it is until its last drop. A storage that was given other
// memory since its save, or none, does not leave any more: `ref` is that storage as it is,
// and `address` what it was.
// -ENOMEM: the framework had no device memory. -EIO: the device refused the copy, or the
// disk gave back other bytes than were written.
int actswap_need(struct actswap_page *page, void *stream, struct actswap_resident *out);

// A saved storage that has no page is used, at this address: tells how long it waited, and
// which block a backward is at work on.
void actswap_used(int device, const void *address);

// Keeps a call stack for the report: its frames as text, "file.py:12 function", outermost
// first, divided by newlines. Returns the number that stands for it; when there is no more
// room, or for NULL (the caller has none), the one that stands for all further stacks. To
// be asked once for each stack.
uint32_t actswap_stack(const char *frames);

// Ends one save's interest in the page, used or not. NULL is accepted.
void actswap_drop(struct actswap_page *page);

// --- The framework's allocator

// Says what the framework's allocator hands out and takes back: where a tensor begins and
// ends is known to it alone when it keeps memory of its own. `reserved_bytes` is its total
// on that device after the event; `stream` is the one whose later work may use the memory
// without further order, also after it was freed. From the first call on, cudaMalloc and
// cudaFree no longer count as allocations of tensors. May be called under the allocator's
// lock: nothing is called back and no CUDA call is made. PyTorch's own events arrive here
// by themselves.
void actswap_allocated(int device, const void *address, size_t bytes,
                       size_t reserved_bytes, void *stream);
void actswap_freed(int device, const void *address, size_t bytes, size_t reserved_bytes);

// --- Structure of the run

enum actswap_edge { ACTSWAP_ENTER, ACTSWAP_EXIT };

enum actswap_verdict {
    ACTSWAP_KEEP,
    ACTSWAP_OFFLOAD,
    ACTSWAP_RECOMPUTE,
    ACTSWAP_TRIAL, // save all, run it again in backward as well, and say how that went
    ACTSWAP_RECOMPUTE_ON, // recompute, together with the block before it
};

// Says that this thread enters or leaves the forward of block `block` (any number that
// stays the same from step to step). Work of the block runs on `stream`. On entry the
// verdict on its activations is returned, on exit 0; a negative errno means keep.
// Blocks may nest; an exit must match the innermost entry.
int actswap_block(enum actswap_edge edge, uint64_t block, void *stream);

// What speaks against running a block again. Values are stable; sentences for people come
// from actswap_fault_text().
enum actswap_fault {
    ACTSWAP_FAULT_ERROR, // it raised an error
    ACTSWAP_FAULT_COUNT, // it saved another number of tensors
    ACTSWAP_FAULT_KIND, // of other shapes, types or strides
    ACTSWAP_FAULT_VALUES, // with other bits
    ACTSWAP_FAULT_RANDOM, // it left a random generator in another state
    ACTSWAP_FAULT_STATE, // it left the model, or the script, in another state
    ACTSWAP_FAULT_INPUT, // its input has changed in place
    ACTSWAP_FAULT_PARAMETER, // its parameters have changed in place
    ACTSWAP_FAULT_BUFFER, // it writes a tensor that cannot be put back
    ACTSWAP_FAULT_CHECKPOINT, // the script recomputes it, or a part of it, itself
    ACTSWAP_FAULT_HOOKS, // hooks of the script would run again
    ACTSWAP_FAULT_SAVES, // the script's own saved tensor hooks are at work
    ACTSWAP_FAULT_FORWARD, // compiled, scripted or with a forward of its own
    ACTSWAP_FAULT_CAPTURE, // a stream capture is in progress
    ACTSWAP_FAULT_SAMPLE, // not in a trial: a sample of what it saved had other bits
    ACTSWAP_FAULTS, // how many there are
};

const char *actswap_fault_text(enum actswap_fault fault);

// What was put back, so that running the block again left nothing behind.
enum actswap_repair {
    ACTSWAP_REPAIR_RANDOM = 1, // generators that the framework's checkpoint leaves alone
    ACTSWAP_REPAIR_STATE = 2, // attributes of modules, counters of the script
    ACTSWAP_REPAIR_BUFFERS = 4, // such as running statistics
};

// How one trial of a block went.
struct actswap_trial {
    size_t size;
    uint32_t faults; // 1 << enum actswap_fault
    uint32_t repairs; // enum actswap_repair
    uint64_t saved_bytes; // that the block saved; one storage counts once
    uint64_t boundary_bytes; // of its inputs, which recomputing keeps
    int values; // 1: bits were compared; 0: there were none to compare
};

// Whether device memory has values: not where a simulation computes none.
int actswap_values(void);

// Tells how a trial went. Nothing is recomputed before a trial without faults, nor after
// one with any.
void actswap_tried(uint64_t block, const struct actswap_trial *trial);

// Tells why a call of a block was left alone, untried. It may be tried at another one.
void actswap_skipped(uint64_t block, enum actswap_fault fault);

// Another block has this number from now on, as that of a model that was made anew: what was
// tried of the one before does not count for it.
void actswap_renewed(uint64_t block);

// Says that this thread enters or leaves the work of part `part`: what is made there bears
// its name in the report. Nothing is decided. Parts and blocks are told apart by one set of
// numbers and may nest in each other; a thread's parts are its own, also while it runs a
// part of the forward again inside of a backward. An exit also ends what was entered in
// between.
void actswap_part(enum actswap_edge edge, uint64_t part);

// What people call the block or part, such as "layers.3" or "layers.3.mlp". May be said
// again: the report has the last name.
void actswap_block_name(uint64_t block, const char *name);

enum actswap_moment {
    ACTSWAP_FORWARD, // the model's forward begins
    ACTSWAP_BACKWARD, // forward is over, backward begins
    ACTSWAP_BACKWARD_END,
    ACTSWAP_OPTIMIZER, // the optimizer's update begins
    ACTSWAP_STEP, // the update is done: a step is over
    ACTSWAP_AGAIN, // inside a backward, a part of the forward is run again
    ACTSWAP_AGAIN_END,
};

int actswap_mark(enum actswap_moment moment);

// Whether the run has had as many steps as its user wants (ACTSWAP_STEPS). Asked when a
// further step begins: the program is then to end as it does when all is done.
int actswap_enough(void);

// --- What only the framework knows

// Names what a live allocation holds, until it is freed. The address may point anywhere
// into it. -ENOENT: no such allocation. An activation or input never replaces another
// name. What is saved for backward is named by actswap_save() itself: an activation, or
// input if it is older than the forward.
int actswap_tag(int device, const void *address, enum actswap_category category);

// The same, unless it has a name.
int actswap_suggest(int device, const void *address, enum actswap_category category);

// Says that a tensor of the script holds the allocation. actswap_looked() says that all
// that are alive were looked at: what nobody was said to hold is then a library's own.
int actswap_held(int device, const void *address);
void actswap_looked(void);

// The bytes that a category will have once all of it is there, for the time before that.
void actswap_expect(enum actswap_category category, uint64_t bytes);

// Bytes alive without a name that were made after `moment` (ACTSWAP_STEP: between steps).
uint64_t actswap_unnamed(enum actswap_moment moment);

// Hands over the root of a backward (a loss), at most 16 bytes of device memory. Its
// bits are copied in the order of `stream` and end up in the report.
int actswap_root(int device, const void *address, size_t bytes, void *stream);

// Adds the bits of one gradient, in a fixed order of calls, to the digest of the step that
// the next ACTSWAP_STEP ends. Does nothing unless ACTSWAP_DIGEST is on (compare sets it):
// the bytes are copied out and `stream` is waited for.
int actswap_gradient(int device, const void *address, size_t bytes, void *stream);

// Counts something that was left alone, for the report: `what` is a short English
// phrase with a static life.
void actswap_note(const char *what);

// --- Figures

struct actswap_stats {
    size_t size;
    uint64_t live_bytes; // of device allocations, as the allocator rounds them
    uint64_t peak_bytes; // highest live_bytes of the run
    uint64_t reserved_bytes; // taken from the driver by the framework's allocator
    uint64_t peak_reserved_bytes;
    uint64_t step_peak_bytes; // highest live_bytes since the last step ended
    uint64_t step_peak_reserved_bytes;
    uint64_t after_forward_bytes; // live_bytes at the last ACTSWAP_BACKWARD
    uint64_t out_bytes; // copied to the host
    uint64_t in_bytes; // copied back
    uint64_t released_bytes; // freed by the allocator after we let go
    uint64_t pinned_bytes; // host memory held by the library
    uint64_t steps;
    uint64_t pages; // alive now
    uint64_t live_by_category[16]; // of live_bytes, by enum actswap_category
    uint64_t taken_by_kind[8]; // from the driver by the program and not given back,
        // by enum actswap_memory
};

// Fills in the fields that fit stats->size. Device 0 or the sum where that makes sense.
int actswap_stats(struct actswap_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
