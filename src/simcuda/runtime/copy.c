// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/check/check.h"
#include "simcuda/order/queue.h"
#include "simcuda/runtime/cost.h"
#include "simcuda/runtime/launch.h"
#include "simcuda/runtime/memory.h"
#include "simcuda/runtime/values.h"
#include "simcuda/simcuda.h"

// What a copy moves, and when the host may go on, is the table in NVIDIA's "API
// synchronization behavior". Where the device has no values a copy to the host gives
// placeholders up to these sizes, so that a program that reads a flag or a loss goes on;
// above them the host's bytes stay, so that the host's memory is not used up. Who moves
// bytes of no known type to pinned memory parks them there, and gets the least.
enum {
    SHAPES_READ_MAX = 4096,
    AUTO_READ_MAX = 64 << 20,
    AUTO_PARKED_MAX = 4096,
};

struct copy {
    char *to;
    const char *from; // NULL: the placeholder
    size_t to_pitch, from_pitch;
    size_t width, rows;
    void *staged; // the host bytes as they were at the call
    struct sim_element element;
};

struct sides {
    struct sim_location to, from;
};

static bool on_host(enum sim_place place)
{
    return place != SIM_DEVICE && place != SIM_MANAGED;
}

static size_t span(size_t pitch, size_t width, size_t rows)
{
    return rows ? (rows - 1) * pitch + width : 0;
}

static void place(char *to, size_t bytes, const struct sim_element *element)
{
    size_t done = element->bytes < bytes ? element->bytes : bytes;

    memcpy(to, element->placeholder, done);
    while (done < bytes) {
        const size_t more = done < bytes - done ? done : bytes - done;

        memcpy(to + done, to, more);
        done += more;
    }
}

static bool is_placed(const char *bytes, size_t count, const struct sim_element *element)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != (char)element->placeholder[i % element->bytes])
            return false;
    return true;
}

static void run_copy(void *arg)
{
    const struct copy *copy = arg;

    if (!copy->from) {
        for (size_t row = 0; row < copy->rows; row++)
            place(copy->to + row * copy->to_pitch, copy->width, &copy->element);
        sim_values_landed_host(copy->to, span(copy->to_pitch, copy->width, copy->rows));
        return;
    }
    for (size_t row = 0; row < copy->rows; row++)
        memmove(copy->to + row * copy->to_pitch, copy->from + row * copy->from_pitch,
                copy->width);
}

static void destroy_copy(void *arg)
{
    struct copy *copy = arg;

    free(copy->staged);
    free(copy);
}

// True if the kind of copy and the memory agree.
static bool locate(const struct copy *copy, enum cudaMemcpyKind kind, struct sides *sides)
{
    sides->to = sim_memory_locate(copy->to);
    sides->from = sim_memory_locate(copy->from);

    const bool to_device =
        kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device =
        kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;

    if ((unsigned)kind > cudaMemcpyDefault)
        return false;
    if ((to_device && sides->to.place == SIM_PAGEABLE) ||
        (from_device && sides->from.place == SIM_PAGEABLE))
        return false;
    return (sides->to.place == SIM_PAGEABLE ||
            span(copy->to_pitch, copy->width, copy->rows) <= sides->to.bytes_after) &&
           (sides->from.place == SIM_PAGEABLE ||
            span(copy->from_pitch, copy->width, copy->rows) <= sides->from.bytes_after);
}

// What the framework's host code copies between operators' bodies. A read that it may not
// make is an error of a package's operator, and ends the run for the framework's own.
static bool skipped(const struct copy *copy, const struct sides *sides,
                    cudaError_t *error)
{
    *error = cudaSuccess;
    if (!sim_in_host_pass())
        return false;
    if (sides->to.place == SIM_DEVICE)
        return true;
    if (sides->from.place != SIM_DEVICE || sim_host_pass_reads(copy->from))
        return false;
    if (!strncmp(sim_host_pass_name(), "aten::", strlen("aten::")))
        sim_fail("operator %s: its host code reads a value from the device; it needs a "
                 "body of its own",
                 sim_host_pass_name());
    fprintf(stderr,
            "simcuda: %s reads values that are not computed; use values (actswap "
            "rehearse --compute values)\n",
            sim_host_pass_name());
    sim_missed_refuse();
    *error = cudaErrorNotSupported;
    return true;
}

