// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats are written by kernels. Quantized KV is rounded as its encoding says, element by element.

#include "core/cache_writer.h"

#include "cpu/kernel_table.h"
#include "hone/cpu/packing/quantized_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace hone::rt {
namespace {

/// Calls `visit` for each head of `buffer`: its sequence, its number and its memory.
template <typename Bits, typename Visit> void forEachHead(const hone_tensor &buffer, Visit visit) {
  for (int64_t sequence = 0; sequence < buffer.sizes[0]; ++sequence)
    for (int64_t head = 0; head < buffer.sizes[1]; ++head)
      visit(sequence, head, static_cast<Bits *>(buffer.data) + sequence * buffer.strides[0] + head * buffer.strides[1]);
}

/// The bf16 that is nearest to x towards positive or negative infinity; x is finite.
float roundUp(float x) {
  auto word = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((x > 0 ? word + 0xffff : word) & 0xffff0000);
}

float roundDown(float x) { return -roundUp(-x); }

uint16_t bf16Of(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }

/// Codes of a row: x ≈ base + scale · code.
struct RowQuantizer {
  float scale, base = 0;

  RowQuantizer(const std::vector<float> &row, int64_t bits) {
    auto [least, most] = std::ranges::minmax_element(row);
    if (row.empty() || !std::ranges::all_of(row, [](float x) { return std::isfinite(x); })) {
      scale = row.empty() ? 0 : std::numeric_limits<float>::quiet_NaN();
    } else if (bits == 8) {
      scale = roundUp(std::max(std::fabs(*least), std::fabs(*most)) / 127);
    } else {
      base = roundDown(*least);
      // Halves, as the difference of two floats may be none.
      scale = roundUp((*most / 2 - base / 2) / 15 * 2);
    }
  }

  /// Two's complement. Near 1.5 · 2^23 floats are integers, of which the last byte of a float is that of the integer.
  uint8_t codeOf(float x) const {
    return scale > 0 ? static_cast<uint8_t>(std::bit_cast<uint32_t>((x - base) / scale + 12582912.0f)) : uint8_t{0};
  }
};

} // namespace

int64_t wholeBlocks(int64_t positions) {
  return (positions + cpu::kCacheBlockPositions - 1) / cpu::kCacheBlockPositions * cpu::kCacheBlockPositions;
}

CacheWriter::CacheWriter(const io::TensorInfo &slot, int64_t size)
    : dtype(slot.dtype), isOfKeys(slot.layout == io::StateLayout::KeyBlocks), bits(slot.bits), size(size) {
  if (bits == 0) {
    withLayout([this](auto, auto layout) { paddedSize = layout.width; });
    kernel = cpu::findKernel(io::cat(isOfKeys ? "hone.write_keys." : "hone.write_values.", io::dtypeName(dtype)));
  } else {
    withQuantizedLayout([&](auto layout) {
      paddedSize = layout.positionBytes();
      for (int64_t d = 0; d < size; ++d)
        codes.push_back({layout.ofElement(d), layout.shiftOf(d)});
    });
  }
}

/// Calls `visit` with bits as wide as an element and the layout, whose divisors are then known to the compiler.
template <typename Visit> void CacheWriter::withLayout(Visit visit) const {
  auto withWord = [&](auto element, auto word) {
    if (isOfKeys)
      visit(element, cpu::BlockedKeyLayout(word, size));
    else
      visit(element, cpu::BlockedValueLayout(word, size));
  };
  using One = std::integral_constant<int64_t, 1>;
  using Two = std::integral_constant<int64_t, 2>;
  if (dtype == HONE_F32)
    return withWord(uint32_t(), One());
  cpu::cacheWordElements(dtype) == Two() ? withWord(uint16_t(), Two()) : withWord(uint16_t(), One());
}

template <typename Visit> void CacheWriter::withQuantizedLayout(Visit visit) const {
  if (isOfKeys)
    visit(cpu::QuantizedKeyLayout(bits, size));
  else
    visit(cpu::QuantizedValueLayout(bits, size));
}

