// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams and the memory in their order.

#include "cuda/stream.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hone::rt::cuda {

uint64_t bytesOf(hone_dtype dtype, std::span<const int64_t> sizes) {
  return static_cast<uint64_t>(io::tensorBytes(dtype, sizes).value_or(std::numeric_limits<int64_t>::max()));
}

absl::StatusOr<std::shared_ptr<Stream>> Stream::create(std::shared_ptr<Context> context, GpuRanks *ranks) {
  std::shared_ptr<Stream> stream(new Stream(std::move(context), ranks));
  Context::Scope scope(stream->context());
  HONE_RETURN_IF_ERROR(stream->context().check(stream->driver().cuStreamCreate(&stream->stream, CU_STREAM_NON_BLOCKING),
                                               "create a stream of the GPU"));
  stream->graph.emplace(stream->context(), stream->handle(), ranks);
  return stream;
}

Stream::~Stream() {
  graph.reset();
  if (!stream || owner->isLost())
    return;
  Context::Scope scope(*owner);
  for (auto [bytes, memory] : released)
    giveBack(memory);
  if (products && *products)
    (*products)->release();
  driver().cuStreamDestroy(stream);
}

/// A kernel of several ranks waits for all of them, and for one that is gone forever: so NCCL is asked meanwhile.
template <typename Query, typename Wait> absl::Status Stream::waitBy(Query query, Wait wait, std::string_view what) {
  if (!others)
    return owner->check(wait(), what);
  CUresult result = query();
  for (; result == CUDA_ERROR_NOT_READY; result = query())
    HONE_RETURN_IF_ERROR(others->check());
  HONE_RETURN_IF_ERROR(owner->check(result, what));
  return others->check();
}

absl::Status Stream::wait() {
  HONE_RETURN_IF_ERROR(submit(/*isWhole=*/false));
  return waitBy([this] { return driver().cuStreamQuery(stream); },
                [this] { return driver().cuStreamSynchronize(stream); }, "run kernels of the GPU");
}

absl::Status Stream::wait(CUevent event, std::string_view what) {
  return waitBy([&] { return driver().cuEventQuery(event); }, [&] { return driver().cuEventSynchronize(event); }, what);
}

absl::Status Stream::submit(bool isWhole) {
  if (collected.empty())
    return absl::OkStatus();
  return graph->run(std::exchange(collected, {}), isWhole);
}

void Stream::stop() {
  collected.clear();
  isCollecting = false;
  for (auto piece = released.begin(); piece != released.end();) {
    if (taken.contains(piece->second)) {
      ++piece;
      continue;
    }
    giveBack(piece->second);
    piece = released.erase(piece);
  }
  taken.clear();
}

absl::Status Stream::launch(const Kernel &kernel, const hone::cuda::LaunchShape &shape, void **arguments) {
  if (!isCollecting)
    return owner->launch(kernel, shape, stream, arguments);
  HONE_ASSIGN_OR_RETURN(Work work, graph->describe(kernel, shape, arguments));
  collected.push_back(std::move(work));
  return absl::OkStatus();
}

absl::Status Stream::move(Work::Kind kind, uint64_t to, uint64_t from, uint64_t bytes) {
  std::vector<Work> work(1);
  work[0].kind = kind;
  work[0].to = to;
  work[0].from = from;
  work[0].bytes = bytes;
  if (!isCollecting)
    return graph->run(std::move(work), /*isWhole=*/false);
  collected.push_back(std::move(work[0]));
  return absl::OkStatus();
}

absl::StatusOr<bool> Stream::multiply(const hone::cuda::MatrixProduct &product) {
  if (!products)
    products = Products::create();
  std::shared_ptr<ProductPlan> plan = *products ? (*products)->plan(product) : nullptr;
  if (!plan)
    return false;
  std::vector<Work> work(1);
  work[0].kind = Work::Kind::Product;
  work[0].product = {products->get(), plan, product, 0};
  if (plan->workspaceBytes > 0) {
    HONE_ASSIGN_OR_RETURN(work[0].product.workspace, allocate(plan->workspaceBytes, "the workspace of a product"));
  }
  uint64_t workspace = work[0].product.workspace;
  absl::Status status;
  if (isCollecting)
    collected.push_back(std::move(work[0]));
  else
    status = graph->run(std::move(work), /*isWhole=*/false);
  free(workspace);
  HONE_RETURN_IF_ERROR(status);
  return true;
}

absl::StatusOr<CUdeviceptr> Stream::allocate(uint64_t bytes, std::string_view what) {
  CUdeviceptr memory = 0;
  uint64_t wanted = std::max(bytes, kDeviceAlignment);
  if (auto fitting = released.lower_bound({wanted, 0}); fitting != released.end() && fitting->first / 2 <= wanted) {
    memory = fitting->second;
    released.erase(fitting);
  } else {
    CUresult result = driver().cuMemAllocFromPoolAsync(&memory, wanted, owner->pool(), stream);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) { // what is kept in other sizes may be enough
      HONE_RETURN_IF_ERROR(wait());
      for (auto [size, piece] : std::exchange(released, {}))
        giveBack(piece);
      driver().cuMemPoolTrimTo(owner->pool(), 0);
      owner->pages().trim();
      result = driver().cuMemAllocFromPoolAsync(&memory, wanted, owner->pool(), stream);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
      return owner->outOfMemory(bytes, what);
    HONE_RETURN_IF_ERROR(owner->check(result, "allocate GPU memory"));
    sizes[memory] = wanted;
  }
  if (isCollecting)
    taken.insert(memory);
  return memory;
}

void Stream::free(CUdeviceptr memory) {
  if (!memory || owner->isLost())
    return;
  if (isCollecting) // what was collected may use it
    released.emplace(sizes[memory], memory);
  else
    giveBack(memory);
}

void Stream::giveBack(CUdeviceptr memory) {
  if (owner->isLost())
    return;
  Context::Scope scope(*owner);
  driver().cuMemFreeAsync(memory, stream);
  sizes.erase(memory);
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
