// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a session remembers between calls. A call appends; its appends count once commit() has seen that all slots grew
// alike, and are gone after rollback(). Between calls positions may be dropped from the end, those of the last call may be
// gathered, the state may return to a checkpoint, and another may begin as its copy.

#ifndef HONE_RUNTIME_CORE_STATE_H
#define HONE_RUNTIME_CORE_STATE_H

#include "core/cache_writer.h"
#include "core/inputs.h"
#include "core/state_memory.h"

#include <algorithm>
#include <utility>

namespace hone::rt {

/// Most positions that a session can be told to expect: more than any memory holds, and sums of two are numbers.
constexpr int64_t kMostPositions = int64_t{1} << 40;

/// One slot: a tensor that grows along an axis, kept in a buffer with room to spare, or one that is replaced as a whole. A slot in
/// blocks (see the manifest) has room for whole blocks, and zeros after its last position up to the end of a block; its views have
/// the sizes of what they hold, and are read by kernels that know the layout. Slots in blocks are in the host's memory.
class Slot {
public:
  /// `number` is its place among the slots of the session.
  Slot(const io::TensorInfo &info, size_t number, StateMemory &memory) : info(&info), number(number), memory(&memory) {}

  /// Everything after `length` committed positions and this call's appends, followed by `fresh`.
  absl::StatusOr<hone_tensor> append(const hone_tensor &fresh, int64_t length);

  /// The room for positions of these sizes after them, which the caller writes. Of a slot that grows and is kept in rows.
  absl::StatusOr<hone_tensor> extend(std::span<const int64_t> fresh, int64_t length);

  /// `length` positions and this call's appends. Before the first append, sizes come from `symbols`; a slot that is
  /// replaced as a whole begins as zeros.
  absl::StatusOr<hone_tensor> view(int64_t length, const Symbols &symbols);

  /// Position first + kept[i] becomes position first + i, for each i; `kept` ascends. Of a slot that grows.
  absl::Status gather(int64_t first, std::span<const int64_t> kept);

  /// Of a slot that is replaced as a whole: what it holds, which no call changes; without an owner where it is at its beginning.
  const StateBuffer &content() const { return buffer; }
  void setContent(StateBuffer content) { buffer = std::move(content); }

  /// The first `length` positions of `other`, a slot of the same description that was never appended to, or what it was replaced by.
  absl::Status copyFrom(const Slot &other, int64_t length);

  /// Makes room for that many positions at the next append.
  void reserve(int64_t positions) { reserved = std::max(reserved, positions); }

  bool grows() const { return info->appendAxis.has_value(); }
  int64_t appended() const { return pending; }
  const io::TensorInfo &description() const { return *info; }
  void endCall(bool keep);
  void forget();

private:
  absl::Status adoptSizes(hone_dtype dtype, std::span<const int64_t> given);
  void setSizes(std::vector<int64_t> first);
  absl::Status makeRoom(int64_t positions, int64_t used);
  absl::Status replace(const hone_tensor &fresh);
  hone_tensor viewOf(int64_t positions) const;
  absl::Status write(const hone_tensor &fresh, int64_t first);

  const io::TensorInfo *info;
  size_t number;
  StateMemory *memory;
  std::vector<int64_t> sizes;        // empty before the first append; the append axis holds the capacity
  std::vector<int64_t> keptSizes;    // of the buffer while `sizes` is empty
  std::optional<CacheWriter> writer; // of a slot in blocks whose sizes are known
  StateBuffer buffer;
  std::vector<StateBuffer> retired; // buffers that views of this call may still read
  std::optional<StateBuffer> replacement;
  int64_t pending = 0, reserved = 0;
  int64_t written = 0; // positions of the buffer that may hold something other than zeros
  int64_t lastEnd = 0; // of what was written last: from there on its block of positions holds zeros
};

/// A moment between two calls that a state can return to. It shares what slots held that are replaced as a whole; positions of the others
/// stay where they are, so that it is lost once they are dropped.
class Checkpoint {
  friend class State;
  uint64_t state = 0; // whose it is
  int64_t positions = 0;
  bool hasBegun = false, isLost = false;
  std::vector<StateBuffer> contents; // by slot
};

/// All slots of a session, and how far they are filled.
class State {
public:
  /// `memory` outlives the state.
  explicit State(std::span<const io::TensorInfo> slots, StateMemory &memory = hostStateMemory());

  int64_t length() const { return positions; }
  std::span<Slot> slots() { return all; }
  const Symbols &symbols() const { return fixed; }

  /// Padding at the left of each sequence, 0 to kMostPositions; none for sequences beyond the list.
  absl::Status setPadding(std::vector<int64_t> perSequence);
  /// Fails where there is padding for more sequences than a call with these symbols has.
  absl::Status checkPadding(const Symbols &callSymbols) const;
  int64_t padding(int64_t sequence) const;

  /// For how many of the last positions of a call logits are computed; 0 for all. Returns what it was.
  int64_t setLogitsToKeep(int64_t count) { return std::exchange(logitRows, count); }
  /// The same for a call of `fresh` positions.
  int64_t logitsToKeep(int64_t fresh) const { return logitRows > 0 ? std::min(logitRows, fresh) : fresh; }

  /// Before a call with these symbols.
  void begin(const Symbols &callSymbols);
  /// Fixes the sizes of the symbols that occur in slots, from a call that succeeded; all later calls must agree.
  absl::Status commit(const Symbols &callSymbols);
  void rollback();

  /// A slot that cannot go back to fewer positions, or null.
  const Slot *findWithoutHistory() const;
  /// Drops all but the first `length` positions.
  absl::Status truncate(int64_t length);
  /// Of the positions that the last call appended, keeps those of these numbers, counted from 0 and ascending, one after the other; drops
  /// the others. The state is then, bit for bit, as if the call had appended no more. Fails where some are dropped and a slot
  /// has no history.
  absl::Status keep(std::span<const int64_t> kept);
  /// Returns to a checkpoint of this state, as often as one likes. Fails where its positions were dropped since.
  std::shared_ptr<const Checkpoint> checkpoint();
  absl::Status restore(const Checkpoint &point);
  /// Becomes a copy of `other`, the state of another session of the same module that holds as many slots; fails with this one as it was
  /// at its beginning.
  absl::Status copyFrom(const State &other);
  void reset();
  /// Slots that grow make room for so many positions at once; never for fewer than an earlier call said.
  void reserve(int64_t positions);

private:
  void fixSymbols(const io::TensorInfo &slot, const Symbols &callSymbols);
  absl::Status checkKept(std::span<const int64_t> kept) const;
  void loseCheckpoints(int64_t beyond);
  void forgetSlots();

  uint64_t identity;
  StateMemory *memory;
  std::vector<Slot> all;
  Symbols fixed;
  std::vector<int64_t> paddings;
  std::vector<std::weak_ptr<Checkpoint>> checkpoints;
  int64_t positions = 0, logitRows = 0;
  int64_t lastBegin = 0; // how many positions there were before the last call
  bool hasBegun = false; // by a call that was committed
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_STATE_H
