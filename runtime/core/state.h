// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a session remembers between calls. A call appends; its appends count once commit() has seen that all slots grew
// alike, and are gone after rollback(). Between calls positions may be dropped from the end, those of the last call may be
// gathered, of each sequence others, the state may return to a checkpoint, and another may begin as its copy, or as that of several.

#ifndef HONE_RUNTIME_CORE_STATE_H
#define HONE_RUNTIME_CORE_STATE_H

#include "core/slot.h"

#include <algorithm>
#include <utility>

namespace hone::rt {

/// Most positions that a session can be told to expect: more than any memory holds, and sums of two are numbers.
constexpr int64_t kMostPositions = int64_t{1} << 40;

/// A moment between two calls that a state can return to. It shares what slots held that are replaced as a whole; positions of the others
/// stay where they are, so that it is lost once they are dropped.
class Checkpoint {
  friend class State;
  uint64_t state = 0; // whose it is
  Lengths positions;
  bool hasBegun = false, isLost = false;
  std::vector<StateBuffer> contents; // by slot
};

/// All slots of a session, and how far they are filled.
class State {
public:
  /// `memory` outlives the state. `beginnings` are those of the slots, or nothing: no slot has one.
  explicit State(std::span<const io::TensorInfo> slots, StateMemory &memory = hostStateMemory(),
                 std::vector<StateBuffer> beginnings = {});

  const Lengths &lengths() const { return positions; }
  /// Of the longest sequence.
  int64_t length() const { return positions.longest(); }
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
  /// What reads ahead for the kernels of a call, or null.
  PagePrefetcher *prefetcher() const { return prefetching.get(); }
  /// Fixes the sizes of the symbols that occur in slots, from a call that succeeded; all later calls must agree.
  absl::Status commit(const Symbols &callSymbols);
  void rollback();

  /// A slot that cannot go back to fewer positions, or null.
  const Slot *findWithoutHistory() const;
  /// Drops all but the first `length` positions.
  absl::Status truncate(int64_t length);
  /// The same by sequence, for each of the batch.
  absl::Status truncateEach(std::vector<int64_t> lengths);
  /// Of the positions that the last call appended, keeps those of these numbers, counted from 0 and ascending, one after the other; drops
  /// the others. The state is then, bit for bit, as if the call had appended no more. Fails where some are dropped and a slot
  /// has no history.
  absl::Status keep(std::span<const int64_t> kept);
  /// The same by sequence, for each of the batch. A sequence is then, bit for bit, as if it had been alone.
  absl::Status keepEach(std::span<const std::vector<int64_t>> kept);
  /// How many positions a slot that grows holds: the length but for what was evicted from it.
  int64_t heldBy(size_t slot) const { return length() - all[slot].evicted(); }
  /// Of a state of one sequence: of the positions that a slot holds, those of these numbers stay (Slot::evict). Lengths are counted on as
  /// if all were there; checkpoints are lost, and the state cannot go back to fewer positions than it has now.
  absl::Status evict(size_t slot, std::span<const std::vector<int64_t>> kept);
  /// The length when positions were evicted last, or 0.
  int64_t evictedAt() const { return lastEviction; }
  /// Returns to a checkpoint of this state, as often as one likes. Fails where its positions were dropped since.
  std::shared_ptr<const Checkpoint> checkpoint();
  absl::Status restore(const Checkpoint &point);
  /// Becomes a copy of another, a state of another session of the same module. Both share what they hold until either writes there; what
  /// the other does between two forks alone costs a copy. Fails with this one as it was at its beginning.
  absl::Status forkFrom(State &other);
  /// Becomes a copy of others, one at least, likewise: of several, the sequences of one after those of another. It shares nothing.
  absl::Status copyFrom(std::span<const State *const> others);
  /// Every slot, each of which is replaced as a whole, becomes a copy of a dense tensor of the host of its type and sizes. Between two calls. Fails with the state
  /// as it was.
  absl::Status setContents(std::span<const hone_tensor> contents);
  /// Becomes a state of one text of `length` positions whose slots hold these, one each (Slot::beginWith). Fails with the state at its
  /// beginning.
  absl::Status beginWith(const Symbols &symbols, int64_t length, std::vector<StateBuffer> contents);
  void reset();
  /// Slots that grow make room for so many positions at once; never for fewer than an earlier call said.
  void reserve(int64_t positions);

private:
  void placeTrained();
  void fixSymbols(const io::TensorInfo &slot, const Symbols &callSymbols);
  absl::StatusOr<StateBuffer> uploadTo(Slot &slot, const hone_tensor &content);
  int64_t sequences() const;
  absl::Status checkKept(int64_t sequence, std::span<const int64_t> kept) const;
  absl::Status truncateTo(const Lengths &lengths);
  absl::Status dropAfter(const Lengths &unchanged);
  std::vector<HeldTensor> heldTensors() const;
  void setHeld(std::span<const HeldTensor> tensors);
  absl::Status takeSnapshot(StateMemory &by);
  absl::Status shareSlots(State &other);
  absl::Status copySlots(std::span<const State *const> others);
  absl::Status become(std::span<const State *const> others, absl::FunctionRef<absl::Status()> copy);
  absl::Status move(std::span<const PositionMove> moves);
  absl::Status checkJoined(std::span<const State *const> others) const;
  Symbols joinSymbols(std::span<const State *const> others) const;
  void loseCheckpoints(const Lengths &unchanged);
  void forgetSlots();

  uint64_t identity;
  StateMemory *memory;
  std::unique_ptr<PagePrefetcher> prefetching; // null where all is in memory
  std::vector<Slot> all;
  Symbols fixed;
  std::vector<int64_t> paddings;
  std::vector<std::weak_ptr<Checkpoint>> checkpoints;
  std::shared_ptr<const StateSnapshot> current; // of what the slots hold, where there is one
  bool mayShare = false;                        // slots with others
  Lengths positions, lastBegin;                 // lastBegin: before the last call
  int64_t logitRows = 0, lastEviction = 0;
  bool hasBegun = false; // by a call that was committed
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_STATE_H
