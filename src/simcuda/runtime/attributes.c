// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "simcuda/runtime/device.h"

// What follows from the compute capability: CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability".
struct capability {
    int major, minor;
    int threads, blocks; // a multiprocessor
    int shared_kib; // a multiprocessor
    int optin_kib; // a block
    int reserved_bytes; // a block
    int fp64_ratio; // single to double precision throughput
};

static const struct capability capabilities[] = {
    {7, 0, 2048, 32, 96, 96, 0, 2},       {7, 5, 1024, 16, 64, 64, 0, 32},
    {8, 0, 2048, 32, 164, 163, 1024, 2},  {8, 6, 1536, 16, 100, 99, 1024, 32},
    {8, 9, 1536, 24, 100, 99, 1024, 64},  {9, 0, 2048, 32, 228, 227, 1024, 2},
    {10, 0, 2048, 32, 228, 227, 1024, 2},
};

// The same on every card since compute capability 7.0. Limits of textures and surfaces
// are the programming guide's. What is not named here and not below is 0 by meaning: no
// such feature on a simulated card.
static const int constants[][2] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxPitch, 2147483647},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrComputePreemptionSupported, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrMemSyncDomainCount, 1},
    {cudaDevAttrNumaId, -1},
    {cudaDevAttrHostNumaId, -1},
    {cudaDevAttrMaxTexture1DWidth, 131072},
    {cudaDevAttrMaxTexture1DLinearWidth, 268435456},
    {cudaDevAttrMaxTexture1DMipmappedWidth, 32768},
    {cudaDevAttrMaxTexture1DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture1DLayeredLayers, 2048},
    {cudaDevAttrMaxTexture2DWidth, 131072},
    {cudaDevAttrMaxTexture2DHeight, 65536},
    {cudaDevAttrMaxTexture2DLinearWidth, 131072},
    {cudaDevAttrMaxTexture2DLinearHeight, 65000},
    {cudaDevAttrMaxTexture2DLinearPitch, 2097120},
    {cudaDevAttrMaxTexture2DMipmappedWidth, 32768},
    {cudaDevAttrMaxTexture2DMipmappedHeight, 32768},
    {cudaDevAttrMaxTexture2DGatherWidth, 32768},
    {cudaDevAttrMaxTexture2DGatherHeight, 32768},
    {cudaDevAttrMaxTexture2DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture2DLayeredHeight, 32768},
    {cudaDevAttrMaxTexture2DLayeredLayers, 2048},
    {cudaDevAttrMaxTexture3DWidth, 16384},
    {cudaDevAttrMaxTexture3DHeight, 16384},
    {cudaDevAttrMaxTexture3DDepth, 16384},
    {cudaDevAttrMaxTexture3DWidthAlt, 8192},
    {cudaDevAttrMaxTexture3DHeightAlt, 8192},
    {cudaDevAttrMaxTexture3DDepthAlt, 32768},
    {cudaDevAttrMaxTextureCubemapWidth, 32768},
    {cudaDevAttrMaxTextureCubemapLayeredWidth, 32768},
    {cudaDevAttrMaxTextureCubemapLayeredLayers, 2046},
    {cudaDevAttrMaxSurface1DWidth, 32768},
    {cudaDevAttrMaxSurface1DLayeredWidth, 32768},
    {cudaDevAttrMaxSurface1DLayeredLayers, 2048},
    {cudaDevAttrMaxSurface2DWidth, 131072},
    {cudaDevAttrMaxSurface2DHeight, 65536},
    {cudaDevAttrMaxSurface2DLayeredWidth, 32768},
    {cudaDevAttrMaxSurface2DLayeredHeight, 32768},
    {cudaDevAttrMaxSurface2DLayeredLayers, 2048},
    {cudaDevAttrMaxSurface3DWidth, 16384},
    {cudaDevAttrMaxSurface3DHeight, 16384},
    {cudaDevAttrMaxSurface3DDepth, 16384},
    {cudaDevAttrMaxSurfaceCubemapWidth, 32768},
    {cudaDevAttrMaxSurfaceCubemapLayeredWidth, 32768},
    {cudaDevAttrMaxSurfaceCubemapLayeredLayers, 2046},
    // Absent on a simulated card.
    {cudaDevAttrKernelExecTimeout, 0},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrComputeMode, cudaComputeModeDefault},
    {cudaDevAttrEccEnabled, 0},
    {cudaDevAttrPciDeviceId, 0},
    {cudaDevAttrPciDomainId, 0},
    {cudaDevAttrTccDriver, 0},
    {cudaDevAttrIsMultiGpuBoard, 0},
    {cudaDevAttrHostNativeAtomicSupported, 0},
    {cudaDevAttrReserved92, 0}, // stream memory operations
    {cudaDevAttrReserved93, 0},
    {cudaDevAttrReserved94, 0},
    {cudaDevAttrReserved96, 0},
    {cudaDevAttrCanFlushRemoteWrites, 0},
    {cudaDevAttrDirectManagedMemAccessFromHost, 0},
    {102, 0}, // virtual memory management: driver only, not there
    {103, 0}, // handle types of exported memory
    {104, 0},
    {105, 0},
    {107, 0}, // compressible memory
    {cudaDevAttrMaxPersistingL2CacheSize, 0},
    {cudaDevAttrMaxAccessPolicyWindowSize, 0},
    {110, 0}, // GPUDirect with virtual memory management
    {cudaDevAttrSparseCudaArraySupported, 0},
    {cudaDevAttrHostRegisterReadOnlySupported, 0},
    {cudaDevAttrTimelineSemaphoreInteropSupported, 0},
    {cudaDevAttrGPUDirectRDMASupported, 0},
    {cudaDevAttrGPUDirectRDMAFlushWritesOptions, 0},
    {cudaDevAttrGPUDirectRDMAWritesOrdering, 0},
    {cudaDevAttrMemoryPoolSupportedHandleTypes, 0},
    {cudaDevAttrDeferredMappingCudaArraySupported, 0},
    {cudaDevAttrReserved122, 0},
    {cudaDevAttrReserved123, 0},
    {cudaDevAttrReserved124, 0},
    {cudaDevAttrIpcEventSupport, 0},
    {cudaDevAttrReserved127, 0},
    {cudaDevAttrReserved128, 0},
    {cudaDevAttrReserved129, 0},
    {cudaDevAttrNumaConfig, 0},
    {cudaDevAttrReserved132, 0}, // multicast
    {cudaDevAttrMpsEnabled, 0},
    {cudaDevAttrD3D12CigSupported, 0},
    {cudaDevAttrVulkanCigSupported, 0},
    {cudaDevAttrGpuPciDeviceId, 0},
    {cudaDevAttrGpuPciSubsystemId, 0},
    {cudaDevAttrReserved141, 0},
    {cudaDevAttrHostNumaMemoryPoolsSupported, 0},
    {cudaDevAttrHostNumaMultinodeIpcSupported, 0},
    {cudaDevAttrHostMemoryPoolsSupported, 0},
    {cudaDevAttrReserved145, 0},
    {cudaDevAttrOnlyPartialHostNativeAtomicSupported, 0},
};

