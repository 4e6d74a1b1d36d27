// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's interface: modules, kernels, launches.

#include "driver/api.h"
#include "driver/image.h"

#include <cstdio>
#include <cstring>

using namespace hone::emulation;

namespace {

constexpr int kMaxThreads = 0;
constexpr int kStaticShared = 1;
constexpr int kConstantBytes = 2;
constexpr int kLocalBytes = 3;
constexpr int kRegisters = 4;
constexpr int kPtxVersion = 5;
constexpr int kBinaryVersion = 6;
constexpr int kMostDynamicShared = 8;
constexpr int kPreferredCarveout = 9;

// What a compiler would give a kernel is not known here; so many registers let every launch fit.
constexpr int kAssumedRegisters = 32;

Function *functionOf(Call &call, void *handle) {
  auto found = call.context->functions.find(handle);
  if (found != call.context->functions.end())
    return found->second;
  call.status = kInvalidHandle;
  return nullptr;
}

/// Why a device would refuse a launch of this shape.
Result checkShape(const Function &function, const Launch &launch, const Chip &chip) {
  const Kernel &kernel = *function.kernel;
  uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  bool empty = launch.blocks() == 0 || threads == 0;
  bool grid = launch.grid[0] <= 0x7fffffff && launch.grid[1] <= 65535 && launch.grid[2] <= 65535;
  bool block = launch.block[0] <= 1024 && launch.block[1] <= 1024 && launch.block[2] <= 64 &&
               threads <= kernel.maxThreads && threads <= 1024;
  if (empty || !grid || !block)
    return kInvalidValue;
  if (launch.grid[0] % kernel.cluster != 0)
    return kInvalidClusterSize;
  if (kernel.requiredThreads[0] != 0 && launch.block != kernel.requiredThreads)
    return kInvalidValue;
  if (launch.dynamicShared > static_cast<uint32_t>(function.mostDynamicShared) ||
      launch.sharedBytes() > static_cast<uint32_t>(chip.sharedPerBlock) ||
      (function.mostDynamicShared == kPlainSharedBytes &&
       launch.sharedBytes() > static_cast<uint32_t>(kPlainSharedBytes)))
    return kInvalidValue;
  return kSuccess;
}

int blocksPerMultiprocessor(const Chip &chip, const Kernel &kernel, int threads, size_t dynamicShared) {
  int warps = (threads + 31) / 32;
  int byThreads = chip.threadsPerMultiprocessor / (warps * 32);
  // The system keeps 1 KiB of each block.
  size_t shared = kernel.staticShared + dynamicShared + 1024;
  auto byShared = static_cast<int>(static_cast<size_t>(chip.sharedPerMultiprocessor) / shared);
  return std::min({chip.blocksPerMultiprocessor, byThreads, byShared});
}

/// Copies arguments as the kernel's parameters lie: each from its pointer, or all of them from one buffer.
Result packArguments(const Kernel &kernel, void **arguments, void **extra, std::vector<std::byte> &bytes) {
  constexpr uintptr_t kBuffer = 1;
  constexpr uintptr_t kBufferSize = 2;
  bytes.assign(kernel.parameterBytes, std::byte{0xff});
  if (arguments != nullptr) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i)
      std::memcpy(bytes.data() + kernel.parameters[i].offset, arguments[i], kernel.parameters[i].bytes);
    return kSuccess;
  }
  const void *buffer = nullptr;
  size_t size = 0;
  for (; extra != nullptr && *extra != nullptr; extra += 2) {
    if (reinterpret_cast<uintptr_t>(extra[0]) == kBuffer)
      buffer = extra[1];
    else if (reinterpret_cast<uintptr_t>(extra[0]) == kBufferSize)
      size = *static_cast<size_t *>(extra[1]);
  }
  if (bytes.empty())
    return kSuccess;
  if (size < bytes.size() || buffer == nullptr)
    return kInvalidValue;
  std::memcpy(bytes.data(), buffer, bytes.size());
  return kSuccess;
}

int launchOn(Call &call, Stream *stream, const LaunchRequest &request) {
  Operation operation{Operation::Kind::Launch, {}, {}};
  if (Result result = makeLaunch(call, request, operation); result != kSuccess)
    return result;
  ++call.driver.counters.launches;
  return submit(call, *stream, std::move(operation));
}

} // namespace

