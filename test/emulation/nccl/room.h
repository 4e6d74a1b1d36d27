// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Processes of one machine that exchange bytes by shared memory.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hone::emulation {

/// What one rank asks all of them for; the same on each.
struct CollectiveCall {
  enum class Kind : int32_t { AllReduce, AllGather };
  Kind kind;
  int32_t type;
  uint64_t bytes; // of one rank

  bool operator==(const CollectiveCall &) const = default;
};

using Uuid = std::array<char, 16>;

class Room {
public:
  enum class Outcome { Done, Alone, Different }; // Alone: another process has ended or left

  static constexpr int kMostRanks = 16;

  /// Makes a room, whose name others enter it by, and returns the name; empty where the system has none.
  static std::string create();

  /// Enters as rank `rank` of `ranks` with the device of that UUID, and waits for the others. Null, with a reason, where that fails.
  static Room *enter(const std::string &name, int ranks, int rank, const Uuid &device, std::string &reason);

  /// Leaves, so that others do not wait any more.
  void leave();

  int ranks() const { return count; }

  /// All ranks call this with as many bytes each; afterwards `all` has those of all of them in their order.
  Outcome exchange(const CollectiveCall &call, std::span<const std::byte> mine, std::span<std::byte> all);

private:
  struct Place;
  struct Memory;
  Room(Memory *memory, int ranks, int rank) : memory(memory), count(ranks), self(rank) {}
  bool waitForAll(std::atomic<uint64_t> Place::*counter, uint64_t value);
  bool isThere(const Place &place) const;
  std::string checkDevices() const;

  Memory *memory;
  int count, self;
  uint64_t turn = 0; // pieces that were exchanged
};

} // namespace hone::emulation
