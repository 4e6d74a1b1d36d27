// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the slots of a session's state are kept: the host's memory, or a device's.

#ifndef HONE_RUNTIME_CORE_STATE_MEMORY_H
#define HONE_RUNTIME_CORE_STATE_MEMORY_H

#include "core/page_prefetcher.h"
#include "hone/io/array.h"

#include "absl/functional/function_ref.h"

#include <memory>

namespace hone::rt {

/// A tensor and what keeps its memory alive. The default has neither.
struct StateBuffer {
  hone_tensor view = {};
  std::shared_ptr<void> owner;
  bool isMapped = false; // from a file, which is mapped and not written
};

/// A tensor that grows along one of its axes, one of several that grow alike.
struct GrowingTensor {
  size_t slot; // its number among those of the session
  hone_dtype dtype;
  std::vector<int64_t> sizes; // along `axis`, how many positions there shall be room for at least
  size_t axis;
};

/// A position of a sequence that becomes a copy of a later one.
struct PositionMove {
  int64_t sequence, from, to;
};

/// Positions of one tensor along `axis`, of sequences along the first where that is another.
struct Positions {
  hone_tensor view;
  size_t axis;
};

/// What a session holds of a tensor that grows. `tensor` says how many positions there shall be room for at least.
struct HeldTensor {
  GrowingTensor tensor;
  int64_t multiple; // of positions, which room is for
  StateBuffer buffer;
};

/// What the tensors of a session held between two calls, in pages that sessions share until they write to them (copy-on-write).
/// It does not change, and any thread may use it.
class StateSnapshot {
public:
  virtual ~StateSnapshot() = default;
};

/// Makes and copies tensors of one kind of memory. Used by one session.
class StateMemory {
public:
  virtual ~StateMemory() = default;

  /// Elements whose bits are 0, dense. Fails where there is not so much memory.
  virtual absl::StatusOr<StateBuffer> zeros(hone_dtype dtype, std::vector<int64_t> sizes) = 0;

  /// A place for each of so many bytes, of zeros, in which a tensor stays as long as its session: side by side, so that huge pages serve
  /// small tensors, too. Nothing where that would be no gain, or there is not so much memory.
  virtual std::vector<std::shared_ptr<void>> makePlaces(std::span<const uint64_t>) { return {}; }

  /// Copies element by element between two views of one dtype and shape, which may have any strides.
  virtual absl::Status copy(const hone_tensor &from, const hone_tensor &to) = 0;

  /// The moves of each tensor in their order.
  virtual absl::Status move(std::span<const Positions> tensors, std::span<const PositionMove> moves) = 0;

  /// A dense copy.
  virtual absl::StatusOr<StateBuffer> copyOf(const hone_tensor &tensor) = 0;

  /// A copy of a dense tensor of the host. Between two calls.
  virtual absl::StatusOr<StateBuffer> upload(const hone_tensor &tensor) = 0;

  /// What a dense tensor holds in the host's memory: itself where it lies there. Between two calls.
  virtual absl::StatusOr<StateBuffer> download(const StateBuffer &buffer) = 0;

  /// Says which tensors will grow together before the first of them does, whose sizes are known.
  virtual void plan(std::vector<GrowingTensor> tensors) = 0;

  /// Room for `multiple` of positions, as many as `needed` says or more, which the view's size along the axis tells; its strides may
  /// be any. Positions before `used` hold what `held` has there, which stays as it is until its owner goes; `held` is empty or what
  /// this returned. Fails where there is not so much memory.
  virtual absl::StatusOr<StateBuffer> extend(const GrowingTensor &needed, int64_t multiple, const StateBuffer &held,
                                             int64_t used) = 0;

  /// The positions before `used` of each tensor. From then on the session writes none before `common`, which is at most `used`, without
  /// makeWritable(). Its tensors may come back in other memory. Null where copies serve as well or there are no such pages.
  virtual absl::StatusOr<std::shared_ptr<const StateSnapshot>> snapshot(std::span<HeldTensor> tensors, int64_t common,
                                                                        int64_t used) = 0;

  /// Tensors in the order of snapshot() that hold the same positions, and have room as it said. Fails where there is not so much memory.
  virtual absl::StatusOr<std::vector<StateBuffer>> open(const StateSnapshot &snapshot) = 0;

  /// Copies the pages that others may share and that have positions from `first` on. The tensors may come back in other memory. Fails
  /// where there is not so much, and has changed nothing then.
  virtual absl::Status makeWritable(std::span<HeldTensor> tensors, int64_t first) = 0;

  /// What reads ahead for the calls of one session, or null where all is in memory.
  virtual std::unique_ptr<PagePrefetcher> makePrefetcher() { return nullptr; }

  /// Runs `work`, copies between calls, and waits for what it enqueued.
  virtual absl::Status betweenCalls(absl::FunctionRef<absl::Status()> work) = 0;

  /// Whether a session keeps the room of a sequence for its next; others would have it otherwise.
  virtual bool keepsRoom() const = 0;
};

/// The host's memory. Room that extend() makes holds zeros, twice as many positions as before.
StateMemory &hostStateMemory();

/// The same, but for room that extend() makes: that is mapped from files without names in `folder`, so that the system keeps in memory what was
/// used last and leaves the rest on the disk (KV cache offload). Snapshots are copies. Fails where no file can be made there.
absl::StatusOr<std::shared_ptr<StateMemory>> offloadedStateMemory(const std::string &folder);

/// An array that lives as long as the buffer.
inline StateBuffer bufferOf(io::Array array) {
  auto owner = std::make_shared<io::Array>(std::move(array));
  hone_tensor view = owner->view();
  return {view, std::move(owner)};
}

/// The part of `tensor` that begins at `first` of `axis` and has `count` positions.
inline hone_tensor sliceOf(hone_tensor tensor, size_t axis, int64_t first, int64_t count) {
  int64_t bytes = io::dtypeBytes(static_cast<hone_dtype>(tensor.dtype));
  tensor.data = static_cast<char *>(tensor.data) + first * tensor.strides[axis] * bytes;
  tensor.sizes[axis] = count;
  return tensor;
}

/// The runs of a tensor's positions along an axis that lie together: how many there are, and the bytes of one position in them.
struct Runs {
  int64_t count = 1, positionBytes;

  Runs(hone_dtype dtype, std::span<const int64_t> sizes, size_t axis) : positionBytes(io::dtypeBytes(dtype)) {
    for (size_t i = 0; i < sizes.size(); ++i)
      if (i != axis)
        (i < axis ? count : positionBytes) *= sizes[i];
  }
};

/// The least multiple of `multiple`, of positions or bytes, that is not less than `value`.
inline int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// One position of a sequence.
inline hone_tensor positionOf(const Positions &tensor, int64_t sequence, int64_t position) {
  hone_tensor part = tensor.axis == 0 ? tensor.view : sliceOf(tensor.view, 0, sequence, 1);
  return sliceOf(part, tensor.axis, position, 1);
}

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_STATE_MEMORY_H