void CacheWriter::write(const hone_tensor &fresh, const hone_tensor &buffer, int64_t first) const {
  if (bits != 0)
    return writeQuantized(fresh, buffer, first);
  const hone_tensor operands[] = {fresh, buffer};
  kernel(nullptr, operands, &first, nullptr);
}

void CacheWriter::writeQuantized(const hone_tensor &fresh, const hone_tensor &buffer, int64_t first) const {
  std::vector<float> row(static_cast<size_t>(size));
  withQuantizedLayout([&](auto layout) {
    forEachHead<uint8_t>(buffer, [&](int64_t sequence, int64_t head, uint8_t *memory) {
      const float *from =
          static_cast<const float *>(fresh.data) + sequence * fresh.strides[0] + head * fresh.strides[1];
      for (int64_t position = first; position < first + fresh.sizes[2]; ++position, from += fresh.strides[2]) {
        for (size_t d = 0; d < row.size(); ++d)
          row[d] = from[static_cast<int64_t>(d) * fresh.strides[3]];
        RowQuantizer quantizer(row, bits);
        uint8_t *to = memory + layout.ofPosition(position);
        for (size_t d = 0; d < row.size(); ++d) {
          uint8_t &byte = to[codes[d].byte], code = quantizer.codeOf(row[d]);
          byte = static_cast<uint8_t>(codes[d].shift == 0 ? code : byte | code << codes[d].shift);
        }
        uint16_t scale = bf16Of(quantizer.scale), base = bf16Of(quantizer.base);
        std::memcpy(memory + layout.ofScale(position), &scale, sizeof scale);
        if (layout.perByte > 1)
          std::memcpy(memory + layout.ofBase(position), &base, sizeof base);
      }
    });
  });
}

void CacheWriter::move(const hone_tensor &buffer, int64_t from, int64_t to) const {
  if (bits != 0)
    return moveQuantized(buffer, from, to);
  withLayout([&](auto element, auto layout) {
    using Bits = decltype(element);
    forEachHead<Bits>(buffer, [&](int64_t, int64_t, Bits *memory) {
      for (int64_t d = 0; d < size; ++d)
        memory[layout.ofPosition(to) + layout.ofElement(d)] = memory[layout.ofPosition(from) + layout.ofElement(d)];
    });
  });
}

/// A byte belongs to one position, whatever the layout.
void CacheWriter::moveQuantized(const hone_tensor &buffer, int64_t from, int64_t to) const {
  withQuantizedLayout([&](auto layout) {
    forEachHead<uint8_t>(buffer, [&](int64_t, int64_t, uint8_t *memory) {
      for (const CodePlace &code : codes)
        memory[layout.ofPosition(to) + code.byte] = memory[layout.ofPosition(from) + code.byte];
      std::memcpy(memory + layout.ofScale(to), memory + layout.ofScale(from), sizeof(uint16_t));
      if (layout.perByte > 1)
        std::memcpy(memory + layout.ofBase(to), memory + layout.ofBase(from), sizeof(uint16_t));
    });
  });
}

void CacheWriter::clear(const hone_tensor &buffer, int64_t first, int64_t end) const {
  if (bits != 0)
    return clearQuantized(buffer, first, end);
  withLayout([&](auto element, auto layout) {
    using Bits = decltype(element);
    forEachHead<Bits>(buffer, [&](int64_t, int64_t, Bits *memory) {
      for (int64_t position = first; position < end; ++position)
        for (int64_t d = 0; d < size; ++d)
          memory[layout.ofPosition(position) + layout.ofElement(d)] = 0;
    });
  });
}

void CacheWriter::clearQuantized(const hone_tensor &buffer, int64_t first, int64_t end) const {
  withQuantizedLayout([&](auto layout) {
    forEachHead<uint8_t>(buffer, [&](int64_t, int64_t, uint8_t *memory) {
      for (int64_t position = first; position < end; ++position) {
        for (const CodePlace &code : codes)
          memory[layout.ofPosition(position) + code.byte] = 0;
        std::memset(memory + layout.ofScale(position), 0, sizeof(uint16_t));
        if (layout.perByte > 1)
          std::memset(memory + layout.ofBase(position), 0, sizeof(uint16_t));
      }
    });
  });
}

} // namespace hone::rt