// --- What has values (SIM_AUTO)

// Pinned memory that took a copy of what has no values still stands for that, unless the
// host has written there since.
static enum sim_values values_of_pinned(const char *from, size_t bytes)
{
    const enum sim_values values = sim_values_get_host(from, bytes);
    const size_t looked_at = bytes < AUTO_PARKED_MAX ? bytes : AUTO_PARKED_MAX;

    if (values != SIM_UNKNOWN || sim_values_awaited_host(from, looked_at) ||
        is_placed(from, looked_at, sim_element_get()))
        return values;
    sim_values_set_host(from, bytes, SIM_KNOWN);
    return SIM_KNOWN;
}

static enum sim_values values_of_host(const struct copy *copy, const struct sides *sides)
{
    const size_t most = sim_element_get()->integers ? SIM_AUTO_INTEGERS : SIM_AUTO_FLOATS;

    if (copy->width * copy->rows > most)
        return SIM_UNKNOWN;
    if (sides->from.place != SIM_PINNED)
        return SIM_KNOWN;
    return values_of_pinned(copy->from, span(copy->from_pitch, copy->width, copy->rows));
}

static enum sim_values values_of_source(const struct copy *copy,
                                        const struct sides *sides)
{
    if (sides->from.place == SIM_DEVICE)
        return sim_values_get(copy->from,
                              span(copy->from_pitch, copy->width, copy->rows));
    return sides->to.place == SIM_DEVICE ? values_of_host(copy, sides) : SIM_KNOWN;
}

static void enter_values(const struct copy *copy, const struct sides *sides,
                         enum sim_values values)
{
    for (size_t row = 0; row < copy->rows; row++) {
        const char *to = copy->to + row * copy->to_pitch;

        if (sides->to.place == SIM_DEVICE)
            sim_values_set(to, copy->width, values);
        else if (sides->to.place == SIM_PINNED && sides->from.place == SIM_DEVICE)
            sim_values_set_host(to, copy->width, values);
    }
}

// Whether bytes are written, and which: `copy` may be changed to place something else.
static bool moves_auto(struct copy *copy, const struct sides *sides, bool captured)
{
    const enum sim_values values = captured ? SIM_UNKNOWN : values_of_source(copy, sides);

    enter_values(copy, sides, values);
    if (values != SIM_UNKNOWN)
        return true;
    if (sides->to.place == SIM_DEVICE)
        return false;
    copy->from = NULL;
    copy->element = *sim_element_get();
    if (!copy->element.known && sides->to.place == SIM_PINNED && copy->rows == 1 &&
        copy->width > AUTO_PARKED_MAX)
        copy->width = AUTO_PARKED_MAX;
    return copy->width * copy->rows <= AUTO_READ_MAX;
}

static bool moves(struct copy *copy, const struct sides *sides, bool captured)
{
    if (sim_compute() == SIM_VALUES)
        return true;
    if (sim_compute() == SIM_AUTO)
        return moves_auto(copy, sides, captured);
    if (sides->to.place == SIM_DEVICE)
        return false;
    return sides->from.place != SIM_DEVICE || copy->width * copy->rows <= SHAPES_READ_MAX;
}

static bool stage(struct copy *copy)
{
    copy->staged = malloc(copy->width * copy->rows + 1);
    if (!copy->staged)
        return false;
    for (size_t row = 0; row < copy->rows; row++)
        memcpy((char *)copy->staged + row * copy->width,
               copy->from + row * copy->from_pitch, copy->width);
    copy->from = copy->staged;
    copy->from_pitch = copy->width;
    return true;
}

static bool waits(const struct sides *sides, bool async)
{
    const bool to_host = on_host(sides->to.place), from_host = on_host(sides->from.place);

    if (to_host && from_host)
        return true;
    if (async)
        return sides->to.place == SIM_PAGEABLE;
    return to_host || (from_host && sides->from.place != SIM_PAGEABLE);
}

