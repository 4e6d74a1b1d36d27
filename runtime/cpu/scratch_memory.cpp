// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks with a header of one line that says how large they are. Large blocks ask for huge pages.

#include "cpu/scratch_memory.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <utility>

namespace hone::cpu {
namespace {

constexpr uint64_t kLine = 64, kHugePage = uint64_t{2} << 20;
constexpr uint64_t kMostKept = uint64_t{32} << 20; // bytes of a kept block

constexpr uint64_t kLargest = uint64_t{1} << 62; // more than any memory

struct alignas(kLine) Header {
  uint64_t bytes;  // of what follows
  uint64_t number; // of the allocation, in its thread
  Header *older, *newer;
};

/// Blocks that a thread uses, the newest first.
thread_local Header *newest = nullptr;
thread_local uint64_t allocations = 0;
thread_local ScratchScope *innermost = nullptr;

/// Null where there is not so much memory.
Header *allocateBlock(uint64_t bytes) {
  if (bytes > kLargest)
    return nullptr;
  uint64_t alignment = bytes >= kHugePage ? kHugePage : kLine;
  uint64_t total = (bytes + sizeof(Header) + alignment - 1) / alignment * alignment;
  void *memory = std::aligned_alloc(alignment, total);
  if (!memory)
    return nullptr;
  if (alignment == kHugePage)
    madvise(memory, total, MADV_HUGEPAGE);
  auto *header = static_cast<Header *>(memory);
  header->bytes = total - sizeof(Header);
  return header;
}

void link(Header *block) {
  block->number = allocations++;
  block->newer = nullptr;
  block->older = newest;
  if (newest)
    newest->newer = block;
  newest = block;
}

void unlink(Header *block) {
  (block->newer ? block->newer->older : newest) = block->older;
  if (block->older)
    block->older->newer = block->newer;
}

/// Freed blocks of a thread, for its next kernels.
class KeptBlocks {
public:
  KeptBlocks() = default;
  ~KeptBlocks() {
    for (Header *block : blocks)
      std::free(block);
  }
  KeptBlocks(const KeptBlocks &) = delete;
  KeptBlocks &operator=(const KeptBlocks &) = delete;

  /// The smallest block that is large enough, or null.
  Header *take(uint64_t bytes) {
    Header **best = nullptr;
    for (Header *&block : blocks)
      if (block && block->bytes >= bytes && (!best || block->bytes < (*best)->bytes))
        best = &block;
    return best ? std::exchange(*best, nullptr) : nullptr;
  }

  /// Keeps the block, in place of the smallest one where all places are taken.
  void keep(Header *block) {
    if (block->bytes > kMostKept)
      return std::free(block);
    Header **place = &blocks[0];
    for (Header *&kept : blocks)
      if (!kept || (*place && kept->bytes < (*place)->bytes))
        place = &kept;
    std::free(std::exchange(*place, block));
  }

private:
  std::array<Header *, 4> blocks = {};
};

KeptBlocks &keptBlocks() {
  static thread_local KeptBlocks blocks;
  return blocks;
}

} // namespace

ScratchScope::ScratchScope() : outer(innermost), firstBlock(allocations) { innermost = this; }

ScratchScope::~ScratchScope() { innermost = outer; }

void failScratch(uint64_t bytes) {
  ScratchScope *scope = innermost;
  if (!scope) {
    std::fprintf(stderr, "hone: cannot allocate %llu bytes for a kernel outside of a call: out of memory\n",
                 static_cast<unsigned long long>(bytes));
    std::abort();
  }
  while (newest && newest->number >= scope->firstBlock) {
    Header *block = newest;
    unlink(block);
    std::free(block);
  }
  scope->lacking = bytes;
  longjmp(scope->exit, 1);
}

float *allocateScratch(int64_t count) {
  uint64_t bytes = static_cast<uint64_t>(count) * sizeof(float);
  Header *block = keptBlocks().take(bytes);
  if (!block)
    block = allocateBlock(bytes);
  if (!block)
    failScratch(bytes);
  link(block);
  return reinterpret_cast<float *>(block + 1);
}

void freeScratch(float *memory) {
  if (!memory)
    return;
  Header *block = reinterpret_cast<Header *>(memory) - 1;
  unlink(block);
  keptBlocks().keep(block);
}

} // namespace hone::cpu
