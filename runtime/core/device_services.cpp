// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C functions that a program for a device imports (hone/runtime/device.h documents them). Nothing with a destructor lives in
// them when they leave the call.

#include "core/call.h"

namespace hone::rt {
namespace {

DeviceQueue &queueOf(hone_call *call) { return *CallContext::of(call).queue(); }

/// The memory that `make` returns, or the end of the call.
template <typename Make> void *memoryOf(hone_call *call, Make make) {
  void *memory = nullptr;
  runOrLeave(call, [&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(memory, make());
    return absl::OkStatus();
  });
  return memory;
}

const uint8_t *serviceWeights(hone_call *call) { return queueOf(call).weights(); }

void *serviceInput(hone_call *call, int64_t index) {
  return memoryOf(call, [=] { return CallContext::of(call).deviceInput(index); });
}

void *serviceDeviceOutput(hone_call *call, int64_t index, int64_t rank, const int64_t *sizes) {
  return memoryOf(call, [=] { return CallContext::of(call).createDeviceOutput(index, rank, sizes); });
}

void serviceDeviceArena(hone_call *call, int64_t count, const uint64_t *bytes, void **slots) {
  auto number = static_cast<size_t>(count);
  runOrLeave(call, [=] { return queueOf(call).placeSlots({bytes, number}, {slots, number}); });
}

void *serviceDeviceAlloc(hone_call *call, uint64_t bytes) {
  return memoryOf(call, [=] { return queueOf(call).allocate(bytes); });
}

void serviceDeviceFree(hone_call *call, void *memory) { queueOf(call).release(memory); }

void serviceLaunch(hone_call *call, int64_t kernel, const int64_t *shape, void **arguments) {
  runOrLeave(call, [=] { return queueOf(call).launch(kernel, std::span<const int64_t, 7>(shape, 7), arguments); });
}

void serviceDeviceCopy(hone_call *call, void *to, const void *from, uint64_t bytes) {
  runOrLeave(call, [=] { return queueOf(call).copy(to, from, bytes); });
}

void serviceUpload(hone_call *call, void *device, const void *host, uint64_t bytes) {
  runOrLeave(call, [=] { return queueOf(call).upload(device, host, bytes); });
}

void serviceFetch(hone_call *call, void *host, const void *device, uint64_t bytes) {
  runOrLeave(call, [=] { return queueOf(call).fetch(host, device, bytes); });
}

void serviceStateExtend(hone_call *call, int64_t slot, int64_t rank, const int64_t *sizes, hone_tensor *fresh) {
  if (!CallContext::of(call).extendState(slot, {sizes, static_cast<size_t>(rank)}, *fresh))
    CallContext::of(call).leave();
}

const Service kServices[] = {
    {"hone_rt_device_weights", reinterpret_cast<void *>(&serviceWeights)},
    {"hone_rt_device_input", reinterpret_cast<void *>(&serviceInput)},
    {"hone_rt_device_output", reinterpret_cast<void *>(&serviceDeviceOutput)},
    {"hone_rt_device_arena", reinterpret_cast<void *>(&serviceDeviceArena)},
    {"hone_rt_device_alloc", reinterpret_cast<void *>(&serviceDeviceAlloc)},
    {"hone_rt_device_free", reinterpret_cast<void *>(&serviceDeviceFree)},
    {"hone_rt_launch", reinterpret_cast<void *>(&serviceLaunch)},
    {"hone_rt_device_copy", reinterpret_cast<void *>(&serviceDeviceCopy)},
    {"hone_rt_upload", reinterpret_cast<void *>(&serviceUpload)},
    {"hone_rt_state_extend", reinterpret_cast<void *>(&serviceStateExtend)},
    {"hone_rt_fetch", reinterpret_cast<void *>(&serviceFetch)},
};

} // namespace

void *findDeviceService(std::string_view name) { return findService(kServices, name); }

} // namespace hone::rt
