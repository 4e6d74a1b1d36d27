// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Positions of keys or values on their way into blocks (hone/cpu/packing/cache_blocks.h, hone/cpu/packing/quantized_blocks.h).

#ifndef HONE_RUNTIME_CORE_CACHE_WRITER_H
#define HONE_RUNTIME_CORE_CACHE_WRITER_H

#include "hone/io/manifest.h"

namespace hone::rt {

/// Room for `positions` and what fills their last block up.
int64_t wholeBlocks(int64_t positions);

/// Writes one slot in blocks. Buffers are dense [B, H, capacity, width()] of elements(); the positions of a head lie as the slot's
/// layout says.
class CacheWriter {
public:
  /// A position of a head has `size` elements.
  CacheWriter(const io::TensorInfo &slot, int64_t size);

  /// What buffers hold: the slot's elements, or bytes where they are quantized.
  hone_dtype elements() const { return bits == 0 ? dtype : HONE_I8; }

  /// Elements of a position with what fills them up, and with what else is kept of it.
  int64_t width() const { return paddedSize; }

  /// Whether this machine has what writes the slot; else there is no kernel either that would read it.
  bool isSupported() const { return bits != 0 || kernel; }

  /// Positions from `first` on become `fresh` [B, H, S, size] of f32, which may have any strides, converted to what the slot holds.
  void write(const hone_tensor &fresh, const hone_tensor &buffer, int64_t first) const;

  /// Position `to` becomes a copy of position `from`, bit for bit.
  void move(const hone_tensor &buffer, int64_t from, int64_t to) const;

  /// Positions first ≤ p < end become zeros.
  void clear(const hone_tensor &buffer, int64_t first, int64_t end) const;

private:
  template <typename Visit> void withLayout(Visit visit) const;
  template <typename Visit> void withQuantizedLayout(Visit visit) const;
  void writeQuantized(const hone_tensor &fresh, const hone_tensor &buffer, int64_t first) const;
  void moveQuantized(const hone_tensor &buffer, int64_t from, int64_t to) const;
  void clearQuantized(const hone_tensor &buffer, int64_t first, int64_t end) const;

  /// Where the code of an element is, from the first of its position on.
  struct CodePlace {
    int64_t byte, shift;
  };

  hone_dtype dtype;
  bool isOfKeys;
  int64_t bits; // of integers, or 0
  int64_t size, paddedSize = 0;
  std::vector<CodePlace> codes;    // of integers
  hone_kernel_fn kernel = nullptr; // of floats
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_CACHE_WRITER_H
