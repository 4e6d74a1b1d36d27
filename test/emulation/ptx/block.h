// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of threads: its warps, its shared memory and its barriers.

#pragma once

#include "ptx/warp.h"

#include <functional>
#include <memory>

namespace hone::emulation {

class Block {
public:
  /// A place for blocks of a launch; begin() says which.
  explicit Block(const Launch &launch);

  void begin(uint64_t index);
  /// Each warp has a turn. False where none can go on.
  bool takeTurn();
  bool hasEnded() const { return ended; }
  /// Whether a warp did more in the last turn than look whether a barrier of the cluster, or in memory, has come.
  bool hasWorked() const { return works; }
  uint64_t executed() const;
  /// Throws the Fault that nobody can go on.
  [[noreturn]] void failStuck() const;

  /// A warp has come to a barrier, or lanes of it have ended: whoever waits goes on if all are there.
  void update(uint32_t barrier);
  /// A warp of lanes ended: it may be the last that barriers were waiting for.
  void updateAll();

  enum class Reduction : uint8_t { None, Count, And, Or };
  /// What the threads that have come to a barrier so far agreed on.
  struct Barrier {
    uint32_t expected = 0;    // threads it is for, 0: all of the block
    uint32_t arrivedOnly = 0; // threads that came without waiting
    Reduction reduction = Reduction::None;
    uint32_t holds = 0; // threads whose predicate holds
    uint32_t threads = 0;
    /// A slot, and the lanes of a warp that take the reduction there.
    struct Result {
      Warp *warp;
      uint32_t slot;
      uint32_t lanes;
    };
    std::vector<Result> results;
  };
  Barrier &barrier(uint32_t index) { return barriers[index]; }

  /// A copy to shared memory whose bytes a barrier in memory counts.
  struct BulkCopy {
    std::byte *barrier;
    uint32_t bytes;
    std::function<void()> perform;
  };
  std::vector<BulkCopy> bulkCopies;
  /// Does the copies of a barrier.
  void performBulkCopies(const std::byte *barrier);

  /// Whether all threads that live have come to the barrier of the cluster so often.
  bool isAtCluster(uint64_t arrivals) const;
  /// A block of the cluster. Throws Fault where there is none, or where it has ended.
  Block &peer(uint32_t rank);
  uint32_t rank() const { return position[0] % static_cast<uint32_t>(cluster.size()); }

  const Launch &launch;
  std::vector<Block *> cluster; // by rank, this one too
  std::vector<std::byte> shared;
  std::array<uint32_t, 3> position{};

private:
  bool isComplete(uint32_t index) const;
  void checkGroups() const;

  std::vector<std::unique_ptr<Warp>> warps;
  std::array<Barrier, kNumBarriers> barriers;
  bool backwards = false;
  bool ended = false;
  bool works = false;
};

} // namespace hone::emulation
