// SPDX-License-Identifier: Apache-2.0
// The simulated driver in a process that has no simulated runtime offers no device.
#include <cuda.h>
#include <stdio.h>

int main(void)
{
    int count = -1;

    if (cuInit(0) != CUDA_ERROR_NO_DEVICE ||
        cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED || count != -1) {
        fprintf(stderr, "a device without a runtime\n");
        return 1;
    }
    return 0;
}
