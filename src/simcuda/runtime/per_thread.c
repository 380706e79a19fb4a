// SPDX-License-Identifier: Apache-2.0
// What a program compiled for per-thread default streams calls: the same functions by other
// names, for which no stream is the calling thread's (_ptsz), and synchronous ones that wait
// for that stream alone (_ptds). The headers declare them only where they replace the others.
#include <cuda_runtime_api.h>

#define OWN(stream) ((stream) ? (stream) : cudaStreamPerThread)

// The last parameter is the stream.
#define LAST(name, parameters, ...)                                                      \
    cudaError_t name##_ptsz parameters;                                                  \
    cudaError_t name##_ptsz parameters                                                   \
    {                                                                                    \
        return name(__VA_ARGS__, OWN(stream));                                           \
    }

// The first one is.
#define FIRST(name, parameters, ...)                                                     \
    cudaError_t name##_ptsz parameters;                                                  \
    cudaError_t name##_ptsz parameters                                                   \
    {                                                                                    \
        return name(OWN(stream), __VA_ARGS__);                                           \
    }

#define ONLY(name)                                                                       \
    cudaError_t name##_ptsz(cudaStream_t stream);                                        \
    cudaError_t name##_ptsz(cudaStream_t stream)                                         \
    {                                                                                    \
        return name(OWN(stream));                                                        \
    }

#define WAITS(name, parameters, ...)                                                     \
    cudaError_t name##_ptds parameters;                                                  \
    cudaError_t name##_ptds parameters                                                   \
    {                                                                                    \
        const cudaError_t error = name##Async(__VA_ARGS__, cudaStreamPerThread);         \
                                                                                         \
        return error ? error : cudaStreamSynchronize(cudaStreamPerThread);               \
    }

LAST(cudaMallocAsync, (void **address, size_t bytes, cudaStream_t stream), address, bytes)
LAST(cudaMallocFromPoolAsync,
     (void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream), address,
     bytes, pool)
LAST(cudaFreeAsync, (void *address, cudaStream_t stream), address)
LAST(cudaMemcpyAsync,
     (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
      cudaStream_t stream),
     to, from, bytes, kind)
LAST(cudaMemcpy2DAsync,
     (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
      size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
     to, to_pitch, from, from_pitch, width, height, kind)
LAST(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream), to, value,
     bytes)
LAST(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event)
LAST(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream), graph)
LAST(cudaGraphUpload, (cudaGraphExec_t graph, cudaStream_t stream), graph)
LAST(cudaLaunchKernel,
     (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
      cudaStream_t stream),
     function, grid, block, arguments, shared)

ONLY(cudaStreamQuery)
ONLY(cudaStreamSynchronize)
FIRST(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
      event, flags)
FIRST(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags), flags)
FIRST(cudaStreamGetPriority, (cudaStream_t stream, int *priority), priority)
FIRST(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
      status)
FIRST(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
      mode)
FIRST(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), graph)
FIRST(cudaStreamAddCallback,
      (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags),
      callback, data, flags)
FIRST(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
      function, data)

WAITS(cudaMemcpy, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
      to, from, bytes, kind)
WAITS(cudaMemcpy2D,
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
       size_t height, enum cudaMemcpyKind kind),
      to, to_pitch, from, from_pitch, width, height, kind)
WAITS(cudaMemset, (void *to, int value, size_t bytes), to, value, bytes)

cudaError_t
cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
                                      unsigned version, unsigned long long flags,
                                      enum cudaDriverEntryPointQueryResult *status);
cudaError_t
cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
                                      unsigned version, unsigned long long flags,
                                      enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(
        symbol, function, version, flags ? flags : cudaEnablePerThreadDefaultStream,
        status);
}
