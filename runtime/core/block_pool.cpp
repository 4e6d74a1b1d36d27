// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tracked, reusable blocks: a header of 64 bytes before each keeps the links and the alignment.

#include "core/block_pool.h"

#include <cstdlib>
#include <new>

namespace hone::rt {

namespace {
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kLargest = uint64_t{1} << 62;
constexpr uint64_t kSmallBlock = 4096; // below this a block may be reused however much too large it is

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
} // namespace

struct alignas(kAlignment) BlockPool::Block {
  BlockPool *pool;
  Block *previous, *next;
  uint64_t capacity;
  uint64_t lastCall;
};

BlockPool::~BlockPool() {
  while (Block *block = used) {
    unlink(block);
    std::free(block);
  }
  for (auto [capacity, block] : free)
    std::free(block);
}

BlockPool::Block *BlockPool::create(BlockPool *pool, uint64_t bytes) {
  if (bytes > kLargest)
    return nullptr;
  uint64_t capacity = kIsExact ? bytes : (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void *memory = nullptr;
  if (posix_memalign(&memory, kAlignment, sizeof(Block) + capacity) != 0)
    return nullptr;
  return new (memory) Block{pool, nullptr, nullptr, capacity, 0};
}

BlockPool::Block *BlockPool::blockOf(void *memory) { return static_cast<Block *>(memory) - 1; }

BlockPool::Block *BlockPool::takeFree(uint64_t bytes) {
  auto found = free.lower_bound(bytes);
  if (found == free.end() || (found->first > kSmallBlock && found->first / 2 > bytes))
    return nullptr;
  Block *block = found->second;
  free.erase(found);
  return block;
}

void *BlockPool::allocate(uint64_t bytes) {
  std::lock_guard lock(mutex);
  Block *block = takeFree(bytes);
  if (!block)
    block = create(this, bytes);
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

/// Keeps the block for later calls. A block that there is no memory to remember is freed.
void BlockPool::takeBack(Block *block) noexcept {
  unlink(block);
  if (kIsExact)
    return std::free(block);
  try {
    free.emplace(block->capacity, block);
  } catch (const std::bad_alloc &) {
    std::free(block);
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
  std::erase_if(free, [this](const auto &entry) {
    bool idle = entry.second->lastCall != calls;
    if (idle)
      std::free(entry.second);
    return idle;
  });
  ++calls;
}

} // namespace hone::rt
