// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "core/page_prefetcher.h"

#include "hone/io/dtype.h"
#include "hone/io/pages.h"

#include <utility>

namespace hone::rt {

PagePrefetcher::PagePrefetcher() : ranges(size_t{1} << kRangeBits) {}

void PagePrefetcher::beginCall() {
  ++calls;
  wasAbsent = std::exchange(isAbsent, false);
}

/// Fibonacci hashing: ranges lie at multiples of their size.
bool PagePrefetcher::isKnown(const void *begin) {
  auto address = reinterpret_cast<uintptr_t>(begin);
  Range &range = ranges[uint64_t{address} * 0x9E3779B97F4A7C15u >> (64 - kRangeBits)];
  bool isKnown = range.begin == address && range.call + 1 >= calls;
  range = {address, calls};
  return isKnown;
}

void PagePrefetcher::prefetch(const hone_tensor &cache, int64_t sequence, int64_t head, int64_t first, int64_t end) {
  int64_t bytes = io::dtypeBytes(static_cast<hone_dtype>(cache.dtype));
  int64_t offset = sequence * cache.strides[0] + head * cache.strides[1] + first * cache.strides[2];
  const uint8_t *begin = static_cast<const uint8_t *>(cache.data) + offset * bytes;
  if (isKnown(begin))
    return;
  if (unknown++ % kProbed == 0 && !io::isResident(begin))
    isAbsent = true;
  if (!wasAbsent && !isAbsent)
    return;
  ++advisedRanges;
  io::prefetchPages(begin, static_cast<uint64_t>((end - first) * cache.strides[2] * bytes));
}

} // namespace hone::rt
