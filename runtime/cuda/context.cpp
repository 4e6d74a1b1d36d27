// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Retaining and losing the primary context.

#include "cuda/context.h"
#include "cuda/launch_config.h"

namespace hone::rt::cuda {
namespace {

using io::cat;

constexpr int kLongestName = 256;

/// Guards who retains and releases the primary context.
std::mutex &primaryMutex() {
  static std::mutex mutex;
  return mutex;
}

/// Faults of this process: after one the driver lets it open the GPU no more (CUDA Driver API, CUDA_ERROR_ILLEGAL_ADDRESS).
class Faults {
public:
  /// Keeps the first on each GPU.
  void add(CUdevice device, std::string text) {
    std::lock_guard lock(mutex);
    texts.try_emplace(device, std::move(text));
  }
  /// Empty where there was none.
  std::string on(CUdevice device) {
    std::lock_guard lock(mutex);
    auto found = texts.find(device);
    return found == texts.end() ? "" : found->second;
  }

private:
  std::mutex mutex;
  std::map<CUdevice, std::string> texts;
};
Faults &faultsOfProcess() {
  static Faults faults;
  return faults;
}

} // namespace

Context::Scope::Scope(const Context &context)
    : driver(context.functions), entered(!context.isLost() && driver.cuCtxPushCurrent(context.handle) == CUDA_SUCCESS) {
}

Context::Scope::~Scope() {
  CUcontext previous = nullptr;
  if (entered)
    driver.cuCtxPopCurrent(&previous);
}

absl::StatusOr<std::shared_ptr<Context>> Context::get(int number) {
  static std::map<int, std::weak_ptr<Context>> known;
  HONE_ASSIGN_OR_RETURN(const Driver *driver, Driver::get());
  std::shared_ptr<Context> context; // destroyed outside of the lock
  std::lock_guard lock(primaryMutex());
  std::weak_ptr<Context> &latest = known[number];
  context = latest.lock();
  if (context && !context->isLost())
    return context;
  CUdevice device = 0;
  HONE_RETURN_IF_ERROR(driver->check(driver->cuDeviceGet(&device, number), "open the GPU"));
  if (std::string fault = faultsOfProcess().on(device); !fault.empty())
    return absl::UnavailableError(cat("cannot open the GPU: a kernel of this process failed there before (", fault,
                                      "), and the driver lets only another process go on"));
  context.reset(new Context(*driver, device));
  HONE_RETURN_IF_ERROR(context->open());
  latest = context;
  return context;
}

absl::Status Context::open() {
  HONE_RETURN_IF_ERROR(describe());
  HONE_RETURN_IF_ERROR(
      functions.check(functions.cuDevicePrimaryCtxRetain(&handle, device), cat("open the ", description.name)));
  isRetained = true;
  Scope scope(*this);
  size_t free = 0;
  HONE_RETURN_IF_ERROR(functions.check(functions.cuMemGetInfo(&free, &description.memoryBytes),
                                       cat("ask for the memory of the ", description.name)));
  HONE_RETURN_IF_ERROR(pagePool.open(device));
  return createPool();
}

absl::Status Context::describe() {
  char name[kLongestName] = {};
  int major = 0, minor = 0, shared = 0;
  HONE_RETURN_IF_ERROR(functions.check(functions.cuDeviceGetName(name, kLongestName, device), "describe the GPU"));
  struct {
    CUdevice_attribute attribute;
    int *value;
  } wanted[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
                {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &description.multiprocessors},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared}};
  for (auto [attribute, value] : wanted)
    HONE_RETURN_IF_ERROR(
        functions.check(functions.cuDeviceGetAttribute(value, attribute, device), cat("describe the ", name)));
  description.name = name;
  description.capability = 10 * major + minor;
  description.sharedBytes = shared;
  return absl::OkStatus();
}

/// A pool that keeps what is freed, so that a call finds the memory of the one before.
absl::Status Context::createPool() {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  HONE_RETURN_IF_ERROR(functions.check(functions.cuMemPoolCreate(&memoryPool, &properties),
                                       cat("create a pool of memory on the ", description.name)));
  uint64_t threshold = UINT64_MAX;
  return functions.check(functions.cuMemPoolSetAttribute(memoryPool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
                         cat("keep memory on the ", description.name));
}

Context::~Context() {
  std::lock_guard lock(primaryMutex());
  release();
}

void Context::release() {
  if (!isRetained)
    return;
  isRetained = false;
  if (!isLost())
    unloadAll();
  functions.cuDevicePrimaryCtxRelease(device);
}

void Context::unloadAll() {
  Scope scope(*this);
  for (auto [fatbin, module] : modules)
    functions.cuModuleUnload(module);
  pagePool.trim();
  if (memoryPool)
    functions.cuMemPoolDestroy(memoryPool);
}

absl::StatusOr<CUmodule> Context::moduleOf(const void *fatbin, const char *name) {
  std::lock_guard lock(moduleMutex);
  CUmodule &module = modules[fatbin];
  if (!module)
    HONE_RETURN_IF_ERROR(check(functions.cuModuleLoadData(&module, fatbin), cat("load the kernel ", name)));
  return module;
}

absl::StatusOr<CUfunction> Context::function(const void *fatbin, const char *name) {
  Scope scope(*this);
  HONE_ASSIGN_OR_RETURN(CUmodule module, moduleOf(fatbin, name));
  CUfunction found = nullptr;
  HONE_RETURN_IF_ERROR(check(functions.cuModuleGetFunction(&found, module, name), cat("find the kernel ", name)));
  return found;
}

absl::Status Context::launch(const Kernel &kernel, const hone::cuda::LaunchShape &shape, CUstream stream,
                             void **arguments) {
  LaunchConfig config(shape, stream, kernel.isDependent, description.capability);
  CUresult result = functions.cuLaunchKernelEx(&config.all, kernel.function, arguments, nullptr);
  return result == CUDA_SUCCESS ? absl::OkStatus() : check(result, cat("launch kernel '", kernel.name, "'"));
}

absl::Status Context::allowShared(const Kernel &kernel, uint32_t bytes) {
  std::lock_guard lock(sharedMutex);
  uint32_t &allowed = sharedBytes[kernel.function];
  if (bytes <= allowed)
    return absl::OkStatus();
  HONE_RETURN_IF_ERROR(
      check(functions.cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         static_cast<int>(bytes)),
            cat("give kernel '", kernel.name, "' ", bytes, " bytes of shared memory")));
  allowed = bytes;
  return absl::OkStatus();
}

absl::Status Context::outOfMemory(uint64_t bytes, std::string_view what) const {
  size_t free = 0, total = 0;
  Scope scope(*this);
  functions.cuMemGetInfo(&free, &total);
  return absl::ResourceExhaustedError(
      cat("cannot allocate ", bytes, " bytes of GPU memory for ", what, ": ", free, " of ", total, " bytes are free"));
}

absl::Status Context::check(CUresult result, std::string_view what) {
  if (isFault(result)) {
    faultsOfProcess().add(device, functions.textOf(result));
    isGone = true;
  }
  return functions.check(result, what);
}

std::string Context::faultText() const { return faultsOfProcess().on(device); }

} // namespace hone::rt::cuda
