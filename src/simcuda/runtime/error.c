// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "simcuda/runtime/device.h"
#include "simcuda/runtime/newer.h"
#include "simcuda/simcuda.h"

#define NAME(error)                                                                      \
    {                                                                                    \
        error, #error, #error                                                            \
    }
#define TEXT(error, text)                                                                \
    {                                                                                    \
        error, #error, text                                                              \
    }

// Every error of the header by name. Those that this runtime returns, and those that
// programs know by their text, have one; the others' text is the name.
static const struct {
    cudaError_t error;
    const char *name;
    const char *text;
} errors[] = {
    TEXT(cudaSuccess, "no error"),
    TEXT(cudaErrorInvalidValue, "invalid argument"),
    TEXT(cudaErrorMemoryAllocation, "out of memory"),
    TEXT(cudaErrorInitializationError, "initialization error"),
    TEXT(cudaErrorCudartUnloading, "driver shutting down"),
    NAME(cudaErrorProfilerDisabled),
    NAME(cudaErrorProfilerNotInitialized),
    NAME(cudaErrorProfilerAlreadyStarted),
    NAME(cudaErrorProfilerAlreadyStopped),
    TEXT(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    NAME(cudaErrorVersionTranslation),
    TEXT(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    NAME(cudaErrorInvalidSymbol),
    NAME(cudaErrorInvalidHostPointer),
    NAME(cudaErrorInvalidDevicePointer),
    NAME(cudaErrorInvalidTexture),
    NAME(cudaErrorInvalidTextureBinding),
    NAME(cudaErrorInvalidChannelDescriptor),
    TEXT(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    NAME(cudaErrorAddressOfConstant),
    NAME(cudaErrorTextureFetchFailed),
    NAME(cudaErrorTextureNotBound),
    NAME(cudaErrorSynchronizationError),
    NAME(cudaErrorInvalidFilterSetting),
    NAME(cudaErrorInvalidNormSetting),
    NAME(cudaErrorMixedDeviceExecution),
    NAME(cudaErrorNotYetImplemented),
    NAME(cudaErrorMemoryValueTooLarge),
    NAME(cudaErrorStubLibrary),
    TEXT(cudaErrorInsufficientDriver,
         "CUDA driver version is insufficient for CUDA runtime version"),
    NAME(cudaErrorCallRequiresNewerDriver),
    NAME(cudaErrorInvalidSurface),
    NAME(cudaErrorDuplicateVariableName),
    NAME(cudaErrorDuplicateTextureName),
    NAME(cudaErrorDuplicateSurfaceName),
    NAME(cudaErrorDevicesUnavailable),
    NAME(cudaErrorIncompatibleDriverContext),
    TEXT(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    NAME(cudaErrorPriorLaunchFailure),
    NAME(cudaErrorLaunchMaxDepthExceeded),
    NAME(cudaErrorLaunchFileScopedTex),
    NAME(cudaErrorLaunchFileScopedSurf),
    NAME(cudaErrorSyncDepthExceeded),
    NAME(cudaErrorLaunchPendingCountExceeded),
    TEXT(cudaErrorInvalidDeviceFunction, "invalid device function"),
    TEXT(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    TEXT(cudaErrorInvalidDevice, "invalid device ordinal"),
    NAME(cudaErrorDeviceNotLicensed),
    NAME(cudaErrorSoftwareValidityNotEstablished),
    NAME(cudaErrorStartupFailure),
    NAME(cudaErrorInvalidKernelImage),
    TEXT(cudaErrorDeviceUninitialized, "invalid device context"),
    NAME(cudaErrorMapBufferObjectFailed),
    NAME(cudaErrorUnmapBufferObjectFailed),
    NAME(cudaErrorArrayIsMapped),
    NAME(cudaErrorAlreadyMapped),
    TEXT(cudaErrorNoKernelImageForDevice,
         "no kernel image is available for execution on the device"),
    NAME(cudaErrorAlreadyAcquired),
    NAME(cudaErrorNotMapped),
    NAME(cudaErrorNotMappedAsArray),
    NAME(cudaErrorNotMappedAsPointer),
    NAME(cudaErrorECCUncorrectable),
    NAME(cudaErrorUnsupportedLimit),
    NAME(cudaErrorDeviceAlreadyInUse),
    NAME(cudaErrorPeerAccessUnsupported),
    NAME(cudaErrorInvalidPtx),
    NAME(cudaErrorInvalidGraphicsContext),
    NAME(cudaErrorNvlinkUncorrectable),
    NAME(cudaErrorJitCompilerNotFound),
    NAME(cudaErrorUnsupportedPtxVersion),
    NAME(cudaErrorJitCompilationDisabled),
    NAME(cudaErrorUnsupportedExecAffinity),
    NAME(cudaErrorUnsupportedDevSideSync),
    NAME(cudaErrorContained),
    NAME(cudaErrorInvalidSource),
    NAME(cudaErrorFileNotFound),
    NAME(cudaErrorSharedObjectSymbolNotFound),
    NAME(cudaErrorSharedObjectInitFailed),
    NAME(cudaErrorOperatingSystem),
    TEXT(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    NAME(cudaErrorIllegalState),
    NAME(cudaErrorLossyQuery),
    TEXT(cudaErrorSymbolNotFound, "named symbol not found"),
    TEXT(cudaErrorNotReady, "device not ready"),
    TEXT(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    TEXT(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    TEXT(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    NAME(cudaErrorLaunchIncompatibleTexturing),
    TEXT(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    NAME(cudaErrorPeerAccessNotEnabled),
    NAME(cudaErrorSetOnActiveProcess),
    NAME(cudaErrorContextIsDestroyed),
    TEXT(cudaErrorAssert, "device-side assert triggered"),
    NAME(cudaErrorTooManyPeers),
    TEXT(cudaErrorHostMemoryAlreadyRegistered,
         "part or all of the requested memory range is already mapped"),
    TEXT(cudaErrorHostMemoryNotRegistered,
         "pointer does not correspond to a registered memory region"),
    NAME(cudaErrorHardwareStackError),
    NAME(cudaErrorIllegalInstruction),
    NAME(cudaErrorMisalignedAddress),
    NAME(cudaErrorInvalidAddressSpace),
    NAME(cudaErrorInvalidPc),
    TEXT(cudaErrorLaunchFailure, "unspecified launch failure"),
    NAME(cudaErrorCooperativeLaunchTooLarge),
    NAME(cudaErrorTensorMemoryLeak),
    TEXT(cudaErrorNotPermitted, "operation not permitted"),
    TEXT(cudaErrorNotSupported, "operation not supported"),
    NAME(cudaErrorSystemNotReady),
    NAME(cudaErrorSystemDriverMismatch),
    NAME(cudaErrorCompatNotSupportedOnDevice),
    NAME(cudaErrorMpsConnectionFailed),
    NAME(cudaErrorMpsRpcFailure),
    NAME(cudaErrorMpsServerNotReady),
    NAME(cudaErrorMpsMaxClientsReached),
    NAME(cudaErrorMpsMaxConnectionsReached),
    NAME(cudaErrorMpsClientTerminated),
    NAME(cudaErrorCdpNotSupported),
    NAME(cudaErrorCdpVersionMismatch),
    TEXT(cudaErrorStreamCaptureUnsupported,
         "operation not permitted when stream is capturing"),
    TEXT(cudaErrorStreamCaptureInvalidated,
         "operation failed due to a previous error during capture"),
    TEXT(cudaErrorStreamCaptureMerge, "two captures would become one"),
    TEXT(cudaErrorStreamCaptureUnmatched, "capture did not begin on this stream"),
    TEXT(cudaErrorStreamCaptureUnjoined, "capture has a fork that was not joined"),
    TEXT(cudaErrorStreamCaptureIsolation, "capture would depend on work outside of it"),
    TEXT(cudaErrorStreamCaptureImplicit,
         "legacy stream would depend on a captured blocking stream"),
    TEXT(cudaErrorCapturedEvent, "operation not permitted on an event that was captured"),
    TEXT(cudaErrorStreamCaptureWrongThread, "capture was begun by another thread"),
    NAME(cudaErrorTimeout),
    TEXT(cudaErrorGraphExecUpdateFailure,
         "graph differs from the one that was instantiated"),
    NAME(cudaErrorExternalDevice),
    NAME(cudaErrorInvalidClusterSize),
    NAME(cudaErrorFunctionNotLoaded),
    NAME(cudaErrorInvalidResourceType),
    NAME(cudaErrorInvalidResourceConfiguration),
    NAME(cudaErrorStreamDetached),
    TEXT(cudaErrorUnknown, "unknown error"),
};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "unrecognized error code";
}

static char assertion[440];
static atomic_int asserting; // 1: its text is being written, 2: it is there

void sim_assert(const char *text)
{
    int none = 0;

    if (!atomic_compare_exchange_strong(&asserting, &none, 1))
        return;
    (void)snprintf(assertion, sizeof(assertion), "device-side assert triggered: %.400s",
                   text);
    // A message is a line.
    assertion[strcspn(assertion, "\n")] = '\0';
    dprintf(STDERR_FILENO, "simcuda: %s\n", assertion);
    asserting = 2;
}

bool sim_asserted(void)
{
    return asserting == 2;
}

const char *cudaGetErrorString(cudaError_t error)
{
    if (error == cudaErrorAssert && sim_asserted())
        return assertion;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].error == error)
            return errors[i].text;
    return "unrecognized error code";
}
