// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefetch of the pages of a KV cache that is mapped from files.

#ifndef HONE_RUNTIME_CORE_PAGE_PREFETCHER_H
#define HONE_RUNTIME_CORE_PAGE_PREFETCHER_H

#include "cpu/cache_prefetch.h"

#include <cstdint>
#include <vector>

namespace hone::rt {

/// Has the system read pages of mapped files, many at a time where page faults would read one after the other. Ranges that a call or the one
/// before it prefetched are taken for resident, as they were used last. Of the others one in kProbed is looked at: while all of those are
/// resident, memory holds the cache, and no system call is made for the rest.
class PagePrefetcher final : public cpu::CachePrefetcher {
public:
  static constexpr int64_t kProbed = 32;

  PagePrefetcher();

  void beginCall();

  void prefetch(const hone_tensor &cache, int64_t sequence, int64_t head, int64_t first, int64_t end) override;

  /// How many ranges the system was told to read.
  int64_t advised() const { return advisedRanges; }

private:
  static constexpr int kRangeBits = 17; // 2 MiB; of two ranges with one place the later one is known

  struct Range {
    uintptr_t begin = 0;
    uint64_t call = 0; // that used it last
  };

  bool isKnown(const void *begin);

  std::vector<Range> ranges; // by a hash of `begin`
  uint64_t calls = 1;
  int64_t unknown = 0, advisedRanges = 0;
  bool wasAbsent = false, isAbsent = false; // whether a page was not resident that the last call and this one looked at
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_PAGE_PREFETCHER_H
