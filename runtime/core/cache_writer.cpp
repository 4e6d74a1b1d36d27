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

CacheWriter::CacheWriter(const io::TensorInfo &slot, int64_t size) : isWide(slot.dtype == HONE_F32) {
  auto take = [&](auto layout) {
    paddedSize = layout.width;
    ofPosition = [layout](int64_t position) { return layout.ofPosition(position); };
    for (int64_t d = 0; d < size; ++d)
      ofElement.push_back(layout.ofElement(d));
  };
  int64_t word = cpu::cacheWordElements(slot.dtype);
  if (slot.layout == io::StateLayout::KeyBlocks)
    take(cpu::BlockedKeyLayout(word, size));
  else
    take(cpu::BlockedValueLayout(word, size));
}

template <typename Bits>
void CacheWriter::writeBits(const hone_tensor &fresh, const hone_tensor &buffer, int64_t first) const {
  forEachHead<Bits>(buffer, [&](int64_t sequence, int64_t head, Bits *memory) {
    const Bits *row = static_cast<const Bits *>(fresh.data) + sequence * fresh.strides[0] + head * fresh.strides[1];
    for (int64_t s = 0; s < fresh.sizes[2]; ++s, row += fresh.strides[2]) {
      Bits *to = memory + ofPosition(first + s);
      for (size_t d = 0; d < ofElement.size(); ++d)
        to[ofElement[d]] = row[static_cast<int64_t>(d) * fresh.strides[3]];
    }
  });
}

template <typename Bits> void CacheWriter::clearBits(const hone_tensor &buffer, int64_t first, int64_t end) const {
  forEachHead<Bits>(buffer, [&](int64_t, int64_t, Bits *memory) {
    for (int64_t position = first; position < end; ++position)
      for (int64_t offset : ofElement)
        memory[ofPosition(position) + offset] = 0;
  });
}

void CacheWriter::write(const hone_tensor &fresh, const hone_tensor &buffer, int64_t first) const {
  isWide ? writeBits<uint32_t>(fresh, buffer, first) : writeBits<uint16_t>(fresh, buffer, first);
}

void CacheWriter::clear(const hone_tensor &buffer, int64_t first, int64_t end) const {
  isWide ? clearBits<uint32_t>(buffer, first, end) : clearBits<uint16_t>(buffer, first, end);
}

} // namespace hone::rt
