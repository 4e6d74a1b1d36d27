// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One block in slots. It grows by more than was asked for, as a session's calls need a little more each time.

#include "core/arena.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define HONE_POISON(address, bytes) ASAN_POISON_MEMORY_REGION(address, bytes)
#define HONE_UNPOISON(address, bytes) ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#define HONE_GAP 64
#endif
#endif
#ifndef HONE_GAP
#define HONE_POISON(address, bytes) (void)0
#define HONE_UNPOISON(address, bytes) (void)0
#define HONE_GAP 0
#endif

namespace hone::rt {
namespace {

constexpr uint64_t kAlignment = 64, kGap = HONE_GAP;
constexpr uint64_t kLargest = uint64_t{1} << 62;  // more than any memory, and twice it is still a number
constexpr uint64_t kHugePage = uint64_t{2} << 20; // of x86-64
constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

uint64_t roundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

uint64_t slotBytes(uint64_t bytes) { return roundUp(std::min(bytes, kLargest), kAlignment) + kGap; }

} // namespace

Arena::~Arena() { clear(); }

uint64_t Arena::totalBytes(std::span<const uint64_t> bytes) {
  uint64_t total = 0;
  for (uint64_t each : bytes) {
    total += slotBytes(each);
    if (total > kLargest)
      return kNone;
  }
  return total;
}

void Arena::clear() {
  if (memory)
    HONE_UNPOISON(memory, capacity);
  std::free(memory);
  memory = nullptr;
  capacity = 0;
}

/// The half more is for the next calls; where there is not that much, what is needed will do.
bool Arena::grow(uint64_t bytes) {
  clear(); // first, as both at once may be too much
  for (uint64_t wanted : {bytes + bytes / 2, bytes}) {
    uint64_t unit = wanted >= kHugePage ? kHugePage : kAlignment, rounded = roundUp(wanted, unit);
    auto *fresh = static_cast<uint8_t *>(std::aligned_alloc(unit, rounded));
    if (!fresh)
      continue;
    if (unit == kHugePage)
      (void)madvise(fresh, rounded, MADV_HUGEPAGE); // a wish: fewer page faults where the system grants it
    memory = fresh;
    capacity = rounded;
    ++growthCount;
    return true;
  }
  return false;
}

bool Arena::place(std::span<const uint64_t> bytes, std::span<void *> slots) {
  uint64_t total = totalBytes(bytes);
  if (total == kNone || (total > capacity && !grow(total)))
    return false;
  if (memory)
    HONE_POISON(memory, capacity);
  uint64_t offset = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    slots[i] = memory + offset;
    HONE_UNPOISON(slots[i], bytes[i]);
    offset += slotBytes(bytes[i]);
  }
  return true;
}

} // namespace hone::rt