static const char *name_of(const struct sides *sides)
{
    if (on_host(sides->to.place))
        return on_host(sides->from.place) ? "copy on the host" : "copy to the host";
    return on_host(sides->from.place) ? "copy to the device" : "copy on the device";
}

// Pageable memory is taken at the call, or waited for.
static struct sim_access access_of(const void *address, size_t pitch,
                                   const struct copy *copy)
{
    const bool gaps = copy->rows > 1 && pitch > copy->width;

    return (struct sim_access){
        .address = address,
        .bytes = span(pitch, copy->width, copy->rows),
        .gaps = gaps,
        .rows = {{.step = gaps ? pitch : 0, .run = copy->width}},
    };
}

static size_t list_accesses(const struct copy *copy, const struct sides *sides,
                            bool captured, struct sim_access accesses[2])
{
    size_t count = 0;

    // What a replay copies between host addresses has values.
    if (captured && on_host(sides->to.place) && on_host(sides->from.place))
        return 0;
    if (sides->to.place != SIM_PAGEABLE) {
        accesses[count] = access_of(copy->to, copy->to_pitch, copy);
        accesses[count].write = true;
        accesses[count++].unread = true;
    }
    if (sides->from.place != SIM_PAGEABLE)
        accesses[count++] = access_of(copy->from, copy->from_pitch, copy);
    return count;
}

static cudaError_t queue_copy(struct copy *copy, const struct sides *sides,
                              cudaStream_t stream, bool async)
{
    // A node reads the host's bytes at each replay, and no call waits for it.
    const bool captured = sim_stream_is_captured(stream);
    const bool staged =
        sides->from.place == SIM_PAGEABLE && !on_host(sides->to.place) && !captured;
    const size_t bytes = copy->width * copy->rows;
    struct sim_access accesses[2];
    const size_t count = list_accesses(copy, sides, captured, accesses);
    const bool move = moves(copy, sides, captured);
    cudaError_t error = cudaSuccess;

    if (staged && !async)
        error = sim_queue_synchronize(stream);
    if (!error && staged && move && !stage(copy))
        error = cudaErrorMemoryAllocation;
    if (error) {
        destroy_copy(copy);
        return error;
    }

    const struct sim_task task = {
        .name = name_of(sides),
        .line = sim_check_line(),
        .run = move ? run_copy : NULL,
        .destroy = move ? destroy_copy : NULL,
        .arg = copy,
        .type = cudaGraphNodeTypeMemcpy,
        .cost = sim_cost_copy(&sides->to, &sides->from, bytes, staged),
        .lost = {accesses, count, false},
        .moved = {bytes, (int)sides->from.place, (int)sides->to.place},
    };

    // Of an entry without `run` nothing is destroyed.
    if (!move)
        destroy_copy(copy);
    return waits(sides, async) ? sim_queue_perform(stream, &task)
                               : sim_queue_submit(stream, &task);
}

static cudaError_t copy_bytes(const struct copy *what, enum cudaMemcpyKind kind,
                              cudaStream_t stream, bool async)
{
    struct sides sides;
    cudaError_t error;

    if (!what->width || !what->rows)
        return cudaSuccess;
    if (!what->to || !what->from || !locate(what, kind, &sides))
        return cudaErrorInvalidValue;
    sim_device_activate();
    if (skipped(what, &sides, &error))
        return error;

    struct copy *copy = malloc(sizeof(*copy));

    if (!copy)
        return cudaErrorMemoryAllocation;
    *copy = *what;
    return queue_copy(copy, &sides, stream, async);
}

static struct copy flat(void *to, const void *from, size_t bytes)
{
    return (struct copy){to, from, bytes, bytes, bytes, 1, NULL, {.bytes = 1}};
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    SIM_ENTER_UNSAFE();
    const struct copy copy = flat(to, from, bytes);

    return sim_error(copy_bytes(&copy, kind, NULL, false));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    SIM_ENTER();
    const struct copy copy = flat(to, from, bytes);

