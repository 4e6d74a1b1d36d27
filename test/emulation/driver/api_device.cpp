// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's interface: initialization, errors, devices, contexts.

#include "driver/context.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <string>

using namespace hone::emulation;

namespace {

struct Name {
  int result;
  const char *name;
  const char *text;
};

constexpr Name kNames[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {kInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {kUnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {kAssert, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {kHostMemoryAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {kHostMemoryNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {kIllegalInstruction, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {kMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kCooperativeLaunchTooLarge, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {kInvalidClusterSize, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kStreamCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kStreamCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {kStreamCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "operation failed because the stream is not capturing"},
    {kStreamCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capture ended with work that was not joined"},
    {kStreamCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {kStreamCaptureImplicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {kGraphExecUpdateFailure, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed because it included changes which violated constraints specific to "
     "instantiated graph update"},
};

const Name *nameOf(int result) {
  const auto *found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Name &name) { return name.result == result; });
  return found == std::end(kNames) ? nullptr : found;
}

/// The function that programs get for a name: the newest revision.
void *symbolNamed(const std::string &name) {
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&symbolNamed), &self) == 0)
    return nullptr;
  void *library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr)
    return nullptr;
  void *found = nullptr;
  for (const char *revision : {"_v3", "_v2", ""})
    if (found == nullptr)
      found = dlsym(library, (name + revision).c_str());
  dlclose(library);
  return found;
}

} // namespace

HONE_DRIVER_API cuInit(unsigned flags) {
  Driver &driver = Driver::get();
  std::lock_guard lock(driver.mutex);
  if (flags != 0)
    return kInvalidValue;
  if (driver.environment.devices == 0)
    return kNoDevice;
  driver.initialized = true;
  return kSuccess;
}

HONE_DRIVER_API cuDriverGetVersion(int *version) {
  if (version == nullptr)
    return kInvalidValue;
  *version = Driver::get().environment.driverVersion;
  return kSuccess;
}

HONE_DRIVER_API cuGetErrorName(int error, const char **text) {
  const Name *name = nameOf(error);
  *text = name != nullptr ? name->name : nullptr;
  return name != nullptr ? kSuccess : kInvalidValue;
}

HONE_DRIVER_API cuGetErrorString(int error, const char **text) {
  const Name *name = nameOf(error);
  *text = name != nullptr ? name->text : nullptr;
  return name != nullptr ? kSuccess : kInvalidValue;
}

HONE_DRIVER_API cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
  if (symbol == nullptr || function == nullptr)
    return kInvalidValue;
  *function = symbolNamed(symbol);
  if (status != nullptr)
    *status = *function != nullptr ? 0 : 1;
  return *function != nullptr ? kSuccess : kNotFound;
}

HONE_DRIVER_API cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

HONE_DRIVER_API cuDeviceGetCount(int *count) {
  Call call(false);
  if (call)
    *count = call.driver.environment.devices;
  return call.status;
}

HONE_DRIVER_API cuDeviceGet(int *device, int ordinal) {
  Call call(false);
  if (call && !call.driver.hasDevice(ordinal))
    return kInvalidDevice;
  if (call)
    *device = ordinal;
  return call.status;
}

HONE_DRIVER_API cuDeviceGetName(char *name, int length, int device) {
  Call call(false);
  if (call && !call.driver.hasDevice(device))
    return kInvalidDevice;
  if (!call || length <= 0)
    return call ? kInvalidValue : call.status;
  std::strncpy(name, chipOf(call.driver.environment.chip).name, static_cast<size_t>(length));
  name[length - 1] = '\0';
  return kSuccess;
}

HONE_DRIVER_API cuDeviceGetAttribute(int *value, int attribute, int device) {
  Call call(false);
  if (!call)
    return call.status;
  if (!call.driver.hasDevice(device))
    return kInvalidDevice;
  std::optional<int> known = attributeOf(chipOf(call.driver.environment.chip), attribute, device);
  if (!known)
    return kInvalidValue;
  *value = *known;
  return kSuccess;
}

HONE_DRIVER_API cuDeviceTotalMem_v2(size_t *bytes, int device) {
  Call call(false);
  if (call && !call.driver.hasDevice(device))
    return kInvalidDevice;
  if (call)
    *bytes = call.driver.environment.memoryBytes;
  return call.status;
}

HONE_DRIVER_API cuDeviceGetUuid_v2(char *uuid, int device) {
  Call call(false);
  if (call && !call.driver.hasDevice(device))
    return kInvalidDevice;
  if (call) {
    std::memcpy(uuid, "hone-emulated-gp", 16);
    uuid[15] = static_cast<char>(call.driver.environment.firstDevice + device);
  }
  return call.status;
}

HONE_DRIVER_API cuDeviceGetUuid(char *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

HONE_DRIVER_API cuDevicePrimaryCtxRetain(Context **context, int device) {
  Call call(false);
  if (call && !call.driver.hasDevice(device))
    return kInvalidDevice;
  if (!call)
    return call.status;
  if (int fault = call.driver.faultOf(device); fault != kSuccess)
    return fault;
  try {
    *context = call.driver.retain(device);
    return kSuccess;
  } catch (const std::bad_alloc &) {
    return kOutOfMemory; // the system does not let a process reserve that many addresses
  }
}

HONE_DRIVER_API cuDevicePrimaryCtxRelease_v2(int device) {
  Call call(false);
  if (call && !call.driver.hasDevice(device))
    return kInvalidDevice;
  if (call && call.driver.context(device) == nullptr)
    return kInvalidContext;
  if (call)
    call.driver.release(device);
  return call.status;
}

HONE_DRIVER_API cuDevicePrimaryCtxReset_v2(int device) {
  Call call(false);
  if (call && !call.driver.hasDevice(device))
    return kInvalidDevice;
  if (call)
    call.driver.reset(device);
  return call.status;
}

HONE_DRIVER_API cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  Call call(false);
  if (call && !call.driver.hasDevice(device))
    return kInvalidDevice;
  if (call)
    *flags = 0, *active = call.driver.context(device) != nullptr ? 1 : 0;
  return call.status;
}

HONE_DRIVER_API cuCtxGetCurrent(Context **context) {
  Call call(false);
  if (call)
    *context = call.context;
  return call.status;
}

HONE_DRIVER_API cuCtxSetCurrent(Context *context) {
  Call call(false);
  if (!call)
    return call.status;
  if (context != nullptr && !call.driver.isLive(context))
    return kInvalidContext;
  std::vector<Context *> &contexts = currentContexts();
  if (!contexts.empty())
    contexts.pop_back();
  if (context != nullptr)
    contexts.push_back(context);
  return kSuccess;
}

HONE_DRIVER_API cuCtxPushCurrent_v2(Context *context) {
  Call call(false);
  if (call && !call.driver.isLive(context))
    return kInvalidContext;
  if (call)
    currentContexts().push_back(context);
  return call.status;
}

HONE_DRIVER_API cuCtxPopCurrent_v2(Context **context) {
  Call call(false);
  std::vector<Context *> &contexts = currentContexts();
  if (!call || contexts.empty())
    return call ? kInvalidContext : call.status;
  if (context != nullptr)
    *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

HONE_DRIVER_API cuCtxGetDevice(int *device) {
  Call call;
  if (call)
    *device = call.context->device;
  return call.status;
}

HONE_DRIVER_API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  Call call;
  if (least != nullptr)
    *least = 0;
  if (greatest != nullptr)
    *greatest = -5;
  return call.status;
}

HONE_DRIVER_API cuCtxSynchronize(void) {
  Call call;
  if (!call)
    return call.status;
  if (call.context->forbidsWaiting())
    return kStreamCaptureUnsupported;
  ++call.driver.counters.synchronisations;
  call.context->synchronize();
  call.driver.report();
  return call.context->error;
}
