// SPDX-License-Identifier: Apache-2.0
#include "c10.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <actswap/actswap.h>

#include "core/export.h"
#include "cuda/object.h"
#include "engine.h"

// c10::Device: passed by value, in one register.
struct c10_device {
    int8_t type, index;
};

// c10::cuda::CUDAStream: the device, in two bytes of eight, and a number.
struct c10_stream {
    int64_t device, number;
};

enum { DEVICE_CUDA = 1 };

// What C++ calls the functions; the signature has changed three times.
#define REPORT_1 "_ZN3c1027reportMemoryUsageToProfilerENS_6DeviceEl"
#define REPORT_2 "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE"
#define REPORT_3 "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
#define REPORT_4 "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define OOM_3 "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"
#define OOM_4 "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"

enum theirs {
    REAL_1,
    REAL_2,
    REAL_3,
    REAL_4,
    REAL_OOM_3,
    REAL_OOM_4,
    STREAM,
    HANDLE,
    THEIRS,
};

static struct {
    const char *library, *symbol;
    void *_Atomic address;
} theirs[THEIRS] = {
    [REAL_1] = {"libc10.so", REPORT_1, NULL},
    [REAL_2] = {"libc10.so", REPORT_2, NULL},
    [REAL_3] = {"libc10.so", REPORT_3, NULL},
    [REAL_4] = {"libc10.so", REPORT_4, NULL},
    [REAL_OOM_3] = {"libc10.so", OOM_3, NULL},
    [REAL_OOM_4] = {"libc10.so", OOM_4, NULL},
    // c10::cuda::getCurrentCUDAStream(device) and CUDAStream::stream()
    [STREAM] = {"libc10_cuda.so", "_ZN3c104cuda20getCurrentCUDAStreamEa", NULL},
    [HANDLE] = {"libc10_cuda.so", "_ZNK3c104cuda10CUDAStream6streamEv", NULL},
};

// PyTorch loads its libraries locally, so the next symbol is none of theirs.
static void *look_up(enum theirs which)
{
    char name[AS_OBJECT_NAME];
    void *handle = as_object_find(theirs[which].library, name)
                       ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD)
                       : NULL;
    if (!handle)
        return NULL;
    void *address = dlsym(handle, theirs[which].symbol);
    dlclose(handle); // the count goes back to what it was; the object stays loaded
    return as_object_same(address, theirs) ? NULL : address;
}

static void *find(enum theirs which)
{
    void *address = theirs[which].address;
    if (address)
        return address;

    const int saved_errno = errno;
    address = look_up(which);
    theirs[which].address = address;
    errno = saved_errno;
    return address;
}

void as_c10_prepare(void)
{
    static bool _Atomic prepared;
    char name[AS_OBJECT_NAME];

    // The last of the two to be loaded. Symbols of other versions stay unknown.
    if (prepared || !as_object_find(theirs[STREAM].library, name))
        return;
    prepared = true;
    for (int i = 0; i < THEIRS; i++)
        find((enum theirs)i);
}

// The stream that PyTorch allocates on, which is its current one. The handle behind a
// number stays the same for good, and number 0 is the legacy stream: asking for a handle
// switches devices and back, which this saves in each allocation.
static void *current_stream(int8_t device)
{
    static __thread struct c10_stream last __attribute__((tls_model("initial-exec")));
    static __thread void *handle __attribute__((tls_model("initial-exec")));
    struct c10_stream (*get)(int8_t) = (struct c10_stream(*)(int8_t))find(STREAM);
    void *(*handle_of)(const struct c10_stream *) =
        (void *(*)(const struct c10_stream *))find(HANDLE);
    if (!get || !handle_of)
        return NULL;

    const struct c10_stream stream = get(device);
    if (stream.number == 0)
        return NULL;
    if (stream.number != last.number || (int16_t)stream.device != (int16_t)last.device) {
        handle = handle_of(&stream);
        last = stream;
    }
    // cppcheck-suppress returnDanglingLifetime ; it is no part of it
    return handle;
}

