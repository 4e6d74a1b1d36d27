// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the state of a session on a GPU is.

#ifndef HONE_RUNTIME_CUDA_SESSION_STATE_H
#define HONE_RUNTIME_CUDA_SESSION_STATE_H

#include "cuda/kernels/move_positions.h"
#include "cuda/paged_range.h"
#include "cuda/stream.h"

namespace hone::rt::cuda {

class Queue;

/// Slots that grow are in pages: those whose sizes are known when a sequence begins share theirs, any other has its own. Slots that are
/// replaced are in memory of the session's stream.
class SessionState final : public StateMemory {
public:
  /// `stream` is the queue's.
  SessionState(Queue &queue, std::shared_ptr<Stream> stream);

  absl::StatusOr<StateBuffer> zeros(hone_dtype dtype, std::vector<int64_t> sizes) override;
  absl::Status copy(const hone_tensor &from, const hone_tensor &to) override;
  absl::Status move(std::span<const Positions> tensors, std::span<const PositionMove> moves) override;
  absl::StatusOr<StateBuffer> copyOf(const hone_tensor &tensor) override;
  absl::StatusOr<StateBuffer> upload(const hone_tensor &tensor) override;
  absl::StatusOr<StateBuffer> download(const StateBuffer &buffer) override;
  void plan(std::vector<GrowingTensor> tensors) override;
  absl::StatusOr<StateBuffer> extend(const GrowingTensor &needed, int64_t multiple, const StateBuffer &held,
                                     int64_t used) override;
  absl::StatusOr<std::shared_ptr<const StateSnapshot>> snapshot(std::span<HeldTensor> tensors, int64_t common,
                                                                int64_t used) override;
  absl::StatusOr<std::vector<StateBuffer>> open(const StateSnapshot &snapshot) override;
  absl::Status makeWritable(std::span<HeldTensor> tensors, int64_t first) override;
  absl::Status betweenCalls(absl::FunctionRef<absl::Status()> work) override;
  bool keepsRoom() const override { return false; }

private:
  struct Moves {
    std::vector<hone::cuda::PositionBytes> parts;
    std::vector<hone::cuda::PositionPair> pairs;
  };

  static Moves planMoves(std::span<const Positions> tensors, std::span<const PositionMove> moves);
  absl::StatusOr<StateBuffer> create(hone_dtype dtype, std::span<const int64_t> sizes);
  absl::StatusOr<std::shared_ptr<PagedRange>> rangeOf(const GrowingTensor &tensor);
  absl::StatusOr<std::shared_ptr<PagedRange>> fork(const PagedRange &range, size_t count,
                                                   absl::FunctionRef<bool(size_t page)> isShared);

  Queue &queue;
  std::vector<GrowingTensor> planned;
  std::weak_ptr<PagedRange> shared; // of what is planned
  DeviceBuffer moveTable;           // of the last move()
};

} // namespace hone::rt::cuda

#endif // HONE_RUNTIME_CUDA_SESSION_STATE_H
