// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's interface: memory of the device and pinned memory of the host.

#include "driver/api.h"

#include <cstdlib>
#include <cstring>

using namespace hone::emulation;

namespace {

constexpr size_t kPage = 4096;
constexpr int kFill = 0xff;

uint64_t addressOf(void *pool) { return reinterpret_cast<uint64_t>(pool); }

int allocateIn(Call &call, DevicePointer *pointer, size_t bytes) {
  if (pointer == nullptr || bytes == 0)
    return kInvalidValue;
  std::optional<uint64_t> address = call.context->allocate(bytes);
  if (!address)
    return kOutOfMemory;
  *pointer = *address;
  return kSuccess;
}

int freeNow(Call &call, DevicePointer pointer) {
  if (pointer == 0)
    return kSuccess;
  if (call.context->forbidsWaiting())
    return kStreamCaptureUnsupported;
  call.context->synchronize();
  if (call.context->error != kSuccess)
    return call.context->error;
  return call.context->memory.release(pointer) ? kSuccess : kInvalidValue;
}

int allocateOn(Call &call, DevicePointer *pointer, size_t bytes, void *handle) {
  Stream *stream = call.stream(handle);
  if (stream == nullptr)
    return call.status;
  // Nodes of graphs that allocate are not emulated.
  if (stream->capture) {
    stream->capture->invalidated = true;
    return kStreamCaptureUnsupported;
  }
  ++call.driver.counters.poolAllocations;
  return allocateIn(call, pointer, bytes);
}

} // namespace

HONE_DRIVER_API cuMemAlloc_v2(DevicePointer *pointer, size_t bytes) {
  Call call;
  if (!call)
    return call.status;
  if (call.context->forbidsWaiting())
    return kStreamCaptureUnsupported;
  ++call.driver.counters.allocations;
  return allocateIn(call, pointer, bytes);
}

HONE_DRIVER_API cuMemFree_v2(DevicePointer pointer) {
  Call call;
  return call ? freeNow(call, pointer) : call.status;
}

HONE_DRIVER_API cuMemAllocAsync(DevicePointer *pointer, size_t bytes, void *stream) {
  Call call;
  return call ? allocateOn(call, pointer, bytes, stream) : call.status;
}

HONE_DRIVER_API cuMemAllocFromPoolAsync(DevicePointer *pointer, size_t bytes, Pool *pool, void *stream) {
  Call call;
  if (call && pool != &call.context->defaultPool && find(call.context->pools, pool) == nullptr)
    return kInvalidHandle;
  return call ? allocateOn(call, pointer, bytes, stream) : call.status;
}

HONE_DRIVER_API cuMemFreeAsync(DevicePointer pointer, void *handle) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  if (stream == nullptr || pointer == 0)
    return call.status;
  auto found = call.context->memory.find(pointer);
  if (!found || found->first != pointer)
    return kInvalidValue;
  if (stream->capture) {
    stream->capture->invalidated = true;
    return kStreamCaptureUnsupported;
  }
  Context *context = call.context;
  return submit(call, *stream,
                {Operation::Kind::Free,
                 [=] {
                   if (!context->memory.release(pointer))
                     throw Fault(Fault::Kind::IllegalAddress, "memory was freed twice");
                 },
                 {}});
}

HONE_DRIVER_API cuMemGetInfo_v2(size_t *available, size_t *total) {
  Call call;
  if (call)
    *available = call.context->memory.available(), *total = call.context->memory.limit();
  return call.status;
}

HONE_DRIVER_API cuMemGetAddressRange_v2(DevicePointer *begin, size_t *bytes, DevicePointer pointer) {
  Call call;
  if (!call)
    return call.status;
  auto found = call.context->memory.find(pointer);
  if (!found)
    return kNotFound;
  if (begin != nullptr)
    *begin = found->first;
  if (bytes != nullptr)
    *bytes = found->second;
  return kSuccess;
}

