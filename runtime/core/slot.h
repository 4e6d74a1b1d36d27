// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One tensor of a session's state.

#ifndef HONE_RUNTIME_CORE_SLOT_H
#define HONE_RUNTIME_CORE_SLOT_H

#include "core/cache_writer.h"
#include "core/inputs.h"
#include "core/lengths.h"
#include "core/state_memory.h"

#include <algorithm>
#include <limits>

namespace hone::rt {

/// The sizes of a slot without positions where those of other axes are known; else an error that names the first that is not.
absl::StatusOr<std::vector<int64_t>> firstSizes(const io::TensorInfo &info, const Symbols &symbols);

/// One slot: a tensor that grows along an axis, kept in a buffer with room to spare, or one that is replaced as a whole. A slot in
/// blocks (see the manifest) has room for whole blocks, and zeros after its last position up to the end of a block; its views have
/// the sizes of what they hold, and are read by kernels that know the layout. Slots in blocks are in the host's memory.
class Slot {
public:
  /// `number` is its place among the slots of the session. A slot that is replaced as a whole may have a `beginning`, which nobody changes.
  Slot(const io::TensorInfo &info, size_t number, StateMemory &memory, StateBuffer beginning = {})
      : info(&info), number(number), memory(&memory), beginning(std::move(beginning)) {}

  /// Of a slot that is replaced as a whole and has fixed sizes.
  std::optional<int64_t> fixedBytes() const;
  /// Where it is kept from then on while nothing else refers to what is there, as checkpoints do. Of a slot that is replaced as a whole.
  void setPlace(std::shared_ptr<void> own) { place = std::move(own); }

  /// Everything after `lengths` committed positions and this call's appends, followed by `fresh`: of sequences that are shorter than the
  /// longest, what is after it is undefined.
  absl::StatusOr<hone_tensor> append(const hone_tensor &fresh, const Lengths &lengths);

  /// The room for positions of these sizes after them, which the caller writes: of a sequence that is shorter, by its lag before the
  /// room. Of a slot that grows and is kept in rows.
  absl::StatusOr<hone_tensor> extend(std::span<const int64_t> fresh, const Lengths &lengths);

  /// `length` positions and this call's appends. Before the first append, sizes come from `symbols`; a slot that is
  /// replaced as a whole begins as its beginning, or as zeros.
  absl::StatusOr<hone_tensor> view(int64_t length, const Symbols &symbols);

  /// Of a slot that is replaced as a whole: the same in memory that nothing else refers to, which the caller writes. What is written is
  /// what the slot holds; after a call that fails it is lost, and reading it an error.
  absl::StatusOr<hone_tensor> update(const Symbols &symbols);

  /// Of a slot that grows, whether it is in blocks, whose moves moveInBlocks() does; of another, StateMemory::move of its positions.
  bool isInBlocks() const { return writer.has_value(); }
  void moveInBlocks(std::span<const PositionMove> moves);
  Positions positions() const { return {buffer.view, static_cast<size_t>(*info->appendAxis)}; }

  /// Of a slot that grows and has one sequence, between calls: of the `held` positions that it holds, those of these numbers stay, ascending,
  /// and move together. `kept` has a list for each head, all of one length, or one for all heads.
  absl::Status evict(std::span<const std::vector<int64_t>> kept, int64_t held);
  /// How many positions of the text it does not hold any more.
  int64_t evicted() const { return gone; }

  /// Of a slot that grows, whose sizes are known; else 0.
  int64_t sequences() const;

  /// Of a slot that is replaced as a whole: what it holds, which no call changes; without an owner where it is at its beginning.
  const StateBuffer &content() const { return buffer; }
  /// Fails where it is lost.
  absl::Status checkHeld() const;
  /// The same in the host's memory. Between two calls.
  absl::StatusOr<StateBuffer> contentOnHost() const;
  void setContent(StateBuffer content);
  /// A copy of a dense tensor of the host for it to hold. Between two calls.
  absl::StatusOr<StateBuffer> upload(const hone_tensor &content);