static void tell(void *address, int64_t bytes, size_t reserved_bytes,
                 struct c10_device device)
{
    if (device.type != DEVICE_CUDA || bytes == 0)
        return;
    const int saved_errno = errno;
    if (bytes > 0)
        actswap_allocated(device.index, address, (size_t)bytes, reserved_bytes,
                          current_stream(device.index));
    else
        actswap_freed(device.index, address, (size_t)-bytes, reserved_bytes);
    errno = saved_errno;
}

static void tell_out_of_memory(int64_t asked, size_t allocated, size_t reserved,
                               struct c10_device device)
{
    if (device.type == DEVICE_CUDA)
        as_engine_out_of_memory((uint64_t)asked, allocated, reserved);
}

// --- The interposed functions. PyTorch's profiler gets every event first.

// Up to 1.6: no address, so nothing to keep books on.
typedef void report_1_fn(struct c10_device device, int64_t bytes);
void as_c10_report_1(struct c10_device device, int64_t bytes) __asm__(REPORT_1);
AS_EXPORT void as_c10_report_1(struct c10_device device, int64_t bytes)
{
    report_1_fn *real = (report_1_fn *)find(REAL_1);

    if (real)
        real(device, bytes);
}

typedef void report_2_fn(void *address, int64_t bytes, struct c10_device device);
void as_c10_report_2(void *address, int64_t bytes,
                     struct c10_device device) __asm__(REPORT_2);
AS_EXPORT void as_c10_report_2(void *address, int64_t bytes, struct c10_device device)
{
    report_2_fn *real = (report_2_fn *)find(REAL_2);

    if (real)
        real(address, bytes, device);
    tell(address, bytes, SIZE_MAX, device);
}

typedef void report_3_fn(void *address, int64_t bytes, int64_t allocated,
                         int64_t reserved, struct c10_device device);
void as_c10_report_3(void *address, int64_t bytes, int64_t allocated, int64_t reserved,
                     struct c10_device device) __asm__(REPORT_3);
AS_EXPORT void as_c10_report_3(void *address, int64_t bytes, int64_t allocated,
                               int64_t reserved, struct c10_device device)
{
    report_3_fn *real = (report_3_fn *)find(REAL_3);

    if (real)
        real(address, bytes, allocated, reserved, device);
    tell(address, bytes, (size_t)reserved, device);
}

typedef void report_4_fn(void *address, int64_t bytes, size_t allocated, size_t reserved,
                         struct c10_device device);
void as_c10_report_4(void *address, int64_t bytes, size_t allocated, size_t reserved,
                     struct c10_device device) __asm__(REPORT_4);
AS_EXPORT void as_c10_report_4(void *address, int64_t bytes, size_t allocated,
                               size_t reserved, struct c10_device device)
{
    report_4_fn *real = (report_4_fn *)find(REAL_4);

    if (real)
        real(address, bytes, allocated, reserved, device);
    tell(address, bytes, reserved, device);
}

typedef void oom_3_fn(int64_t asked, int64_t allocated, int64_t reserved,
                      struct c10_device device);
void as_c10_oom_3(int64_t asked, int64_t allocated, int64_t reserved,
                  struct c10_device device) __asm__(OOM_3);
AS_EXPORT void as_c10_oom_3(int64_t asked, int64_t allocated, int64_t reserved,
                            struct c10_device device)
{
    oom_3_fn *real = (oom_3_fn *)find(REAL_OOM_3);

    if (real)
        real(asked, allocated, reserved, device);
    tell_out_of_memory(asked, (size_t)allocated, (size_t)reserved, device);
}

typedef void oom_4_fn(int64_t asked, size_t allocated, size_t reserved,
                      struct c10_device device);
void as_c10_oom_4(int64_t asked, size_t allocated, size_t reserved,
                  struct c10_device device) __asm__(OOM_4);
AS_EXPORT void as_c10_oom_4(int64_t asked, size_t allocated, size_t reserved,
                            struct c10_device device)
{
    oom_4_fn *real = (oom_4_fn *)find(REAL_OOM_4);

    if (real)
        real(asked, allocated, reserved, device);
    tell_out_of_memory(asked, allocated, reserved, device);
}
