// SPDX-License-Identifier: Apache-2.0
// What of cuBLAS answers more than a status. Signatures: NVIDIA's cuBLAS documentation.
#include <stdatomic.h>

#include "core/export.h"

enum { HANDLES = 4096, DEFAULT_MATH = 0, POINTERS_ON_HOST = 0 };

AS_EXPORT int cublasCreate_v2(void **handle);
AS_EXPORT int cublasGetMathMode(const void *handle, int *mode);
AS_EXPORT int cublasGetPointerMode_v2(const void *handle, int *mode);

// PyTorch keeps workspaces by handle, so each has its own address.
int cublasCreate_v2(void **handle)
{
    static char handles[HANDLES];
    static atomic_uint next;

    *handle = &handles[atomic_fetch_add(&next, 1) % HANDLES];
    return 0;
}

int cublasGetMathMode(const void *handle, int *mode)
{
    (void)handle;
    *mode = DEFAULT_MATH;
    return 0;
}

int cublasGetPointerMode_v2(const void *handle, int *mode)
{
    (void)handle;
    *mode = POINTERS_ON_HOST;
    return 0;
}