static const struct capability *capability_of(const struct as_gpu *gpu)
{
    const size_t count = sizeof(capabilities) / sizeof(capabilities[0]);

    for (size_t i = 0; i < count; i++)
        if (capabilities[i].major == gpu->major && capabilities[i].minor == gpu->minor)
            return &capabilities[i];
    // A row of the table of GPUs without its row here; the unit test looks.
    return &capabilities[count - 1];
}

static bool by_card(const struct sim_device *device, int attribute, int *value)
{
    const struct as_gpu *gpu = device->gpu;

    switch (attribute) {
    case cudaDevAttrClockRate:
        *value = gpu->clock_mhz * 1000;
        return true;
    case cudaDevAttrMemoryClockRate:
        *value = gpu->memory_clock_mhz * 1000;
        return true;
    case cudaDevAttrGlobalMemoryBusWidth:
        *value = gpu->memory_bus_bits;
        return true;
    case cudaDevAttrL2CacheSize:
        *value = (int)gpu->l2_bytes;
        return true;
    case cudaDevAttrMultiProcessorCount:
        *value = gpu->multiprocessors;
        return true;
    case cudaDevAttrComputeCapabilityMajor:
        *value = gpu->major;
        return true;
    case cudaDevAttrComputeCapabilityMinor:
        *value = gpu->minor;
        return true;
    case cudaDevAttrPciBusId:
        *value = device->index + 1;
        return true;
    case cudaDevAttrMultiGpuBoardGroupID:
        *value = device->index;
        return true;
    case cudaDevAttrClusterLaunch:
        *value = gpu->major >= 9;
        return true;
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
        *value = gpu->coherent;
        return true;
    default:
        return false;
    }
}

