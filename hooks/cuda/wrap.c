// SPDX-License-Identifier: Apache-2.0
//
// The wrappers, one for each line of the table.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "call.h"
#include "core/export.h"

static struct cudaExtent as_call_extent(const struct as_call *call,
                                        struct cudaExtent extent)
{
    extent.width = as_call_width(call, extent.width);
    return extent;
}

AS_RUNTIME_CALLS(AS_CALL_WRAPPER)
AS_DRIVER_CALLS(AS_CALL_WRAPPER)
