// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's interface: virtual memory management.

#include "driver/api.h"

#include <bit>

using namespace hone::emulation;

namespace {

constexpr int kPinned = 1;    // CU_MEM_ALLOCATION_TYPE_PINNED
constexpr int kOnDevice = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kReadWrite = 3; // CU_MEM_ACCESS_FLAGS_PROT_READWRITE

bool isWhole(uint64_t bytes) { return bytes > 0 && bytes % DeviceMemory::kPage == 0; }

bool isRange(const DeviceMemory &memory, DevicePointer pointer, size_t bytes) {
  return memory.owns(pointer) && pointer % DeviceMemory::kPage == 0 && isWhole(bytes);
}

/// What a call returns that a range of addresses or a piece of memory does not allow.
int resultOf(bool happened) { return happened ? kSuccess : kInvalidValue; }

/// Addresses and pieces of memory are the device's: giving them back needs no current context, and heeds no fault. Whether any device has
/// done `giveBack`.
template <class GiveBack> bool anyDevice(Call &call, GiveBack giveBack) {
  for (int device = 0; call.driver.hasDevice(device); ++device)
    if (Context *context = call.driver.context(device); context != nullptr && giveBack(context->memory))
      return true;
  return false;
}

} // namespace

HONE_DRIVER_API cuMemGetAllocationGranularity(size_t *bytes, const AllocationProperties *properties, int option) {
  Call call;
  if (!call)
    return call.status;
  if (bytes == nullptr || properties == nullptr || properties->type != kPinned || option < 0 || option > 1)
    return kInvalidValue;
  *bytes = DeviceMemory::kPage;
  return kSuccess;
}

HONE_DRIVER_API cuMemAddressReserve(DevicePointer *pointer, size_t bytes, size_t alignment, DevicePointer wish,
                                    unsigned long long flags) {
  Call call;
  if (!call)
    return call.status;
  if (pointer == nullptr || !isWhole(bytes) || (alignment != 0 && !std::has_single_bit(alignment)) || flags != 0)
    return kInvalidValue;
  std::optional<uint64_t> address = call.context->memory.reserveAddresses(bytes, alignment);
  if (!address)
    return kOutOfMemory;
  ++call.driver.counters.pages.reservations;
  *pointer = *address;
  return kSuccess;
}

HONE_DRIVER_API cuMemAddressFree(DevicePointer pointer, size_t bytes) {
  Call call(false);
  return call ? resultOf(anyDevice(call,
                                   [&](DeviceMemory &memory) {
                                     return isRange(memory, pointer, bytes) && memory.freeAddresses(pointer, bytes);
                                   }))
              : call.status;
}

HONE_DRIVER_API cuMemCreate(unsigned long long *handle, size_t bytes, const AllocationProperties *properties,
                            unsigned long long flags) {
  Call call;
  if (!call)
    return call.status;
  bool isKnown = handle != nullptr && properties != nullptr && properties->type == kPinned &&
                 properties->handleTypes == 0 && properties->location.type == kOnDevice && flags == 0;
  if (!isKnown || !isWhole(bytes))
    return kInvalidValue;
  if (properties->location.id != call.context->device)
    return kInvalidDevice;
  std::optional<uint64_t> piece = call.context->memory.create(bytes);
  if (!piece)
    return kOutOfMemory;
  ++call.driver.counters.pages.created;
  *handle = *piece;
  return kSuccess;
}

HONE_DRIVER_API cuMemRelease(unsigned long long handle) {
  Call call(false);
  if (!call || !anyDevice(call, [&](DeviceMemory &memory) { return memory.releasePiece(handle); }))
    return call ? kInvalidValue : call.status;
  ++call.driver.counters.pages.released;
  return kSuccess;
}

HONE_DRIVER_API cuMemMap(DevicePointer pointer, size_t bytes, size_t offset, unsigned long long handle,
                         unsigned long long flags) {
  Call call;
  if (!call)
    return call.status;
  if (offset != 0 || flags != 0 || !isRange(call.context->memory, pointer, bytes) ||
      !call.context->memory.map(pointer, bytes, handle))
    return kInvalidValue;
  ++call.driver.counters.pages.mapped;
  return kSuccess;
}

HONE_DRIVER_API cuMemUnmap(DevicePointer pointer, size_t bytes) {
  Call call(false);
  if (!call)
    return call.status;
  if (!anyDevice(call,
                 [&](DeviceMemory &memory) { return isRange(memory, pointer, bytes) && memory.unmap(pointer, bytes); }))
    return kInvalidValue;
  ++call.driver.counters.pages.unmapped;
  return kSuccess;
}

HONE_DRIVER_API cuMemSetAccess(DevicePointer pointer, size_t bytes, const AccessDescription *descriptions,
                               size_t count) {
  Call call;
  if (!call)
    return call.status;
  bool isKnown = count == 1 && descriptions != nullptr && descriptions->location.type == kOnDevice &&
                 descriptions->location.id == call.context->device && descriptions->flags == kReadWrite;
  return resultOf(isKnown && isRange(call.context->memory, pointer, bytes) &&
                  call.context->memory.allow(pointer, bytes));
}
