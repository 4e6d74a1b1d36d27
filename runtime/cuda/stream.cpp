// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams and the memory in their order.

#include "cuda/stream.h"

#include <algorithm>
#include <utility>

namespace hone::rt::cuda {

absl::StatusOr<std::shared_ptr<Stream>> Stream::create(std::shared_ptr<Context> context) {
  std::shared_ptr<Stream> stream(new Stream(std::move(context)));
  Context::Scope scope(stream->context());
  HONE_RETURN_IF_ERROR(stream->context().check(stream->driver().cuStreamCreate(&stream->stream, CU_STREAM_NON_BLOCKING),
                                               "create a stream of the GPU"));
  return stream;
}

Stream::~Stream() {
  if (!stream || owner->isLost())
    return;
  Context::Scope scope(*owner);
  driver().cuStreamDestroy(stream);
}

absl::Status Stream::wait() { return owner->check(driver().cuStreamSynchronize(stream), "run kernels of the GPU"); }

absl::StatusOr<CUdeviceptr> Stream::allocate(uint64_t bytes, std::string_view what) {
  CUdeviceptr memory = 0;
  uint64_t wanted = std::max(bytes, kDeviceAlignment);
  CUresult result = driver().cuMemAllocFromPoolAsync(&memory, wanted, owner->pool(), stream);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) { // what the pool keeps in other sizes may be enough
    HONE_RETURN_IF_ERROR(wait());
    driver().cuMemPoolTrimTo(owner->pool(), 0);
    result = driver().cuMemAllocFromPoolAsync(&memory, wanted, owner->pool(), stream);
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return owner->outOfMemory(bytes, what);
  HONE_RETURN_IF_ERROR(owner->check(result, "allocate GPU memory"));
  return memory;
}

void Stream::free(CUdeviceptr memory) {
  if (!memory || owner->isLost())
    return;
  Context::Scope scope(*owner);
  driver().cuMemFreeAsync(memory, stream);
}

void DeviceBuffer::clear() {
  if (memory)
    stream->free(memory);
  memory = 0;
  capacity = 0;
}

absl::Status DeviceBuffer::reserve(uint64_t bytes, std::string_view what) {
  if (memory && bytes <= capacity)
    return absl::OkStatus();
  bool grows = memory != 0;
  clear(); // first, as both at once may be too much
  uint64_t larger = grows && bytes <= UINT64_MAX / 2 ? bytes + bytes / 2 : bytes;
  absl::StatusOr<CUdeviceptr> fresh = stream->allocate(larger, what);
  if (!fresh.ok() && larger > bytes && absl::IsResourceExhausted(fresh.status())) {
    larger = bytes;
    fresh = stream->allocate(larger, what);
  }
  HONE_RETURN_IF_ERROR(fresh.status());
  memory = *fresh;
  capacity = larger;
  return absl::OkStatus();
}

} // namespace hone::rt::cuda