static bool by_capability(const struct capability *capability, int attribute, int *value)
{
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = capability->threads;
        return true;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
        *value = capability->blocks;
        return true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = capability->shared_kib * 1024;
        return true;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = capability->optin_kib * 1024;
        return true;
    case cudaDevAttrReservedSharedMemoryPerBlock:
        *value = capability->reserved_bytes;
        return true;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
        *value = capability->fp64_ratio;
        return true;
    default:
        return false;
    }
}

bool sim_device_attribute(const struct sim_device *device, int attribute, int *value)
{
    if (by_card(device, attribute, value) ||
        by_capability(capability_of(device->gpu), attribute, value))
        return true;
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (constants[i][0] == attribute) {
            *value = constants[i][1];
            return true;
        }
    }
    return false;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    SIM_ENTER();
    if (!sim_device(device))
        return sim_error(cudaErrorInvalidDevice);
    if (!value || !sim_device_attribute(sim_device(device), (int)attribute, value))
        return sim_error(cudaErrorInvalidValue);
    return cudaSuccess;
}

// Fields of cudaDeviceProp that are attributes under another name.
#define PROPERTY(field, attribute)                                                       \
    {                                                                                    \
        offsetof(struct cudaDeviceProp, field), cudaDevAttr##attribute                   \
    }

static const struct {
    size_t offset;
    int attribute;
} int_fields[] = {
    PROPERTY(regsPerBlock, MaxRegistersPerBlock),
    PROPERTY(warpSize, WarpSize),
    PROPERTY(maxThreadsPerBlock, MaxThreadsPerBlock),
    PROPERTY(maxThreadsDim[0], MaxBlockDimX),
    PROPERTY(maxThreadsDim[1], MaxBlockDimY),
    PROPERTY(maxThreadsDim[2], MaxBlockDimZ),
    PROPERTY(maxGridSize[0], MaxGridDimX),
    PROPERTY(maxGridSize[1], MaxGridDimY),
    PROPERTY(maxGridSize[2], MaxGridDimZ),
    PROPERTY(major, ComputeCapabilityMajor),
    PROPERTY(minor, ComputeCapabilityMinor),
    PROPERTY(multiProcessorCount, MultiProcessorCount),
    PROPERTY(canMapHostMemory, CanMapHostMemory),
    PROPERTY(maxTexture1D, MaxTexture1DWidth),
    PROPERTY(maxTexture2D[0], MaxTexture2DWidth),
    PROPERTY(maxTexture2D[1], MaxTexture2DHeight),
    PROPERTY(maxTexture3D[0], MaxTexture3DWidth),
    PROPERTY(maxTexture3D[1], MaxTexture3DHeight),
    PROPERTY(maxTexture3D[2], MaxTexture3DDepth),
    PROPERTY(concurrentKernels, ConcurrentKernels),
    PROPERTY(pciBusID, PciBusId),
    PROPERTY(asyncEngineCount, AsyncEngineCount),
    PROPERTY(unifiedAddressing, UnifiedAddressing),
    PROPERTY(memoryBusWidth, GlobalMemoryBusWidth),
    PROPERTY(l2CacheSize, L2CacheSize),
    PROPERTY(maxThreadsPerMultiProcessor, MaxThreadsPerMultiProcessor),
    PROPERTY(streamPrioritiesSupported, StreamPrioritiesSupported),
    PROPERTY(globalL1CacheSupported, GlobalL1CacheSupported),
    PROPERTY(localL1CacheSupported, LocalL1CacheSupported),
    PROPERTY(regsPerMultiprocessor, MaxRegistersPerMultiprocessor),
    PROPERTY(managedMemory, ManagedMemory),
    PROPERTY(multiGpuBoardGroupID, MultiGpuBoardGroupID),
    PROPERTY(concurrentManagedAccess, ConcurrentManagedAccess),
    PROPERTY(computePreemptionSupported, ComputePreemptionSupported),
    PROPERTY(canUseHostPointerForRegisteredMem, CanUseHostPointerForRegisteredMem),
    PROPERTY(cooperativeLaunch, CooperativeLaunch),
    PROPERTY(maxBlocksPerMultiProcessor, MaxBlocksPerMultiprocessor),
    PROPERTY(hostRegisterSupported, HostRegisterSupported),
    PROPERTY(memoryPoolsSupported, MemoryPoolsSupported),
    PROPERTY(clusterLaunch, ClusterLaunch),
    PROPERTY(deviceNumaId, NumaId),
    PROPERTY(hostNumaId, HostNumaId),
};

