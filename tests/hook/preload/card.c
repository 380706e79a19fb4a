// SPDX-License-Identifier: Apache-2.0
//
// Takes all that a card has, in every hooked way and with wrong arguments, and prints what
// each call said and left behind. A card that pretends to be small must print what the
// small card prints.
//
//   card fill       one thread, all ways
//   card two        two devices
//   card threads    many threads, until nobody finds room
//   card overlap    two threads whose memory fits together, all the time
//   card info       what the card says of itself, and one allocation
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define UNTOUCHED ((void *)(uintptr_t)0xabcdef)

enum { THREADS = 8, HELD = 512 };

// What `address` became: an address is another one on each run.
static void say(const char *call, int result, const void *address)
{
    const char *became = address == UNTOUCHED ? "untouched" : address ? "set" : "null";
    const int peeked = cudaPeekAtLastError();

    printf("%s: %d, %s, last %d, %d\n", call, result, became, peeked, cudaGetLastError());
}

static size_t say_info(void)
{
    size_t left = 1, total = 2, driver_left = 3, driver_total = 4, device_total = 5;
    struct cudaDeviceProp properties;
    const int result = cudaMemGetInfo(&left, &total);
    const int driver = cuMemGetInfo(&driver_left, &driver_total);
    const int size = cuDeviceTotalMem(&device_total, 0);
    const int told = cudaGetDeviceProperties(&properties, 0);

    printf("info %d: %zu of %zu; driver %d: %zu of %zu; %d: %zu; %d: %zu\n", result, left,
           total, driver, driver_left, driver_total, size, device_total, told,
           properties.totalGlobalMem);
    return left;
}

static void *take(const char *call, size_t bytes)
{
    void *address = UNTOUCHED;
    const int result = cudaMalloc(&address, bytes);

    say(call, result, address);
    return result ? NULL : address;
}

static void *take_async(const char *call, size_t bytes, cudaStream_t stream)
{
    void *address = UNTOUCHED;
    const int result = cudaMallocAsync(&address, bytes, stream);

    say(call, result, address);
    return result ? NULL : address;
}

static CUdeviceptr take_driver(const char *call, size_t bytes)
{
    CUdeviceptr address = (CUdeviceptr)UNTOUCHED;
    const int result = cuMemAlloc(&address, bytes);

    say(call, result, (void *)address);
    return result ? 0 : address;
}

typedef CUresult create_fn(CUmemGenericAllocationHandle *handle, size_t bytes,
                           const CUmemAllocationProp *properties,
                           unsigned long long flags);

static CUmemGenericAllocationHandle create(const char *call, create_fn *how, size_t bytes,
                                           int device)
{
    const CUmemAllocationProp on_device = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    CUmemGenericAllocationHandle handle = (uintptr_t)UNTOUCHED;
    const int result = how(&handle, bytes, &on_device, 0);

    say(call, result, (void *)(uintptr_t)handle);
    return result ? 0 : handle;
}

static void call_wrongly(void)
{
    const CUmemAllocationProp nowhere = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    const CUmemAllocationProp on_device = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    };
    CUmemGenericAllocationHandle handle = (uintptr_t)UNTOUCHED;
    cudaStream_t gone;
    size_t bytes = 7;

    cudaStreamCreate(&gone);
    cudaStreamDestroy(gone);
    for (size_t size = 0; size <= 60 * GIB; size += 20 * GIB) {
        printf("wrongly, %zu\n", size);
        say("cudaMalloc to nowhere", cudaMalloc(NULL, size), UNTOUCHED);
        say("cudaMallocAsync to nowhere", cudaMallocAsync(NULL, size, NULL), UNTOUCHED);
        take_async("cudaMallocAsync on a stream that is gone", size, gone);
        say("cuMemCreate of nothing", cuMemCreate(&handle, size, NULL, 0),
            (void *)(uintptr_t)handle);
        say("cuMemCreate nowhere", cuMemCreate(&handle, size, &nowhere, 0),
            (void *)(uintptr_t)handle);
        say("cuMemCreate with flags", cuMemCreate(&handle, size, &on_device, 1),
            (void *)(uintptr_t)handle);
        say("cuMemCreate to nowhere", cuMemCreate(NULL, size, &on_device, 0), UNTOUCHED);
        create("cuMemCreate on no device", cuMemCreate, size, 99);
    }
    take("cudaMalloc of nothing", 0);
    take("cudaMalloc of all there can be", SIZE_MAX);
    take_driver("cuMemAlloc of nothing", 0);
    take_async("cudaMallocAsync of nothing", 0, NULL);
    say("cudaMemGetInfo to nowhere", cudaMemGetInfo(NULL, &bytes), (void *)bytes);
    say("cuDeviceTotalMem of none", cuDeviceTotalMem(&bytes, 99), (void *)bytes);
}