    return sim_error(copy_bytes(&copy, kind, stream, true));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                int from_device, size_t bytes, cudaStream_t stream)
{
    SIM_ENTER();
    const struct copy copy = flat(to, from, bytes);

    if (!sim_device(to_device) || !sim_device(from_device))
        return sim_error(cudaErrorInvalidDevice);
    return sim_error(copy_bytes(&copy, cudaMemcpyDeviceToDevice, stream, true));
}

static cudaError_t copy_rows(const struct copy *copy, enum cudaMemcpyKind kind,
                             cudaStream_t stream, bool async)
{
    if (copy->width > copy->to_pitch || copy->width > copy->from_pitch)
        return cudaErrorInvalidPitchValue;
    return copy_bytes(copy, kind, stream, async);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    SIM_ENTER();
    const struct copy copy = {to,    from,   to_pitch, from_pitch,
                              width, height, NULL,     {.bytes = 1}};

    return sim_error(copy_rows(&copy, kind, stream, true));
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    SIM_ENTER_UNSAFE();
    const struct copy copy = {to,    from,   to_pitch, from_pitch,
                              width, height, NULL,     {.bytes = 1}};

    return sim_error(copy_rows(&copy, kind, NULL, false));
}

int sim_read(void *stream, size_t bytes)
{
    SIM_TRACE("cudaMemcpyAsync");
    const cudaError_t refused = sim_enter(__func__, __builtin_return_address(0));

    if (refused)
        return (int)refused;

    const struct sim_location to = {.place = SIM_PINNED},
                              from = {.place = SIM_DEVICE,
                                      .device = sim_device_activate()->index};

    return (int)sim_error(
        sim_queue_perform(stream, &(struct sim_task){
                                      .name = "copy to the host",
                                      .type = cudaGraphNodeTypeMemcpy,
                                      .cost = sim_cost_copy(&to, &from, bytes, false),
                                      .moved = {bytes, SIM_DEVICE, SIM_PINNED},
                                  }));
}

struct fill {
    void *to;
    int value;
    size_t bytes;
};

static void run_fill(void *arg)
{
    const struct fill *fill = arg;

    memset(fill->to, fill->value, fill->bytes);
}

static cudaError_t fill_bytes(void *to, int value, size_t bytes, cudaStream_t stream,
                              bool async)
{
    if (!bytes)
        return cudaSuccess;

    const struct sim_location location = sim_memory_locate(to);
    const bool on_device = location.place == SIM_DEVICE;

    if (location.place == SIM_PAGEABLE || bytes > location.bytes_after)
        return cudaErrorInvalidValue;
    sim_device_activate();
    if (on_device && sim_in_host_pass())
        return cudaSuccess;

    const bool known = sim_compute() != SIM_AUTO ||
                       (bytes <= SIM_AUTO_FLOATS && !sim_stream_is_captured(stream));
    const bool fills = !on_device || (sim_compute() != SIM_SHAPES && known);
    struct fill *fill = fills ? malloc(sizeof(*fill)) : NULL;

    if (on_device)
        sim_values_set(to, bytes, known ? SIM_KNOWN : SIM_UNKNOWN);

    if (fills && !fill)
        return cudaErrorMemoryAllocation;
    if (fills)
        *fill = (struct fill){to, value, bytes};

    const struct sim_access written = {
        .address = to, .bytes = bytes, .write = true, .unread = true};
    const struct sim_task task = {
        .name = "memset",
        .line = sim_check_line(),
        .run = fills ? run_fill : NULL,
        .destroy = fills ? free : NULL,
        .arg = fill,
        .cost = sim_cost_fill(bytes, on_device),
        .type = cudaGraphNodeTypeMemset,
        .lost = {&written, 1, false},
        .moved = {bytes, (int)location.place, (int)location.place},
    };

    return async || on_device ? sim_queue_submit(stream, &task)
                              : sim_queue_perform(stream, &task);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    SIM_ENTER_UNSAFE();
    return sim_error(fill_bytes(to, value, bytes, NULL, false));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    SIM_ENTER();
    return sim_error(fill_bytes(to, value, bytes, stream, true));
}
