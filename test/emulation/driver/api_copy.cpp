// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's interface: copies and fills.

#include "driver/api.h"

#include <cstring>

using namespace hone::emulation;

namespace {

/// Bytes of the device that a copy may touch when it is done; a program may have freed them since it was enqueued.
std::byte *located(Context &context, DevicePointer pointer, size_t bytes) {
  if (!context.memory.holds(pointer, bytes))
    throw Fault(Fault::Kind::IllegalAddress, "a copy of " + std::to_string(bytes) + " bytes that are not allocated");
  return context.memory.bytes(pointer);
}

void count(Counters::Copies &copies, size_t bytes) {
  ++copies.count;
  copies.bytes += bytes;
}

int copyToDevice(Call &call, Stream &stream, DevicePointer to, const void *from, size_t bytes) {
  Context *context = call.context;
  if (!context->memory.holds(to, bytes))
    return kInvalidValue;
  // Pinned memory is read when the copy is done, and so is what a graph copies; other memory when the call is made.
  auto staged = std::make_shared<std::vector<std::byte>>();
  if (!call.driver.isPinned(from) && !stream.capture) {
    const auto *begin = static_cast<const std::byte *>(from);
    staged->assign(begin, begin + bytes);
    from = staged->data();
  }
  return submit(call, stream,
                {Operation::Kind::Copy,
                 [=] {
                   std::memcpy(located(*context, to, bytes), from, bytes);
                   (void)staged;
                   count(Driver::get().counters.toDevice, bytes);
                 },
                 {}});
}

int copyToHost(Call &call, Stream &stream, void *to, DevicePointer from, size_t bytes) {
  Context *context = call.context;
  if (!context->memory.holds(from, bytes))
    return kInvalidValue;
  return submit(call, stream,
                {Operation::Kind::Copy,
                 [=] {
                   std::memcpy(to, located(*context, from, bytes), bytes);
                   count(Driver::get().counters.toHost, bytes);
                 },
                 {}});
}

int copyOnDevice(Call &call, Stream &stream, DevicePointer to, DevicePointer from, size_t bytes) {
  Context *context = call.context;
  if (!context->memory.holds(from, bytes) || !context->memory.holds(to, bytes))
    return kInvalidValue;
  return submit(call, stream,
                {Operation::Kind::Copy,
                 [=] {
                   std::memcpy(located(*context, to, bytes), located(*context, from, bytes), bytes);
                   count(Driver::get().counters.onDevice, bytes);
                 },
                 {}});
}

/// By where the pointers point.
int copyAny(Call &call, Stream &stream, DevicePointer to, DevicePointer from, size_t bytes) {
  bool toDevice = call.context->memory.owns(to);
  bool fromDevice = call.context->memory.owns(from);
  if (toDevice && fromDevice)
    return copyOnDevice(call, stream, to, from, bytes);
  if (toDevice)
    return copyToDevice(call, stream, to, reinterpret_cast<void *>(from), bytes);
  if (fromDevice)
    return copyToHost(call, stream, reinterpret_cast<void *>(to), from, bytes);
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return kSuccess;
}

template <class T> int fill(Call &call, Stream &stream, DevicePointer to, T value, size_t count) {
  Context *context = call.context;
  if (!context->memory.holds(to, count * sizeof(T)) || to % sizeof(T) != 0)
    return kInvalidValue;
  return submit(call, stream,
                {Operation::Kind::Set,
                 [=] {
                   std::fill_n(reinterpret_cast<T *>(located(*context, to, count * sizeof(T))), count, value);
                   ++Driver::get().counters.memsets;
                 },
                 {}});
}

/// Enqueues on a stream; nothing is done where nothing is asked for.
template <class Work> int onStream(void *handle, size_t amount, Work work) {
  Call call;
  Stream *stream = call ? call.stream(handle) : nullptr;
  if (stream == nullptr || amount == 0)
    return call.status;
  return work(call, *stream);
}

/// Enqueues on the default stream, and waits.
template <class Work> int atOnce(size_t amount, Work work) {
  Call call;
  if (!call || amount == 0)
    return call.status;
  if (call.context->forbidsWaiting())
    return kStreamCaptureUnsupported;
  Stream &stream = call.context->defaultStream;
  if (int result = work(call, stream); result != kSuccess)
    return result;
  return waitFor(call, stream);
}

} // namespace

