// SPDX-License-Identifier: Apache-2.0
#ifndef AS_HOOKS_CUDA_CALLS_H
#define AS_HOOKS_CUDA_CALLS_H

// The table of hooked calls. From it come the wrappers (wrap.c), what a program that asks
// for the driver's functions by name is given (entry.c), the names that the library shows
// (scripts/hooked-calls), the tests, and docs/hooked_calls.md.
//
// CALL(API, name, (parameters), (arguments), what the call does): its wrapper is made from
// this line. `call.bytes` is what to ask the real function for. OWN(API, name, what it
// does): written by hand.
//
// Not hooked, and so not seen: arrays and mipmaps (cudaMallocArray), memory imported by
// file handle (cuMemImportFromShareableHandle, cudaImportExternalMemory), pools of other
// processes, and what a kernel takes for itself from the device's heap.

#define AS_RUNTIME_CALLS(CALL)                                                           \
    CALL(RUNTIME, cudaMalloc, (void **at, size_t bytes), (at, call.bytes),               \
         GIVES(DEVICE, at, bytes))                                                       \
    CALL(RUNTIME, cudaMallocPitch,                                                       \
         (void **at, size_t *pitch, size_t width, size_t height),                        \
         (at, pitch, as_call_width(&call, width), height),                               \
         GIVES_ROWS(at, pitch, width, height))                                           \
    CALL(RUNTIME, cudaMalloc3D, (struct cudaPitchedPtr * at, struct cudaExtent extent),  \
         (at, as_call_extent(&call, extent)),                                            \
         GIVES_ROWS(at ? &at->ptr : NULL, at ? &at->pitch : NULL, extent.width,          \
                    as_call_area(extent.height, extent.depth)))                          \
    CALL(RUNTIME, cudaMallocManaged, (void **at, size_t bytes, unsigned flags),          \
         (at, bytes, flags), GIVES(MANAGED, at, bytes))                                  \
    CALL(RUNTIME, cudaMallocHost, (void **at, size_t bytes), (at, bytes),                \
         GIVES(PINNED, at, bytes))                                                       \
    CALL(RUNTIME, cudaHostAlloc, (void **at, size_t bytes, unsigned flags),              \
         (at, bytes, flags), GIVES(PINNED, at, bytes))                                   \
    CALL(RUNTIME, cudaHostRegister, (void *at, size_t bytes, unsigned flags),            \
         (at, bytes, flags), REGISTERS(at, bytes))                                       \
    CALL(RUNTIME, cudaMallocAsync, (void **at, size_t bytes, cudaStream_t stream),       \
         (at, call.bytes, stream), GIVES_ORDERED(at, bytes, stream))                     \
    CALL(RUNTIME, cudaMallocAsync_ptsz, (void **at, size_t bytes, cudaStream_t stream),  \
         (at, call.bytes, stream), GIVES_ORDERED(at, bytes, AS_CALL_OWN(stream)))        \
    CALL(RUNTIME, cudaMallocFromPoolAsync,                                               \
         (void **at, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),             \
         (at, call.bytes, pool, stream), GIVES_ORDERED(at, bytes, stream), .pool = pool) \
    CALL(RUNTIME, cudaMallocFromPoolAsync_ptsz,                                          \
         (void **at, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),             \
         (at, call.bytes, pool, stream), GIVES_ORDERED(at, bytes, AS_CALL_OWN(stream)),  \
         .pool = pool)                                                                   \
    CALL(RUNTIME, cudaFree, (void *at), (at), FREES(ANY, at))                            \
    CALL(RUNTIME, cudaFreeAsync, (void *at, cudaStream_t stream), (at, stream),          \
         FREES(ORDERED, at))                                                             \
    CALL(RUNTIME, cudaFreeAsync_ptsz, (void *at, cudaStream_t stream), (at, stream),     \
         FREES(ORDERED, at))                                                             \
    CALL(RUNTIME, cudaFreeHost, (void *at), (at), FREES(PINNED, at))                     \
    CALL(RUNTIME, cudaHostUnregister, (void *at), (at), FREES(REGISTERED, at))           \
    CALL(RUNTIME, cudaIpcOpenMemHandle,                                                  \
         (void **at, cudaIpcMemHandle_t handle, unsigned flags), (at, handle, flags),    \
         IMPORTS(at))                                                                    \
    CALL(RUNTIME, cudaIpcCloseMemHandle, (void *at), (at), FREES(IMPORTED, at))          \
    CALL(RUNTIME, cudaGraphAddMemAllocNode,                                              \
         (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before,      \
          size_t count, struct cudaMemAllocNodeParams *wish),                            \
         (node, graph, before, count, wish),                                             \
         GIVES(GRAPH, wish ? &wish->dptr : NULL, wish ? wish->bytesize : 0))             \
    CALL(RUNTIME, cudaGraphAddMemFreeNode,                                               \
         (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *before,      \
          size_t count, void *at),                                                       \
         (node, graph, before, count, at), FREES(ORDERED, at))                           \
    CALL(RUNTIME, cudaDeviceReset, (void), (), RESETS(AS_CALL_CURRENT))                  \
    CALL(RUNTIME, cudaStreamCreate, (cudaStream_t * stream), (stream),                   \
         MAKES_STREAM(stream))                                                           \
    CALL(RUNTIME, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags),    \
         (stream, flags), MAKES_STREAM(stream))                                          \
    CALL(RUNTIME, cudaStreamCreateWithPriority,                                          \
         (cudaStream_t * stream, unsigned flags, int priority),                          \
         (stream, flags, priority), MAKES_STREAM(stream))                                \
    CALL(RUNTIME, cudaStreamDestroy, (cudaStream_t stream), (stream), ENDS_STREAM(stream))

