// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots of a session's state as memory of its GPU.

#include "cuda/session_state.h"

#include "cuda/kernels/fatbin_index.h"
#include "cuda/queue.h"

#include <algorithm>

namespace hone::rt::cuda {
namespace {

/// Ranges that no session writes to, and which of them each tensor is in.
struct RangeSnapshot final : StateSnapshot {
  struct Part {
    GrowingTensor tensor;
    size_t range;
  };

  std::vector<std::shared_ptr<PagedRange>> ranges;
  std::vector<Part> parts;
  int64_t common; // positions whose whole pages are shared
};

std::shared_ptr<PagedRange> rangeHolding(const StateBuffer &buffer) {
  return std::static_pointer_cast<PagedRange>(buffer.owner);
}

/// The ranges that tensors are in, each once.
std::vector<std::shared_ptr<PagedRange>> rangesOf(std::span<const HeldTensor> tensors) {
  std::vector<std::shared_ptr<PagedRange>> ranges;
  for (const HeldTensor &held : tensors)
    if (std::shared_ptr<PagedRange> range = rangeHolding(held.buffer); std::ranges::find(ranges, range) == ranges.end())
      ranges.push_back(std::move(range));
  return ranges;
}

StateBuffer bufferIn(const std::shared_ptr<PagedRange> &range, const GrowingTensor &tensor) {
  return {range->view(tensor), range};
}

} // namespace

SessionState::SessionState(Queue &queue, std::shared_ptr<Stream> stream) : queue(queue), moveTable(std::move(stream)) {}

absl::StatusOr<StateBuffer> SessionState::create(hone_dtype dtype, std::span<const int64_t> sizes) {
  auto owner = std::make_shared<DeviceBuffer>(queue.order());
  HONE_RETURN_IF_ERROR(owner->reserve(bytesOf(dtype, sizes), "the state of the session"));
  hone_tensor view = io::denseView(owner->data(), dtype, sizes);
  return StateBuffer{view, std::move(owner)};
}

absl::StatusOr<StateBuffer> SessionState::zeros(hone_dtype dtype, std::vector<int64_t> sizes) {
  HONE_ASSIGN_OR_RETURN(StateBuffer buffer, create(dtype, sizes));
  Context &context = queue.context();
  HONE_RETURN_IF_ERROR(queue.order()->submit(/*isWhole=*/false)); // what was collected may use the same memory
  if (uint64_t bytes = bytesOf(dtype, sizes))
    HONE_RETURN_IF_ERROR(context.check(context.driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(buffer.view.data),
                                                                        0, bytes, queue.order()->handle()),
                                       "clear the state of the session"));
  return buffer;
}

/// By kernels, whatever the shape: where a step appends changes from step to step, which a graph's kernels can learn.
absl::Status SessionState::copy(const hone_tensor &from, const hone_tensor &to) {
  return queue.copyElements(from, to, CopyMeans::Kernels);
}

/// What `tensors`, which extend() made, have of the sequences that move, and the moves by sequence.
SessionState::Moves SessionState::planMoves(std::span<const Positions> tensors, std::span<const PositionMove> moves) {
  Moves planned;
  for (size_t first = 0, end; first < moves.size(); first = end) {
    int64_t sequence = moves[first].sequence;
    for (end = first; end < moves.size() && moves[end].sequence == sequence; ++end)
      planned.pairs.push_back({moves[end].from, moves[end].to});
    for (const Positions &tensor : tensors) {
      hone_tensor position = positionOf(tensor, sequence, 0);
      auto elements = static_cast<hone_dtype>(position.dtype);
      uint64_t bytes = bytesOf(elements, {position.sizes, static_cast<size_t>(position.rank)});
      if (bytes > 0)
        planned.parts.push_back({static_cast<uint8_t *>(position.data),
                                 position.strides[tensor.axis] * io::dtypeBytes(elements), static_cast<int64_t>(bytes),
                                 static_cast<int64_t>(first), static_cast<int64_t>(end - first)});
    }
  }
  return planned;
}

absl::Status SessionState::move(std::span<const Positions> tensors, std::span<const PositionMove> moves) {
  Moves planned = planMoves(tensors, moves);
  if (planned.parts.empty())
    return absl::OkStatus();
  uint64_t partBytes = planned.parts.size() * sizeof planned.parts[0],
           pairBytes = planned.pairs.size() * sizeof planned.pairs[0];
  HONE_RETURN_IF_ERROR(moveTable.reserve(partBytes + pairBytes, "the positions that a session keeps"));
  auto *table = static_cast<uint8_t *>(moveTable.data());
  HONE_RETURN_IF_ERROR(queue.upload(table, planned.parts.data(), partBytes));
  HONE_RETURN_IF_ERROR(queue.upload(table + partBytes, planned.pairs.data(), pairBytes));
  hone::cuda::MovePositionsArguments args = {reinterpret_cast<const hone::cuda::PositionBytes *>(table),
                                             reinterpret_cast<const hone::cuda::PositionPair *>(table + partBytes)};
  void *arguments[] = {&args};
  return queue.launch({hone::cuda::kMovePositionsFatbin, "move_positions"},
                      {{static_cast<uint32_t>(planned.parts.size()), 1, 1}, {hone::cuda::kMoveThreads, 1, 1}, 0},
                      arguments);
}

absl::StatusOr<StateBuffer> SessionState::copyOf(const hone_tensor &tensor) {
  HONE_ASSIGN_OR_RETURN(StateBuffer buffer, create(static_cast<hone_dtype>(tensor.dtype),
                                                   {tensor.sizes, static_cast<size_t>(tensor.rank)}));
  HONE_RETURN_IF_ERROR(queue.copyElements(tensor, buffer.view, CopyMeans::Any));
  return buffer;
}

