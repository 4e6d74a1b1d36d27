// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that a program allocates during a call. Every block is tracked, so that a call that fails leaks nothing, and
// kept for the next call, so that a decode step allocates nothing from the operating system.

#ifndef HONE_RUNTIME_CORE_BLOCK_POOL_H
#define HONE_RUNTIME_CORE_BLOCK_POOL_H

#include <array>
#include <cstdint>
#include <mutex>

namespace hone::rt {

/// Thread-safe. Blocks are aligned to 64 bytes.
class BlockPool {
public:
  BlockPool() = default;
  BlockPool(const BlockPool &) = delete;
  BlockPool &operator=(const BlockPool &) = delete;
  ~BlockPool();

  /// Uninitialised memory, or null where there is none.
  void *allocate(uint64_t bytes);

  /// Gives a block back to the pool it came from, whichever that is; null is nothing.
  static void release(void *memory);

  /// Ends a call: blocks still out come back, and those that this call did not need are freed.
  void endCall();

private:
  struct Block;
  static Block *create(BlockPool *pool, uint64_t bytes, uint64_t sizeClass);
  static Block *blockOf(void *memory);
  Block *takeFree(uint64_t sizeClass);
  void unlink(Block *block);
  void takeBack(Block *block);
  void freeIdle(Block *&first);

  static constexpr uint64_t kClasses = 4 * 56; // of capacities, four an octave

  std::mutex mutex;
  Block *used = nullptr;                // doubly linked
  std::array<Block *, kClasses> free{}; // of each class, singly linked
  uint64_t freeBlocks = 0, calls = 0;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_BLOCK_POOL_H
