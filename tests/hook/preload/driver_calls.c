// SPDX-License-Identifier: Apache-2.0
//
// Calls every interposed function of the driver and prints what each said and what
// libactswap saw of it.
#include <dlfcn.h>
#include <stdio.h>

#include <cuda.h>

#include <actswap/actswap.h>

#undef cuGetProcAddress

static void said(const char *call, int result)
{
    int (*stats_of)(struct actswap_stats *) =
        (int (*)(struct actswap_stats *))dlsym(RTLD_DEFAULT, "actswap_stats");
    struct actswap_stats stats = {.size = sizeof(stats)};

    printf("%s %d", call, result);
    if (stats_of && stats_of(&stats) == 0)
        printf(", live %llu", (unsigned long long)stats.live_bytes);
    printf("\n");
}

// As programs for CUDA 11.3 to 11.8 ask, and newer ones.
CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                          cuuint64_t flags);

static void call_found(const char *how, void *alloc, void *release)
{
    CUdeviceptr address = 0;

    said(how, (int)((CUresult(*)(CUdeviceptr *, size_t))alloc)(&address, 100));
    said(how, (int)((CUresult(*)(CUdeviceptr))release)(address));
}

static void find(void)
{
    CUdriverProcAddressQueryResult status = 9;
    void *alloc = NULL, *release = NULL;

    said("cuGetProcAddress", cuGetProcAddress("cuMemAlloc", &alloc, 12000, 0));
    said("cuGetProcAddress", cuGetProcAddress("cuMemFree", &release, 12000, 0));
    call_found("found", alloc, release);
    said("cuGetProcAddress of none", cuGetProcAddress("cuNone", &alloc, 12000, 0));
    alloc = release = NULL;
    said("cuGetProcAddress_v2",
         cuGetProcAddress_v2("cuMemAlloc", &alloc, 12000, 0, &status));
    said("cuGetProcAddress_v2",
         cuGetProcAddress_v2("cuMemFree", &release, 12000, 0, NULL));
    call_found("found", alloc, release);
    said("cuGetProcAddress_v2 of none",
         cuGetProcAddress_v2("cuNone", &alloc, 12000, 0, &status));
    printf("status %d\n", status);
}

static void ask(void)
{
    size_t left = 0, total = 0, whole = 0;

    said("cuMemGetInfo_v2", cuMemGetInfo(&left, &total));
    said("cuDeviceTotalMem_v2", cuDeviceTotalMem(&whole, 0));
    said("cuDeviceTotalMem_v2 that fails", cuDeviceTotalMem(&whole, 1));
    printf("%zu of %zu, %zu MiB\n", left >> 20, total >> 20, whole >> 20);
}

int main(void)
{
    CUdeviceptr a = 0, b = 0;
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp on_device = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };

    said("cuMemAlloc_v2", cuMemAlloc_v2(&a, 1000));
    said("cuMemAlloc_v2", cuMemAlloc_v2(&b, 500));
    said("cuMemAlloc_v2 that fails", cuMemAlloc_v2(&b, 13));
    said("cuMemFree_v2", cuMemFree_v2(a));
    said("cuMemFree_v2 that fails", cuMemFree_v2(0));
    said("cuMemCreate", cuMemCreate(&handle, 4096, &on_device, 0));
    said("cuMemCreate that fails", cuMemCreate(&handle, 13, &on_device, 0));
    said("cuMemRelease", cuMemRelease(handle));
    said("cuMemRelease that fails", cuMemRelease(1));
    said("cuMemFree_v2", cuMemFree_v2(b));
    find();
    ask();
    a = 5;
    said("cuMemAlloc_v2 of 2 GiB", cuMemAlloc_v2(&a, (size_t)2 << 30));
    printf("%s\n", a == 5 ? "untouched" : "set");
    return 0;
}