HONE_DRIVER_API cuPointerGetAttribute(void *data, int attribute, DevicePointer pointer) {
  constexpr int kMemoryType = 2;
  constexpr int kOrdinal = 9;
  Call call;
  if (!call)
    return call.status;
  const DeviceMemory &memory = call.context->memory;
  bool onDevice = memory.find(pointer).has_value() || memory.isMapped(pointer);
  if (!onDevice && !call.driver.isPinned(reinterpret_cast<void *>(pointer)))
    return kInvalidValue;
  if (attribute == kMemoryType)
    *static_cast<unsigned *>(data) = onDevice ? 2 : 1;
  else if (attribute == kOrdinal)
    *static_cast<int *>(data) = call.context->device;
  else
    return kNotSupported;
  return kSuccess;
}

HONE_DRIVER_API cuDeviceGetDefaultMemPool(Pool **pool, int device) {
  Call call(false);
  if (call && (!call.driver.hasDevice(device) || call.driver.context(device) == nullptr))
    return kInvalidDevice;
  if (call)
    *pool = &call.driver.context(device)->defaultPool;
  return call.status;
}

HONE_DRIVER_API cuDeviceGetMemPool(Pool **pool, int device) { return cuDeviceGetDefaultMemPool(pool, device); }

HONE_DRIVER_API cuMemPoolCreate(Pool **pool, const void *properties) {
  Call call;
  if (!call)
    return call.status;
  auto created = std::make_unique<Pool>();
  created->context = call.context;
  *pool = keep(call.context->pools, std::move(created));
  return kSuccess;
}

HONE_DRIVER_API cuMemPoolDestroy(Pool *pool) {
  Call call;
  if (call && call.context->pools.erase(pool) == 0)
    return kInvalidValue;
  return call.status;
}

HONE_DRIVER_API cuMemPoolSetAttribute(Pool *pool, unsigned attribute, void *value) {
  constexpr unsigned kFirstOfBytes = 4; // those before it are flags
  Call call;
  if (call && attribute >= std::size(pool->attributes))
    return kInvalidValue;
  if (call)
    std::memcpy(&pool->attributes[attribute], value, attribute < kFirstOfBytes ? sizeof(int) : sizeof(uint64_t));
  return call.status;
}

HONE_DRIVER_API cuMemPoolGetAttribute(Pool *pool, unsigned attribute, void *value) {
  constexpr unsigned kFirstOfBytes = 4;
  Call call;
  if (call && attribute >= std::size(pool->attributes))
    return kInvalidValue;
  if (call)
    std::memcpy(value, &pool->attributes[attribute], attribute < kFirstOfBytes ? sizeof(int) : sizeof(uint64_t));
  return call.status;
}

HONE_DRIVER_API cuMemPoolTrimTo(Pool *pool, size_t bytes) { return Call().status; }

HONE_DRIVER_API cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  Call call;
  if (!call || bytes == 0)
    return call ? kInvalidValue : call.status;
  void *allocated = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (allocated == nullptr)
    return kOutOfMemory;
  std::memset(allocated, kFill, bytes);
  call.driver.pinned[addressOf(allocated)] = {bytes, call.context};
  *memory = allocated;
  return kSuccess;
}

HONE_DRIVER_API cuMemAllocHost_v2(void **memory, size_t bytes) { return cuMemHostAlloc(memory, bytes, 0); }

HONE_DRIVER_API cuMemFreeHost(void *memory) {
  Call call;
  if (call.context == nullptr)
    return call.status;
  call.context->synchronize();
  if (call.driver.pinned.erase(addressOf(memory)) == 0)
    return kInvalidValue;
  std::free(memory);
  return call.context->error;
}

HONE_DRIVER_API cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
  Call call;
  if (!call)
    return call.status;
  if (memory == nullptr || bytes == 0)
    return kInvalidValue;
  if (call.driver.isPinned(memory))
    return kHostMemoryAlreadyRegistered;
  call.driver.pinned[addressOf(memory)] = {bytes, nullptr};
  return kSuccess;
}

HONE_DRIVER_API cuMemHostUnregister(void *memory) {
  Call call;
  if (call.context == nullptr)
    return call.status;
  call.context->synchronize();
  return call.driver.pinned.erase(addressOf(memory)) == 0 ? kHostMemoryNotRegistered : call.context->error;
}

HONE_DRIVER_API cuMemHostGetDevicePointer_v2(DevicePointer *pointer, void *memory, unsigned flags) {
  // Kernels that reach into memory of the host are not emulated.
  return kNotSupported;
}