absl::StatusOr<StateBuffer> SessionState::upload(const hone_tensor &tensor) {
  std::span<const int64_t> sizes(tensor.sizes, static_cast<size_t>(tensor.rank));
  auto dtype = static_cast<hone_dtype>(tensor.dtype);
  StateBuffer buffer;
  HONE_RETURN_IF_ERROR(queue.betweenCalls([&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(buffer, create(dtype, sizes));
    return queue.upload(buffer.view.data, tensor.data, bytesOf(dtype, sizes));
  }));
  return buffer;
}

absl::StatusOr<StateBuffer> SessionState::download(const StateBuffer &buffer) {
  std::vector<int64_t> sizes(buffer.view.sizes, buffer.view.sizes + buffer.view.rank);
  HONE_ASSIGN_OR_RETURN(io::Array array, io::Array::create(static_cast<hone_dtype>(buffer.view.dtype), sizes));
  HONE_RETURN_IF_ERROR(queue.betweenCalls(
      [&] { return queue.fetch(array.data(), buffer.view.data, static_cast<uint64_t>(array.bytes())); }));
  return bufferOf(std::move(array));
}

void SessionState::plan(std::vector<GrowingTensor> tensors) {
  planned = std::move(tensors);
  shared.reset();
}

/// The range that the tensor is in: the one of all that is planned, or one of its own.
absl::StatusOr<std::shared_ptr<PagedRange>> SessionState::rangeOf(const GrowingTensor &tensor) {
  if (std::shared_ptr<PagedRange> range = shared.lock(); range && range->holds(tensor))
    return range;
  auto isPlanned = [&](const GrowingTensor &other) { return hasSameSizes(other, tensor); };
  if (std::ranges::none_of(planned, isPlanned))
    return PagedRange::create(queue.order()->shareContext(), std::span(&tensor, 1));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<PagedRange> range, PagedRange::create(queue.order()->shareContext(), planned));
  shared = range;
  return range;
}

absl::StatusOr<StateBuffer> SessionState::extend(const GrowingTensor &needed, int64_t, const StateBuffer &held,
                                                 int64_t) {
  std::shared_ptr<PagedRange> range = rangeHolding(held);
  if (!range) {
    HONE_ASSIGN_OR_RETURN(range, rangeOf(needed));
  }
  HONE_RETURN_IF_ERROR(range->extend(needed.sizes[needed.axis]));
  return bufferIn(range, needed);
}

absl::StatusOr<std::shared_ptr<PagedRange>> SessionState::fork(const PagedRange &range, size_t count,
                                                               absl::FunctionRef<bool(size_t page)> isShared) {
  return range.fork(count, isShared, [&](CUdeviceptr to, CUdeviceptr from, uint64_t bytes) {
    return queue.copy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
  });
}

absl::StatusOr<std::shared_ptr<const StateSnapshot>> SessionState::snapshot(std::span<HeldTensor> tensors,
                                                                            int64_t common, int64_t used) {
  std::vector<std::shared_ptr<PagedRange>> ranges = rangesOf(tensors);
  if (std::ranges::all_of(ranges, [&](const auto &range) { return range->wholePages(common) == 0; }))
    return nullptr;
  auto made = std::make_shared<RangeSnapshot>();
  made->common = common;
  for (const std::shared_ptr<PagedRange> &range : ranges) {
    size_t shared = range->wholePages(common);
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<PagedRange> copy,
                          fork(*range, range->pagesOf(used), [&](size_t page) { return page < shared; }));
    made->ranges.push_back(std::move(copy));
  }
  for (const HeldTensor &held : tensors) {
    auto range = std::ranges::find(ranges, rangeHolding(held.buffer));
    made->parts.push_back({held.tensor, static_cast<size_t>(range - ranges.begin())});
  }
  return made;
}

absl::StatusOr<std::vector<StateBuffer>> SessionState::open(const StateSnapshot &snapshot) {
  const auto &given = static_cast<const RangeSnapshot &>(snapshot);
  std::vector<std::shared_ptr<PagedRange>> ranges;
  for (const std::shared_ptr<PagedRange> &range : given.ranges) {
    size_t whole = range->wholePages(given.common);
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<PagedRange> own,
                          fork(*range, range->pageCount(), [&](size_t page) { return page < whole; }));
    ranges.push_back(std::move(own));
  }
  shared = ranges.front(); // where slots that are planned and were never appended to find it
  std::vector<StateBuffer> buffers;
  for (const RangeSnapshot::Part &part : given.parts)
    buffers.push_back(bufferIn(ranges[part.range], part.tensor));
  return buffers;
}

absl::Status SessionState::makeWritable(std::span<HeldTensor> tensors, int64_t first) {
  for (const std::shared_ptr<PagedRange> &range : rangesOf(tensors)) {
    auto stays = [&, whole = range->wholePages(first)](size_t page) {
      return page < whole || !range->sharesPage(page);
    };
    size_t page = 0;
    while (page < range->pageCount() && stays(page))
      ++page;
    if (page == range->pageCount())
      continue;
    std::shared_ptr<PagedRange> own;
    HONE_RETURN_IF_ERROR(queue.betweenCalls([&]() -> absl::Status {
      HONE_ASSIGN_OR_RETURN(own, fork(*range, range->pageCount(), stays));
      return absl::OkStatus();
    }));
    for (HeldTensor &held : tensors)
      if (held.buffer.owner == range)
        held.buffer = bufferIn(own, held.tensor);
  }
  return absl::OkStatus();
}

absl::Status SessionState::betweenCalls(absl::FunctionRef<absl::Status()> work) { return queue.betweenCalls(work); }

} // namespace hone::rt::cuda