// An error that the program has not looked at yet.
static void leave_an_error(void)
{
    (void)cudaMemGetInfo(NULL, NULL);
}

static void fill_runtime(void)
{
    void *most = take("cudaMalloc of 6 GiB", 6 * GIB);
    const size_t left = say_info();
    const size_t whole = left / (2 * MIB) * 2 * MIB;

    take("cudaMalloc of a page too many", whole + 2 * MIB);
    take("cudaMalloc of a byte too many", whole + 1);
    leave_an_error();
    void *rest = take("cudaMalloc of all that is left", whole);
    say_info();
    take("cudaMalloc of a byte", 1);
    take("cudaMalloc of a page", 2 * MIB);
    take_async("cudaMallocAsync of a byte", 1, NULL);
    take_driver("cuMemAlloc of a byte", 1);
    create("cuMemCreate of a page", cuMemCreate, 2 * MIB, 0);
    say("cudaFree", cudaFree(rest), NULL);
    rest = take("cudaMalloc of all that is left but a byte", whole - 1);
    say("cudaFree", cudaFree(rest), NULL);
    say("cudaFree", cudaFree(most), NULL);
    say_info();
}

static void fill_async(cudaStream_t stream)
{
    const size_t whole = say_info() / (2 * MIB) * 2 * MIB;
    void *most = take_async("cudaMallocAsync of half", whole / 2, stream);

    take_async("cudaMallocAsync of too much", whole, stream);
    cudaStreamSynchronize(stream);
    // Its room is there when it is needed, however late it is freed.
    say("cudaFreeAsync", cudaFreeAsync(most, stream), NULL);
    most = take_async("cudaMallocAsync of all", whole, stream);
    take_async("cudaMallocAsync of a page", 2 * MIB, stream);
    say("cudaFreeAsync", cudaFreeAsync(most, stream), NULL);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    take_async("cudaMallocAsync in a capture", 2 * whole, stream);
    take("cudaMalloc in a relaxed capture", 2 * whole);
    cudaGraph_t graph;
    cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    cudaDeviceSynchronize();
}

// Rows are longer on the card than they were asked for: at least 512 bytes.
static void take_rows(const char *size, size_t rows)
{
    struct cudaPitchedPtr box = {.ptr = UNTOUCHED};
    void *address = UNTOUCHED;
    CUdeviceptr other = (CUdeviceptr)UNTOUCHED;
    size_t pitch = 7;

    printf("%s rows\n", size);
    say("cudaMallocPitch", cudaMallocPitch(&address, &pitch, 1, rows), address);
    cudaFree(address == UNTOUCHED ? NULL : address);
    say("cuMemAllocPitch", cuMemAllocPitch(&other, &pitch, 1, rows, 4), (void *)other);
    cudaFree((void *)other == UNTOUCHED ? NULL : (void *)other);
    say("cudaMalloc3D", cudaMalloc3D(&box, (struct cudaExtent){1, rows / 2, 2}), box.ptr);
    cudaFree(box.ptr == UNTOUCHED ? NULL : box.ptr);
    cudaGetLastError();
    say_info();
}

static void fill_pool(cudaStream_t stream)
{
    const struct cudaMemPoolProps wanted = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice},
    };
    const size_t whole = say_info() / (2 * MIB) * 2 * MIB;
    void *address = UNTOUCHED, *other = UNTOUCHED;
    cudaMemPool_t pool = NULL;

    printf("pool %d\n", cudaMemPoolCreate(&pool, &wanted));
    say("cudaMallocFromPoolAsync of too much",
        cudaMallocFromPoolAsync(&address, whole + 1, pool, stream), address);
    say("cudaMallocFromPoolAsync of all",
        cudaMallocFromPoolAsync(&address, whole, pool, stream), address);
    say("cuMemAllocFromPoolAsync of a page",
        cuMemAllocFromPoolAsync((CUdeviceptr *)&other, 2 * MIB, pool, stream), other);
    say("cudaFreeAsync", cudaFreeAsync(address, stream), NULL);
    cudaStreamSynchronize(stream);
    printf("pool %d\n", cudaMemPoolDestroy(pool));
    say_info();
}

