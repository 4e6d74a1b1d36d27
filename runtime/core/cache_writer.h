// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Positions of keys or values on their way into blocks (cpu/packing/cache_blocks.h).

#ifndef HONE_RUNTIME_CORE_CACHE_WRITER_H
#define HONE_RUNTIME_CORE_CACHE_WRITER_H

#include "hone/io/manifest.h"

namespace hone::rt {

/// Room for `positions` and what fills their last block up.
int64_t wholeBlocks(int64_t positions);

/// Writes one slot in blocks. Buffers are dense [B, H, capacity, width()]; the positions of a head lie as the slot's layout says.
class CacheWriter {
public:
  /// A position of a head has `size` elements.
  CacheWriter(const io::TensorInfo &slot, int64_t size);

  /// Elements of a position with what fills them up.
  int64_t width() const { return paddedSize; }

  /// Positions from `first` on become `fresh` [B, H, S, size], which may have any strides.
  void write(const hone_tensor &fresh, const hone_tensor &buffer, int64_t first) const;

  /// Positions first ≤ p < end become zeros.
  void clear(const hone_tensor &buffer, int64_t first, int64_t end) const;

private:
  template <typename Visit> void withLayout(Visit visit) const;

  hone_dtype dtype;
  bool isOfKeys;
  int64_t size, paddedSize = 0;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_CACHE_WRITER_H
