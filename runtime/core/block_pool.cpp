// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tracked, reusable blocks: a header of 64 bytes before each keeps the links and the alignment.

#include "core/block_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

namespace hone::rt {

namespace {
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kLargest = uint64_t{1} << 62;
constexpr uint64_t kReusedClasses = 4; // a block may be reused for less than it holds, down to half

// AddressSanitizer knows the ends of allocations and what was freed: blocks are then as large as asked for, and no block is kept.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HONE_EXACT_BLOCKS true
#endif
#endif
#ifndef HONE_EXACT_BLOCKS
#define HONE_EXACT_BLOCKS false
#endif
constexpr bool kIsExact = HONE_EXACT_BLOCKS;

/// Class c has (4 + c % 4) · 2^(c / 4) lines of 64 bytes: a block is at most a quarter larger than what it was made for.
constexpr uint64_t kFewestLines = 4;
constexpr uint64_t classOf(uint64_t bytes) {
  uint64_t lines = std::max((bytes + kAlignment - 1) / kAlignment, kFewestLines);
  uint64_t octave = static_cast<uint64_t>(std::bit_width(lines) - std::bit_width(kFewestLines));
  uint64_t quarters = (lines + (uint64_t{1} << octave) - 1) >> octave;
  return 4 * octave + quarters - kFewestLines;
}
constexpr uint64_t capacityOf(uint64_t sizeClass) {
  return (kFewestLines + sizeClass % 4) << (sizeClass / 4) << std::countr_zero(kAlignment);
}
} // namespace

struct alignas(kAlignment) BlockPool::Block {
  BlockPool *pool;
  Block *previous, *next;
  uint64_t sizeClass;
  uint64_t lastCall;
};

BlockPool::~BlockPool() {
  while (Block *block = used) {
    unlink(block);
    std::free(block);
  }
  for (Block *first : free)
    while (Block *block = first) {
      first = block->next;
      std::free(block);
    }
}

BlockPool::Block *BlockPool::create(BlockPool *pool, uint64_t bytes, uint64_t sizeClass) {
  void *memory = nullptr;
  if (posix_memalign(&memory, kAlignment, sizeof(Block) + (kIsExact ? bytes : capacityOf(sizeClass))) != 0)
    return nullptr;
  return new (memory) Block{pool, nullptr, nullptr, sizeClass, 0};
}

BlockPool::Block *BlockPool::blockOf(void *memory) { return static_cast<Block *>(memory) - 1; }

BlockPool::Block *BlockPool::takeFree(uint64_t sizeClass) {
  for (uint64_t c = sizeClass, end = std::min(c + kReusedClasses, kClasses); c < end; ++c)
    if (Block *block = free[c]) {
      free[c] = block->next;
      --freeBlocks;
      return block;
    }
  return nullptr;
}

void *BlockPool::allocate(uint64_t bytes) {
  if (bytes > kLargest)
    return nullptr;
  uint64_t sizeClass = classOf(bytes);
  std::lock_guard lock(mutex);
  Block *block = takeFree(sizeClass);
  if (!block)
    block = create(this, bytes, sizeClass);
  if (!block)
    return nullptr;
  block->lastCall = calls;
  block->previous = nullptr;
  block->next = used;
  if (used)
    used->previous = block;
  used = block;
  return block + 1;
}

void BlockPool::unlink(Block *block) {
  (block->previous ? block->previous->next : used) = block->next;
  if (block->next)
    block->next->previous = block->previous;
}

/// Keeps the block for later calls.
void BlockPool::takeBack(Block *block) {
  unlink(block);
  if (kIsExact)
    return std::free(block);
  block->next = std::exchange(free[block->sizeClass], block);
  ++freeBlocks;
}

/// Frees the blocks of a class that this call did not need.
void BlockPool::freeIdle(Block *&first) {
  for (Block **link = &first; Block *block = *link;) {
    if (block->lastCall == calls) {
      link = &block->next;
      continue;
    }
    *link = block->next;
    std::free(block);
    --freeBlocks;
  }
}

void BlockPool::release(void *memory) {
  if (!memory)
    return;
  Block *block = blockOf(memory);
  BlockPool *pool = block->pool;
  std::lock_guard lock(pool->mutex);
  pool->takeBack(block);
}

void BlockPool::endCall() {
  std::lock_guard lock(mutex);
  while (Block *block = used)
    takeBack(block);
  if (freeBlocks > 0)
    std::ranges::for_each(free, [this](Block *&first) { freeIdle(first); });
  ++calls;
}

} // namespace hone::rt
