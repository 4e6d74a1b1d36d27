// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of keys and values as tiles of AMX.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_CACHE_TILES_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_CACHE_TILES_H

#ifdef __AMX_BF16__

#include "../scratch.h"
#include "../tile_registers.h"
#include "key_blocks.h"
#include "limbs.h"

#include <immintrin.h>

namespace {

constexpr int64_t kTileBytes = kTileRows * kTileRowBytes;
constexpr int64_t kTileDepth = 32; // bf16 of a row
constexpr int64_t kBlockTiles = kBlockKeys / kTileRows, kBlockPairs = kBlockKeys / kTileDepth;

/// Tiles of kBlockKeys keys and values. A tile of keys is sixteen keys by 32 elements; a tile of values 32 positions by
/// sixteen elements, two positions to a word.
template <typename Cache> class CacheTiles {
public:
  using Element = typename Cache::Element;
  using Limbs = CacheLimbs<Cache>;

  CacheTiles(int64_t size, int64_t valueSize)
      : size(size), valueSize(valueSize), copies(kBlockKeys * (size + valueSize)),
        keyMemory(Limbs::kIsBf16 ? 0 : kBlockKeys * size * Limbs::kCount),
        valueMemory(kBlockKeys * valueSize * Limbs::kCount) {}

  int64_t keySteps() const { return size / kTileDepth * Limbs::kCount; }
  int64_t valueColumns() const { return valueSize / kTileRows; }

  /// Step `step` of the keys of tile `tile`: limb step % kCount of elements from 32 · (step / kCount) on.
  const void *keyTile(int64_t tile, int64_t step) const {
    if constexpr (Limbs::kIsBf16)
      return keys + tile * kTileRows * keyStride + step * kTileDepth;
    return keyMemory.data() + (tile * keySteps() + step) * kTileBytes / 2;
  }
  int64_t keyTileStride() const { return Limbs::kIsBf16 ? keyStride * 2 : kTileRowBytes; }

  /// Limb `limb` of columns 16 · `column` on (see `elementOf`) of the values of tile `tile`.
  const void *valueTile(int64_t tile, int64_t column, int limb) const {
    return valueMemory.data() + ((tile * valueColumns() + column) * Limbs::kCount + limb) * kTileBytes / 2;
  }

  /// Elements of a query as they are multiplied with those of a step of keys: pairs of a word.
  static void pairQuery(Vector first, Vector second, Vector &low, Vector &high) {
    if constexpr (Limbs::kIsBf16) {
      low = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
      high = __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
      return;
    }
    low = first;
    high = second;
  }

  /// Which element of a value column `lane` of a tile `column` is.
  static int64_t elementOf(int64_t column, int64_t lane) {
    if constexpr (Limbs::kIsBf16) // words of two rows are interleaved within 128 bits
      return column / 2 * kTileDepth + lane / 4 * 8 + column % 2 * 4 + lane % 4;
    return column * kTileRows + lane;
  }

  /// Takes `count` keys; what a block lacks counts as zeros. Those of before are gone.
  void takeKeys(const CacheRows<Cache> &rows, int64_t count, Prefetch<Cache> &next) {
    keys = rows.row(0);
    keyStride = rows.rowStride();
    if (count < kBlockKeys) {
      keys = copyRows(keys, keyStride, count, size, copies.data());
      keyStride = size;
    }
    if constexpr (!Limbs::kIsBf16)
      for (int64_t j = 0; j < kBlockKeys; ++j) {
        convertKey(j);
        if (j % 4 == 3)
          next.advance();
      }
  }

  /// Takes `count` values. Those of before are gone.
  void takeValues(const CacheRows<Cache> &rows, int64_t count, Prefetch<Cache> &next) {
    const Element *values = rows.row(0);
    int64_t stride = rows.rowStride();
    if (count < kBlockKeys) {
      values = copyRows(values, stride, count, valueSize, copies.data() + kBlockKeys * size);
      stride = valueSize;
    }
    for (int64_t j = 0; j < kBlockKeys; j += 2) {
      pairValues(values + j * stride, values + (j + 1) * stride, j);
      if (j % 4 == 2)
        next.advance();
    }
  }

private:
  static const Element *copyRows(const Element *from, int64_t stride, int64_t count, int64_t width, Element *to) {
    for (int64_t i = 0; i < kBlockKeys * width; ++i)
      to[i] = i < count * width ? from[i / width * stride + i % width] : Element(0);
    return to;
  }

  void convertKey(int64_t j) {
    const Element *from = keys + j * keyStride;
    uint16_t *to = keyMemory.data() + (j / kTileRows * keySteps() * kTileBytes + j % kTileRows * kTileRowBytes) / 2;
    for (int64_t d = 0; d < size; d += kTileDepth) {
      Words words[Limbs::kCount];
      Limbs::pair(Cache::load16(from + d), Cache::load16(from + d + kLanes), words);
      for (int limb = 0; limb < Limbs::kCount; ++limb, to += kTileBytes / 2)
        storeWords(to, words[limb]);
    }
  }

  /// Rows j and j + 1 of the values next to each other in the words of one row.
  void pairValues(const Element *first, const Element *second, int64_t j) const {
    uint16_t *to =
        valueMemory.data() +
        (j / kTileDepth * valueColumns() * Limbs::kCount * kTileBytes + j / 2 % kTileRows * kTileRowBytes) / 2;
    if constexpr (Limbs::kIsBf16) {
      for (int64_t d = 0; d < valueSize; d += kTileDepth, to += kTileBytes)
        interleave(first + d, second + d, to, to + kTileBytes / 2);
      return;
    }
    for (int64_t d = 0; d < valueSize; d += kLanes) {
      Words words[Limbs::kCount];
      Limbs::pair(Cache::load16(first + d), Cache::load16(second + d), words);
      for (int limb = 0; limb < Limbs::kCount; ++limb, to += kTileBytes / 2)
        storeWords(to, words[limb]);
    }
  }

  static void interleave(const void *first, const void *second, uint16_t *low, uint16_t *high) {
    __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
    _mm512_store_si512(low, _mm512_unpacklo_epi16(a, b));
    _mm512_store_si512(high, _mm512_unpackhi_epi16(a, b));
  }

  static void storeWords(uint16_t *to, Words words) { __builtin_memcpy(to, &words, sizeof words); }

  int64_t size, valueSize;
  Scratch<Element> copies;
  Scratch<uint16_t> keyMemory, valueMemory;
  const Element *keys = nullptr;
  int64_t keyStride = 0;
};

} // namespace

#endif // __AMX_BF16__
#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_CACHE_TILES_H