namespace hone::emulation {

Result makeLaunch(Call &call, const LaunchRequest &request, Operation &operation) {
  Function *function = functionOf(call, request.function);
  if (function == nullptr)
    return kInvalidHandle;
  auto launch = std::make_shared<Launch>();
  launch->kernel = function->kernel;
  launch->memory = &call.context->memory;
  launch->grid = {request.grid[0], request.grid[1], request.grid[2]};
  launch->block = {request.block[0], request.block[1], request.block[2]};
  launch->dynamicShared = request.sharedBytes;
  launch->multiprocessors = static_cast<uint32_t>(call.context->chip.multiprocessors);
  launch->cooperative = request.cooperative;
  if (Result result = checkShape(*function, *launch, call.context->chip); result != kSuccess)
    return result;
  if (request.cooperative) {
    int resident = blocksPerMultiprocessor(call.context->chip, *function->kernel, static_cast<int>(launch->threads()),
                                           request.sharedBytes);
    if (launch->blocks() > static_cast<uint64_t>(resident) * launch->multiprocessors)
      return kCooperativeLaunchTooLarge;
  }
  if (Result result = packArguments(*function->kernel, request.arguments, request.extra, launch->parameters);
      result != kSuccess)
    return result;
  operation.launch = std::move(launch);
  return kSuccess;
}

} // namespace hone::emulation

HONE_DRIVER_API cuModuleLoadData(LoadedModule **module, const void *image) {
  Call call;
  if (!call || module == nullptr || image == nullptr)
    return call ? kInvalidValue : call.status;
  std::string text;
  try {
    const Environment &environment = call.driver.environment;
    if (Result result = selectPtx(image, environment.chip, environment.driverVersion, text); result != kSuccess)
      return result;
    auto loaded = std::make_unique<LoadedModule>();
    loaded->context = call.context;
    loaded->ptx = std::make_unique<PtxModule>(std::move(text), call.context->memory);
    *module = keep(call.context->modules, std::move(loaded));
    return kSuccess;
  } catch (const PtxError &error) {
    std::fprintf(stderr, "emulated driver: %s\n", error.what());
    return kInvalidPtx;
  } catch (const std::bad_alloc &) {
    return kOutOfMemory;
  }
}

HONE_DRIVER_API cuModuleLoadDataEx(LoadedModule **module, const void *image, unsigned count, int *options,
                                   void **values) {
  return cuModuleLoadData(module, image);
}

HONE_DRIVER_API cuModuleLoadFatBinary(LoadedModule **module, const void *image) {
  return cuModuleLoadData(module, image);
}

HONE_DRIVER_API cuModuleUnload(LoadedModule *module) {
  Call call;
  if (!call)
    return call.status;
  if (find(call.context->modules, module) == nullptr)
    return kInvalidHandle;
  call.context->synchronize();
  for (auto &[name, function] : module->functions)
    call.context->functions.erase(function.get());
  call.context->modules.erase(module);
  return call.context->error;
}

HONE_DRIVER_API cuModuleGetFunction(Function **function, LoadedModule *module, const char *name) {
  Call call;
  if (!call)
    return call.status;
  if (find(call.context->modules, module) == nullptr)
    return kInvalidHandle;
  const Kernel *kernel = module->ptx->kernel(name);
  if (kernel == nullptr)
    return kNotFound;
  std::unique_ptr<Function> &known = module->functions[name];
  if (!known)
    known = std::make_unique<Function>(Function{module, kernel});
  *function = known.get();
  call.context->functions[known.get()] = known.get();
  return kSuccess;
}

HONE_DRIVER_API cuModuleGetGlobal_v2(DevicePointer *pointer, size_t *bytes, LoadedModule *module, const char *name) {
  Call call;
  if (!call)
    return call.status;
  if (find(call.context->modules, module) == nullptr)
    return kInvalidHandle;
  uint64_t address = module->ptx->addressOf(name);
  if (address == 0)
    return kNotFound;
  if (pointer != nullptr)
    *pointer = address;
  if (bytes != nullptr)
    *bytes = module->ptx->variable(name)->bytes;
  return kSuccess;
}