#define AS_DRIVER_CALLS(CALL)                                                            \
    CALL(DRIVER, cuMemAlloc_v2, (CUdeviceptr * at, size_t bytes), (at, call.bytes),      \
         GIVES(DEVICE, at, bytes))                                                       \
    CALL(DRIVER, cuMemAllocPitch_v2,                                                     \
         (CUdeviceptr * at, size_t * pitch, size_t width, size_t height, unsigned unit), \
         (at, pitch, as_call_width(&call, width), height, unit),                         \
         GIVES_ROWS(at, pitch, width, height))                                           \
    CALL(DRIVER, cuMemAllocManaged, (CUdeviceptr * at, size_t bytes, unsigned flags),    \
         (at, bytes, flags), GIVES(MANAGED, at, bytes))                                  \
    CALL(DRIVER, cuMemAllocHost_v2, (void **at, size_t bytes), (at, bytes),              \
         GIVES(PINNED, at, bytes))                                                       \
    CALL(DRIVER, cuMemHostAlloc, (void **at, size_t bytes, unsigned flags),              \
         (at, bytes, flags), GIVES(PINNED, at, bytes))                                   \
    CALL(DRIVER, cuMemHostRegister_v2, (void *at, size_t bytes, unsigned flags),         \
         (at, bytes, flags), REGISTERS(at, bytes))                                       \
    CALL(DRIVER, cuMemAllocAsync, (CUdeviceptr * at, size_t bytes, CUstream stream),     \
         (at, call.bytes, stream), GIVES_ORDERED(at, bytes, stream))                     \
    CALL(DRIVER, cuMemAllocAsync_ptsz,                                                   \
         (CUdeviceptr * at, size_t bytes, CUstream stream), (at, call.bytes, stream),    \
         GIVES_ORDERED(at, bytes, AS_CALL_OWN(stream)))                                  \
    CALL(DRIVER, cuMemAllocFromPoolAsync,                                                \
         (CUdeviceptr * at, size_t bytes, CUmemoryPool pool, CUstream stream),           \
         (at, call.bytes, pool, stream), GIVES_ORDERED(at, bytes, stream), .pool = pool) \
    CALL(DRIVER, cuMemAllocFromPoolAsync_ptsz,                                           \
         (CUdeviceptr * at, size_t bytes, CUmemoryPool pool, CUstream stream),           \
         (at, call.bytes, pool, stream), GIVES_ORDERED(at, bytes, AS_CALL_OWN(stream)),  \
         .pool = pool)                                                                   \
    CALL(DRIVER, cuMemFree_v2, (CUdeviceptr at), (at), FREES(ANY, at))                   \
    CALL(DRIVER, cuMemFreeAsync, (CUdeviceptr at, CUstream stream), (at, stream),        \
         FREES(ORDERED, at))                                                             \
    CALL(DRIVER, cuMemFreeAsync_ptsz, (CUdeviceptr at, CUstream stream), (at, stream),   \
         FREES(ORDERED, at))                                                             \
    CALL(DRIVER, cuMemFreeHost, (void *at), (at), FREES(PINNED, at))                     \
    CALL(DRIVER, cuMemHostUnregister, (void *at), (at), FREES(REGISTERED, at))           \
    CALL(DRIVER, cuIpcOpenMemHandle_v2,                                                  \
         (CUdeviceptr * at, CUipcMemHandle handle, unsigned flags), (at, handle, flags), \
         IMPORTS(at))                                                                    \
    CALL(DRIVER, cuIpcCloseMemHandle, (CUdeviceptr at), (at), FREES(IMPORTED, at))       \
    CALL(DRIVER, cuMemCreate,                                                            \
         (CUmemGenericAllocationHandle * handle, size_t bytes,                           \
          const CUmemAllocationProp *properties, unsigned long long flags),              \
         (handle, call.bytes, properties, flags), CREATES(handle, bytes, properties))    \
    CALL(DRIVER, cuMemRetainAllocationHandle,                                            \
         (CUmemGenericAllocationHandle * handle, void *at), (handle, at),                \
         RETAINS(handle, at))                                                            \
    CALL(DRIVER, cuMemRelease, (CUmemGenericAllocationHandle handle), (handle),          \
         RELEASES(handle))                                                               \
    CALL(DRIVER, cuMemMap,                                                               \
         (CUdeviceptr at, size_t bytes, size_t offset,                                   \
          CUmemGenericAllocationHandle handle, unsigned long long flags),                \
         (at, bytes, offset, handle, flags), MAPS(at, bytes, handle))                    \
    CALL(DRIVER, cuMemUnmap, (CUdeviceptr at, size_t bytes), (at, bytes),                \
         UNMAPS(at, bytes))                                                              \
    CALL(DRIVER, cuGraphAddMemAllocNode,                                                 \
         (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,    \
          CUDA_MEM_ALLOC_NODE_PARAMS *wish),                                             \
         (node, graph, before, count, wish),                                             \
         GIVES(GRAPH, wish ? &wish->dptr : NULL, wish ? wish->bytesize : 0))             \
    CALL(DRIVER, cuGraphAddMemFreeNode,                                                  \
         (CUgraphNode * node, CUgraph graph, const CUgraphNode *before, size_t count,    \
          CUdeviceptr at),                                                               \
         (node, graph, before, count, at), FREES(ORDERED, at))                           \
    CALL(DRIVER, cuDevicePrimaryCtxReset_v2, (CUdevice device), (device),                \
         RESETS(device))                                                                 \
    CALL(DRIVER, cuStreamCreate, (CUstream * stream, unsigned flags), (stream, flags),   \
         MAKES_STREAM(stream))                                                           \
    CALL(DRIVER, cuStreamCreateWithPriority,                                             \
         (CUstream * stream, unsigned flags, int priority), (stream, flags, priority),   \
         MAKES_STREAM(stream))                                                           \
    CALL(DRIVER, cuStreamDestroy_v2, (CUstream stream), (stream), ENDS_STREAM(stream))

#define AS_OWN_CALLS(OWN)                                                                \
    OWN(RUNTIME, cudaMemGetInfo, "says what a smaller card has")                         \
    OWN(RUNTIME, cudaGetDeviceProperties, "says what a smaller card has")                \
    OWN(RUNTIME, cudaGetDeviceProperties_v2, "says what a smaller card has")             \
    OWN(RUNTIME, cudaGetDriverEntryPoint, "gives the wrapper of a hooked call")          \
    OWN(RUNTIME, cudaGetDriverEntryPoint_ptsz, "gives the wrapper of a hooked call")     \
    OWN(RUNTIME, cudaGetDriverEntryPointByVersion, "gives the wrapper of a hooked call") \
    OWN(RUNTIME, cudaGetDriverEntryPointByVersion_ptsz,                                  \
        "gives the wrapper of a hooked call")                                            \
    OWN(DRIVER, cuMemGetInfo_v2, "says what a smaller card has")                         \
    OWN(DRIVER, cuDeviceTotalMem_v2, "says what a smaller card has")                     \
    OWN(DRIVER, cuGetProcAddress, "gives the wrapper of a hooked call")                  \
    OWN(DRIVER, cuGetProcAddress_v2, "gives the wrapper of a hooked call")

#endif
