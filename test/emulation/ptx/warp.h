// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp: 32 lanes with one frame of registers.
//
// Lanes that are at the same instruction execute it together. Of lanes that have parted, those with the lowest program counter go
// first, so that they meet again where their paths do. Lanes that wait for others, at a barrier or at an instruction of
// the whole warp, are blocked.

#pragma once

#include "ptx/launch.h"
#include "ptx/program.h"

#include <array>
#include <bit>
#include <cstring>

namespace hone::emulation {

class Block;

constexpr uint32_t kNumBarriers = 16;
constexpr uint32_t kWarpsOfGroup = 4;

/// A copy to shared memory that a lane has begun and not yet waited for.
struct PendingCopy {
  uint32_t lane;
  uint64_t group; // how many the lane had committed before
  std::byte *to;
  const std::byte *from;
  uint32_t bytes;
  uint32_t taken; // bytes that are read; zeros follow
};

/// What a warp does of a product of its warpgroup that was begun and not yet waited for (exec/group_multiply.cpp).
struct PendingProduct {
  const Inst *inst;
  uint64_t group;                                        // how many were committed before
  uint64_t a, b;                                         // descriptors
  bool adds;                                             // to what its registers hold
  std::array<std::array<uint32_t, kLanes>, 4> registers; // of A, as they were
  std::array<uint32_t, kLanes> metadata;                 // of a sparse A, as they were
  size_t sums;                                           // their number in Warp::sums
};

/// Accumulators that products under way add to. The registers hold NaN meanwhile.
struct PendingSums {
  const uint32_t *slots;
  uint32_t count;            // of slots
  std::vector<float> values; // rows of 2 · count columns
};

class Warp {
public:
  Warp(Block &block, uint32_t index);

  /// Begins anew at the first instruction, for the block that `block` now is.
  void reset();
  /// Executes instructions until all lanes are blocked or have ended, or until about so many were executed.
  void run(uint32_t quantum);
  bool runnable() const { return (alive & ~blocked) != 0; }

  /// The lanes of a slot.
  template <class T> T *at(uint32_t slot) { return reinterpret_cast<T *>(frame + slot); }
  uint32_t maskAt(uint32_t slot) const {
    uint32_t mask;
    std::memcpy(&mask, frame + slot, sizeof mask);
    return mask;
  }
  void setMask(uint32_t slot, uint32_t lanes, uint32_t value) {
    uint32_t mask = (maskAt(slot) & ~lanes) | (value & lanes);
    std::memcpy(frame + slot, &mask, sizeof mask);
  }

  // What instructions of control do with the lanes that execute them.

  /// All active lanes go on to the next instruction.
  void advance() {
    if (++pc >= join)
      regroup();
  }
  /// The lanes of the mask jump, the other active ones go on.
  void branch(uint32_t mask, uint32_t target);
  /// Each lane of the mask jumps to its own target.
  void branchTo(uint32_t mask, const uint32_t *targets);
  /// The lanes of the mask end, the other active ones go on.
  void exit(uint32_t mask);
  /// True when all members that live have come to this instruction: `mask` is then all of them. Until then they block.
  bool gather(uint32_t members, uint32_t &mask);
  /// The lanes of the mask wait after this instruction for a barrier of the block; the other active ones go on.
  void waitAtBarrier(uint32_t mask, uint32_t barrier);
  /// Whether all lanes that live wait at the barrier.
  bool isAt(uint32_t barrier) const { return atBarrier[barrier] != 0 && (alive & ~atBarrier[barrier]) == 0; }
  uint32_t release(uint32_t barrier);
  /// Lets other warps go first, which this one may be waiting for.
  void pause() { budget = 0; }
  /// The same where only threads of its cluster can end what it waits for.
  void pauseForCluster() {
    budget = 0;
    waitsForCluster = true;
  }

  Block &block;
  std::byte *frame = nullptr;
  std::byte *local = nullptr; // kernel.localBytes for each lane
  const uint32_t index;       // in the block
  uint32_t alive = 0;
  uint64_t executed = 0;
  bool waitsForCluster = false; // at the end of its last turn
  uint32_t pc = 0;              // of the active lanes
  uint32_t active = 0;
  uint32_t carry = 0;                             // the lanes' condition code
  std::vector<PendingCopy> copies;                // of cp.async, in their order
  std::array<uint64_t, kLanes> committedCopies{}; // groups
  std::vector<PendingProduct> products;           // of wgmma, in their order
  std::vector<PendingSums> sums;
  uint64_t committedProducts = 0; // groups
  bool fenced = false;            // by wgmma.fence, since registers of products were last free to be used
  uint64_t groupTrace = 0;        // of the instructions for warpgroups that it executed: the same for all warps of one
  uint64_t clusterArrivals = 0;   // at the barrier of its cluster
  uint32_t registers = 0;         // of a thread

private:
  void park();
  void regroup();

  std::vector<uint64_t> storage;
  std::vector<std::byte> localStorage;
  uint32_t blocked = 0;   // lanes that wait, at a barrier or in gather()
  uint32_t gathering = 0; // those in gather()
  uint32_t join = 0;      // lowest program counter of lanes that are neither active nor blocked
  int64_t budget = 0;
  uint32_t partings = 0;
  std::array<uint32_t, kLanes> lanePc{};
  std::array<uint32_t, kNumBarriers> atBarrier{};
};

/// Calls body(lane) for the lanes of a mask; all lanes are one loop that the compiler vectorizes.
template <class Body> inline void eachLane(uint32_t mask, Body body) {
  if (mask == kAllLanes) {
#pragma clang loop vectorize(assume_safety)
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      body(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1)
    body(static_cast<uint32_t>(std::countr_zero(mask)));
}

/// The same over the halves of packed values: body(element), two elements a lane.
template <class Body> inline void eachHalf(uint32_t mask, Body body) {
  if (mask == kAllLanes) {
#pragma clang loop vectorize(assume_safety)
    for (uint32_t element = 0; element < 2 * kLanes; ++element)
      body(element);
    return;
  }
  for (; mask != 0; mask &= mask - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(mask));
    body(2 * lane);
    body(2 * lane + 1);
  }
}

/// The lowest lane of a mask that is not empty.
inline uint32_t firstLane(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

} // namespace hone::emulation