HONE_DRIVER_API cuFuncGetAttribute(int *value, int attribute, void *handle) {
  Call call;
  const Function *function = call ? functionOf(call, handle) : nullptr;
  if (function == nullptr)
    return call.status;
  const Kernel &kernel = *function->kernel;
  switch (attribute) {
  case kMaxThreads:
    *value = static_cast<int>(kernel.maxThreads);
    break;
  case kStaticShared:
    *value = static_cast<int>(kernel.staticShared);
    break;
  case kConstantBytes:
    *value = 0;
    break;
  case kLocalBytes:
    *value = static_cast<int>(kernel.localBytes);
    break;
  case kRegisters:
    *value = kAssumedRegisters;
    break;
  case kPtxVersion:
  case kBinaryVersion:
    *value = call.context->chip.architecture;
    break;
  case kMostDynamicShared:
    *value = function->mostDynamicShared;
    break;
  case kPreferredCarveout:
    *value = -1;
    break;
  default:
    return kInvalidValue;
  }
  return kSuccess;
}

HONE_DRIVER_API cuFuncSetAttribute(void *handle, int attribute, int value) {
  Call call;
  Function *function = call ? functionOf(call, handle) : nullptr;
  if (function == nullptr)
    return call.status;
  if (attribute == kPreferredCarveout)
    return kSuccess;
  int most = call.context->chip.sharedPerBlock - static_cast<int>(function->kernel->staticShared);
  if (attribute != kMostDynamicShared || value < 0 || value > most)
    return kInvalidValue;
  function->mostDynamicShared = value;
  return kSuccess;
}

HONE_DRIVER_API cuFuncSetCacheConfig(void *handle, int config) {
  Call call;
  return call && functionOf(call, handle) == nullptr ? kInvalidHandle : call.status;
}

HONE_DRIVER_API cuFuncGetName(const char **name, void *handle) {
  Call call;
  if (const Function *function = call ? functionOf(call, handle) : nullptr)
    *name = function->kernel->name.c_str();
  return call.status;
}

HONE_DRIVER_API cuFuncGetParamInfo(void *handle, size_t index, size_t *offset, size_t *bytes) {
  Call call;
  const Function *function = call ? functionOf(call, handle) : nullptr;
  if (function == nullptr)
    return call.status;
  if (index >= function->kernel->parameters.size())
    return kInvalidValue;
  *offset = function->kernel->parameters[index].offset;
  if (bytes != nullptr)
    *bytes = function->kernel->parameters[index].bytes;
  return kSuccess;
}

HONE_DRIVER_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *handle, int threads,
                                                            size_t dynamicShared) {
  Call call;
  const Function *function = call ? functionOf(call, handle) : nullptr;
  if (function == nullptr)
    return call.status;
  if (threads <= 0)
    return kInvalidValue;
  *blocks = blocksPerMultiprocessor(call.context->chip, *function->kernel, threads, dynamicShared);
  return kSuccess;
}

HONE_DRIVER_API cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                               unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream, void **arguments,
                               void **extra) {
  Call call;
  Stream *queue = call ? call.stream(stream) : nullptr;
  if (queue == nullptr)
    return call.status;
  return launchOn(call, queue,
                  {function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, false, arguments, extra});
}

HONE_DRIVER_API cuLaunchCooperativeKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                          unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                                          void *stream, void **arguments) {
  Call call;
  Stream *queue = call ? call.stream(stream) : nullptr;
  if (queue == nullptr)
    return call.status;
  return launchOn(call, queue,
                  {function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, true, arguments, nullptr});
}

HONE_DRIVER_API cuLaunchKernelEx(const LaunchConfig *config, void *function, void **arguments, void **extra) {
  Call call;
  Stream *queue = call ? call.stream(config->stream) : nullptr;
  if (queue == nullptr)
    return call.status;
  LaunchRequest request{function,
                        {config->grid[0], config->grid[1], config->grid[2]},
                        {config->block[0], config->block[1], config->block[2]},
                        config->sharedBytes,
                        false,
                        arguments,
                        extra};
  for (unsigned i = 0; i < config->numAttributes; ++i) {
    const LaunchAttribute &attribute = config->attributes[i];
    if (attribute.id == kAttributeCooperative)
      request.cooperative = attribute.cooperative != 0;
    if (attribute.id == kAttributeCluster && attribute.cluster.x * attribute.cluster.y * attribute.cluster.z > 1)
      return kNotSupported;
  }
  return launchOn(call, queue, request);
}