HONE_DRIVER_API cuMemcpyHtoDAsync_v2(DevicePointer to, const void *from, size_t bytes, void *stream) {
  return onStream(stream, bytes, [=](Call &call, Stream &queue) { return copyToDevice(call, queue, to, from, bytes); });
}

HONE_DRIVER_API cuMemcpyDtoHAsync_v2(void *to, DevicePointer from, size_t bytes, void *stream) {
  return onStream(stream, bytes, [=](Call &call, Stream &queue) { return copyToHost(call, queue, to, from, bytes); });
}

HONE_DRIVER_API cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, void *stream) {
  return onStream(stream, bytes, [=](Call &call, Stream &queue) { return copyOnDevice(call, queue, to, from, bytes); });
}

HONE_DRIVER_API cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, void *stream) {
  return onStream(stream, bytes, [=](Call &call, Stream &queue) { return copyAny(call, queue, to, from, bytes); });
}

HONE_DRIVER_API cuMemcpyHtoD_v2(DevicePointer to, const void *from, size_t bytes) {
  return atOnce(bytes, [=](Call &call, Stream &queue) { return copyToDevice(call, queue, to, from, bytes); });
}

HONE_DRIVER_API cuMemcpyDtoH_v2(void *to, DevicePointer from, size_t bytes) {
  return atOnce(bytes, [=](Call &call, Stream &queue) { return copyToHost(call, queue, to, from, bytes); });
}

HONE_DRIVER_API cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, size_t bytes) {
  return atOnce(bytes, [=](Call &call, Stream &queue) { return copyOnDevice(call, queue, to, from, bytes); });
}

HONE_DRIVER_API cuMemcpy(DevicePointer to, DevicePointer from, size_t bytes) {
  return atOnce(bytes, [=](Call &call, Stream &queue) { return copyAny(call, queue, to, from, bytes); });
}

HONE_DRIVER_API cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count, void *stream) {
  return onStream(stream, count,
                  [=](Call &call, Stream &queue) { return fill<uint8_t>(call, queue, to, value, count); });
}

HONE_DRIVER_API cuMemsetD16Async(DevicePointer to, unsigned short value, size_t count, void *stream) {
  return onStream(stream, count,
                  [=](Call &call, Stream &queue) { return fill<uint16_t>(call, queue, to, value, count); });
}

HONE_DRIVER_API cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, void *stream) {
  return onStream(stream, count,
                  [=](Call &call, Stream &queue) { return fill<uint32_t>(call, queue, to, value, count); });
}

HONE_DRIVER_API cuMemsetD8_v2(DevicePointer to, unsigned char value, size_t count) {
  return atOnce(count, [=](Call &call, Stream &queue) { return fill<uint8_t>(call, queue, to, value, count); });
}

HONE_DRIVER_API cuMemsetD16_v2(DevicePointer to, unsigned short value, size_t count) {
  return atOnce(count, [=](Call &call, Stream &queue) { return fill<uint16_t>(call, queue, to, value, count); });
}

HONE_DRIVER_API cuMemsetD32_v2(DevicePointer to, unsigned value, size_t count) {
  return atOnce(count, [=](Call &call, Stream &queue) { return fill<uint32_t>(call, queue, to, value, count); });
}

namespace {

/// Memory of the device, or pinned memory of the host, which has the same address there.
template <class T> int writeValue(void *handle, DevicePointer to, T value) {
  return onStream(handle, 1, [=](Call &call, Stream &stream) -> int {
    Context *context = call.context;
    auto *host = reinterpret_cast<void *>(to);
    bool isPinned = call.driver.isPinned(host);
    if ((!isPinned && !context->memory.holds(to, sizeof value)) || to % sizeof value != 0)
      return kInvalidValue;
    auto write = [=] { std::memcpy(isPinned ? host : located(*context, to, sizeof value), &value, sizeof value); };
    return submit(call, stream, {Operation::Kind::Write, write, {}});
  });
}

} // namespace

HONE_DRIVER_API cuStreamWriteValue32_v2(void *stream, DevicePointer to, uint32_t value, unsigned flags) {
  return writeValue(stream, to, value);
}

HONE_DRIVER_API cuStreamWriteValue64_v2(void *stream, DevicePointer to, uint64_t value, unsigned flags) {
  return writeValue(stream, to, value);
}
