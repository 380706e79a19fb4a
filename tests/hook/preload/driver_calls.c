// SPDX-License-Identifier: Apache-2.0
//
// Calls every interposed function of the driver and prints what each said and what
// libactswap saw of it.
#include <dlfcn.h>
#include <stdio.h>

#include <cuda.h>

#include <actswap/actswap.h>

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
    return 0;
}