  /// Of a slot that grows, what it holds, or none before the first append. `setHeld` replaces its memory by one that holds the same.
  std::optional<HeldTensor> held() const;
  void setHeld(StateBuffer held);

  /// Of a dense block of positions of one head that lies at `block`, those from `first` on become zeros. Of a slot in blocks.
  void clearBlock(char *block, int64_t first) const;

  /// Becomes a slot that grows, whose memory holds `used` positions of a slot of the same description.
  void adopt(const Slot &other, StateBuffer held, int64_t used);

  /// Whether a tensor can be what the slot holds after `used` positions, with sizes from these symbols; returns what room for positions is a
  /// multiple of.
  absl::StatusOr<int64_t> checkContent(const Symbols &symbols, const hone_tensor &content, int64_t used) const;

  /// Holds what `checkContent` has accepted. `content` without an owner is the beginning of a slot that is replaced as a whole.
  absl::Status beginWith(const Symbols &symbols, StateBuffer content, int64_t used);

  /// What slots of the same description hold, the sequences of one after those of another. Of a slot that was never appended to; of one
  /// slot alone where it is replaced as a whole.
  absl::Status copyFrom(std::span<const Slot *const> others, std::span<const Lengths *const> lengths);

  /// Makes room for that many positions at the next append, or for as many as it is bounded to.
  void reserve(int64_t positions) { reserved = std::max(reserved, std::min(positions, bound)); }
  /// From now on it is told to make room for more in vain.
  void boundReserved(int64_t positions) { bound = positions; }

  bool grows() const { return info->appendAxis.has_value(); }
  int64_t appended() const { return pending; }
  const io::TensorInfo &description() const { return *info; }
  void endCall(bool keep);
  void forget();

private:
  absl::Status adoptSizes(hone_dtype dtype, std::span<const int64_t> given);
  void setSizes(std::vector<int64_t> first);
  GrowingTensor roomFor(int64_t positions) const;
  int64_t blockPositions() const { return writer ? wholeBlocks(1) : 1; }
  absl::Status makeRoom(int64_t positions, int64_t used);
  void hold(std::vector<int64_t> first, StateBuffer held, int64_t used);
  void holdCopied(int64_t used);
  absl::Status replace(const hone_tensor &fresh);
  std::optional<StateBuffer> takePlace(std::span<const int64_t> shape);
  absl::StatusOr<StateBuffer> makeZeros();
  absl::StatusOr<StateBuffer> copyOwn(const hone_tensor &content,
                                      absl::FunctionRef<absl::StatusOr<StateBuffer>()> copy);
  hone_tensor viewOf(int64_t positions) const;
  absl::Status write(const hone_tensor &fresh, int64_t first);
  absl::Status writeEach(const hone_tensor &fresh, const Lengths &lengths);
  absl::Status checkAlike(const Slot &other) const;
  absl::Status copyPositions(const Slot &other, const Lengths &lengths, int64_t firstSequence);

  const io::TensorInfo *info;
  size_t number;
  StateMemory *memory;
  StateBuffer beginning;             // without an owner: zeros
  std::shared_ptr<void> place;       // or null: anywhere
  bool isPlaceClean = true;          // holds zeros
  bool isBegun = false;              // `sizes` are known, as they are from the first append or view on
  std::vector<int64_t> sizes;        // the append axis holds the capacity
  std::vector<int64_t> keptSizes;    // of the buffer while the slot is not begun
  std::optional<CacheWriter> writer; // of a slot in blocks whose sizes are known
  StateBuffer buffer;
  std::vector<StateBuffer> retired; // buffers that views of this call may still read
  std::optional<StateBuffer> replacement;
  bool isUpdated = false, isLost = false; // this call writes what the slot holds; one that did so has failed
  int64_t pending = 0, reserved = 0, bound = std::numeric_limits<int64_t>::max();
  int64_t gone = 0;                 // positions of the text that were evicted
  int64_t written = 0;              // positions of the buffer that may hold something other than zeros
  std::vector<int64_t> writtenEach; // the same by sequence, or empty
  int64_t lastEnd = 0;              // of what was written last: from there on its block of positions holds zeros
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_SLOT_H