static create_fn *find_create(void)
{
    enum cudaDriverEntryPointQueryResult status = 9;
    void *found = NULL;
    const int result = cudaGetDriverEntryPointByVersion("cuMemCreate", &found, 12000,
                                                        cudaEnableDefault, &status);

    printf("found %d, %d: %s\n", result, status, found ? "cuMemCreate" : "nothing");
    return (create_fn *)found;
}

typedef CUresult proc_fn(const char *symbol, void **function, int version,
                         cuuint64_t flags, CUdriverProcAddressQueryResult *status);

// By the function that the driver names as its finder.
static create_fn *find_create_by_proc(void)
{
    CUdriverProcAddressQueryResult status = 9;
    void *finder = NULL, *found = NULL;
    const int result = cuGetProcAddress("cuGetProcAddress", &finder, 12000, 0, &status);

    printf("finder %d, %d\n", result, status);
    if (!result)
        printf("found %d, %d\n",
               ((proc_fn *)finder)("cuMemCreate", &found, 12000, 0, &status), status);
    printf("nothing %d, %d\n", cuGetProcAddress("cuNothing", &finder, 12000, 0, &status),
           status);
    return (create_fn *)found;
}

static void fill_driver(void)
{
    create_fn *const found = find_create(), *const proc = find_create_by_proc();
    const size_t whole = say_info() / (2 * MIB) * 2 * MIB;
    CUdeviceptr half = take_driver("cuMemAlloc of half", whole / 2);
    CUmemGenericAllocationHandle handle;

    create("cuMemCreate of too much", cuMemCreate, whole, 0);
    create("cuMemCreate that was found, of too much", found, whole, 0);
    create("cuMemCreate that was found otherwise, of too much", proc, whole, 0);
    handle = create("cuMemCreate that was found", found,
                    (whole - whole / 2) / (2 * MIB) * 2 * MIB, 0);
    take_driver("cuMemAlloc of too much", whole / 2);
    say("cuMemFree", cuMemFree(half), NULL);
    say_info();
    say("cuMemRelease", cuMemRelease(handle), NULL);
    say_info();
}

static void fill(void)
{
    cudaStream_t stream;

    cudaStreamCreate(&stream);
    call_wrongly();
    fill_runtime();
    fill_async(stream);
    fill_pool(stream);
    take_rows("few", 1000000);
    take_rows("many", 120000000);
    fill_driver();
}

static void fill_two(void)
{
    void *first = take("cudaMalloc on 0", 8 * GIB);

    create("cuMemCreate on 1, where there is no context", cuMemCreate, 8 * GIB, 1);
    create("cuMemCreate on 1, too much", cuMemCreate, 90 * GIB, 1);
    cudaSetDevice(1);
    say_info();
    void *second = take("cudaMalloc on 1", 1 * GIB);
    cudaSetDevice(0);
    create("cuMemCreate on 1", cuMemCreate, 1 * GIB, 1);
    create("cuMemCreate on 1, too much", cuMemCreate, 36 * GIB, 1);
    say_info();
    take("cudaMalloc on 0, too much", 36 * GIB);
    say("cudaFree", cudaFree(first), NULL);
    say("cudaFree", cudaFree(second), NULL);
}

static atomic_int taken;

static void *until_full(void *unused)
{
    void *address;

    for (int i = 0; i < HELD && !cudaMalloc(&address, 256 * MIB); i++)
        atomic_fetch_add(&taken, 1);
    return unused;
}

static atomic_int refused;

static void *now_and_then(void *context)
{
    const size_t *bytes = context;
    void *address;

    for (int i = 0; i < HELD; i++) {
        if (cudaMalloc(&address, *bytes))
            atomic_fetch_add(&refused, 1);
        else
            cudaFree(address);
    }
    return NULL;
}

static void run_threads(int count, void *(*run)(void *), void *context)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, run, context);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    size_t left = say_info();
    if (!strcmp(mode, "fill"))
        fill();
    if (!strcmp(mode, "two"))
        fill_two();
    if (!strcmp(mode, "threads")) {
        run_threads(THREADS, until_full, NULL);
        printf("%d taken\n", taken);
        say_info();
    }
    if (!strcmp(mode, "overlap")) {
        left = left / 2 / (2 * MIB) * 2 * MIB;
        run_threads(2, now_and_then, &left);
        printf("%d refused\n", refused);
        say_info();
    }
    if (!strcmp(mode, "info"))
        take("cudaMalloc", MIB);
    return 0;
}
