// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots of a session's state as memory of its GPU.

#include "cuda/session_state.h"

#include "cuda/queue.h"

#include <algorithm>

namespace hone::rt::cuda {
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

absl::Status SessionState::move(std::span<const Positions> tensors, std::span<const PositionMove> moves) {
  for (const Positions &tensor : tensors)
    for (const PositionMove &move : moves)
      HONE_RETURN_IF_ERROR(
          copy(positionOf(tensor, move.sequence, move.from), positionOf(tensor, move.sequence, move.to)));
  return absl::OkStatus();
}

absl::StatusOr<StateBuffer> SessionState::copyOf(const hone_tensor &tensor) {
  HONE_ASSIGN_OR_RETURN(StateBuffer buffer, create(static_cast<hone_dtype>(tensor.dtype),
                                                   {tensor.sizes, static_cast<size_t>(tensor.rank)}));
  HONE_RETURN_IF_ERROR(queue.copyElements(tensor, buffer.view, CopyMeans::Any));
  return buffer;
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
  auto range = std::static_pointer_cast<PagedRange>(held.owner);
  if (!range) {
    HONE_ASSIGN_OR_RETURN(range, rangeOf(needed));
  }
  HONE_RETURN_IF_ERROR(range->extend(needed.sizes[needed.axis]));
  hone_tensor view = range->view(needed);
  return StateBuffer{view, std::move(range)};
}

absl::Status SessionState::betweenCalls(absl::FunctionRef<absl::Status()> work) { return queue.betweenCalls(work); }

} // namespace hone::rt::cuda
