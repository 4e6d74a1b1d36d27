// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element by element, as bits: a step appends one position, and writing those of a prompt costs little beside attention over
// them.

#include "core/cache_writer.h"

#include "cpu/packing/cache_blocks.h"

namespace hone::rt {
namespace {

/// Calls `visit` for each head of `buffer`: its sequence, its number and its memory.
template <typename Bits, typename Visit> void forEachHead(const hone_tensor &buffer, Visit visit) {
  for (int64_t sequence = 0; sequence < buffer.sizes[0]; ++sequence)
    for (int64_t head = 0; head < buffer.sizes[1]; ++head)
      visit(sequence, head, static_cast<Bits *>(buffer.data) + sequence * buffer.strides[0] + head * buffer.strides[1]);
}

} // namespace

int64_t wholeBlocks(int64_t positions) {
  return (positions + cpu::kCacheBlockPositions - 1) / cpu::kCacheBlockPositions * cpu::kCacheBlockPositions;
}

CacheWriter::CacheWriter(const io::TensorInfo &slot, int64_t size)
    : dtype(slot.dtype), isOfKeys(slot.layout == io::StateLayout::KeyBlocks), size(size) {
  withLayout([this](auto, auto layout) { paddedSize = layout.width; });
}

/// Calls `visit` with bits as wide as an element and the layout, whose divisors are then known to the compiler.
template <typename Visit> void CacheWriter::withLayout(Visit visit) const {
  auto withWord = [&](auto bits, auto word) {
    if (isOfKeys)
      visit(bits, cpu::BlockedKeyLayout(word, size));
    else
      visit(bits, cpu::BlockedValueLayout(word, size));
  };
  using One = std::integral_constant<int64_t, 1>;
  using Two = std::integral_constant<int64_t, 2>;
  if (dtype == HONE_F32)
    return withWord(uint32_t(), One());
  cpu::cacheWordElements(dtype) == Two() ? withWord(uint16_t(), Two()) : withWord(uint16_t(), One());
}

void CacheWriter::write(const hone_tensor &fresh, const hone_tensor &buffer, int64_t first) const {
  withLayout([&](auto bits, auto layout) {
    using Bits = decltype(bits);
    forEachHead<Bits>(buffer, [&](int64_t sequence, int64_t head, Bits *memory) {
      const Bits *row = static_cast<const Bits *>(fresh.data) + sequence * fresh.strides[0] + head * fresh.strides[1];
      for (int64_t s = 0; s < fresh.sizes[2]; ++s, row += fresh.strides[2]) {
        Bits *to = memory + layout.ofPosition(first + s);
        for (int64_t d = 0; d < size; ++d)
          to[layout.ofElement(d)] = row[d * fresh.strides[3]];
      }
    });
  });
}

void CacheWriter::clear(const hone_tensor &buffer, int64_t first, int64_t end) const {
  withLayout([&](auto bits, auto layout) {
    using Bits = decltype(bits);
    forEachHead<Bits>(buffer, [&](int64_t, int64_t, Bits *memory) {
      for (int64_t position = first; position < end; ++position)
        for (int64_t d = 0; d < size; ++d)
          memory[layout.ofPosition(position) + layout.ofElement(d)] = 0;
    });
  });
}

} // namespace hone::rt