static const struct {
    size_t offset;
    int attribute;
} size_fields[] = {
    PROPERTY(sharedMemPerBlock, MaxSharedMemoryPerBlock),
    PROPERTY(memPitch, MaxPitch),
    PROPERTY(totalConstMem, TotalConstantMemory),
    PROPERTY(textureAlignment, TextureAlignment),
    PROPERTY(texturePitchAlignment, TexturePitchAlignment),
    PROPERTY(surfaceAlignment, SurfaceAlignment),
    PROPERTY(sharedMemPerMultiprocessor, MaxSharedMemoryPerMultiprocessor),
    PROPERTY(sharedMemPerBlockOptin, MaxSharedMemoryPerBlockOptin),
    PROPERTY(reservedSharedMemPerBlock, ReservedSharedMemoryPerBlock),
};

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int index)
{
    SIM_ENTER();
    const struct sim_device *device = sim_device(index);
    int value = 0;

    if (!device || !properties)
        return sim_error(device ? cudaErrorInvalidValue : cudaErrorInvalidDevice);
    memset(properties, 0, sizeof(*properties));
    snprintf(properties->name, sizeof(properties->name), "%s", device->gpu->product);
    snprintf(properties->uuid.bytes, sizeof(properties->uuid.bytes), "simcuda-%d", index);
    properties->totalGlobalMem = device->gpu->total_bytes;
    for (size_t i = 0; i < sizeof(int_fields) / sizeof(int_fields[0]); i++) {
        sim_device_attribute(device, int_fields[i].attribute, &value);
        *(int *)((char *)properties + int_fields[i].offset) = value;
    }
    for (size_t i = 0; i < sizeof(size_fields) / sizeof(size_fields[0]); i++) {
        sim_device_attribute(device, size_fields[i].attribute, &value);
        *(size_t *)((char *)properties + size_fields[i].offset) = (size_t)value;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    SIM_ENTER();
    if (!sim_device(device))
        return sim_error(cudaErrorInvalidDevice);
    if (!text || bytes < 13)
        return sim_error(cudaErrorInvalidValue);
    snprintf(text, (size_t)bytes, "0000:%02X:00.0", device + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    SIM_ENTER();
    if (!sim_device(device) || !sim_device(peer))
        return sim_error(cudaErrorInvalidDevice);
    if (!can)
        return sim_error(cudaErrorInvalidValue);
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    SIM_ENTER();
    const struct sim_device *device = sim_device_activate();

    if (!sim_device(peer) || peer == device->index)
        return sim_error(cudaErrorInvalidDevice);
    return flags ? sim_error(cudaErrorInvalidValue) : cudaSuccess;
}
