// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of 8 and 4 bits of which two of every four inputs are kept, and how they become dense: what is not kept gets
// the code of the zero point, which means 0. packing/pack_sparse.h has the layout.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_WEIGHT_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_WEIGHT_H

#include "packed_layer.h"
#include "quantized_dot.h"
#include "quantized_weight.h"

namespace {

/// Inputs of a line of indices, and of the part of it that two bits of each byte are for.
constexpr int64_t kIndexInputs = 32, kEightInputs = 8, kIndexEights = kIndexInputs / kEightInputs;

/// A line of values has the kept elements of kEights times eight inputs, four bytes an output each.
struct SparseU8 {
  static constexpr int kEights = 1, kBits = 8, kZero = U8Codes::kZero;
  static void load(const uint8_t *from, Words *eights) { eights[0] = loadAs<Words>(from); }
};

struct SparseU4 {
  static constexpr int kEights = 2, kBits = 4, kZero = U4Codes::kZero;
  static void load(const uint8_t *from, Words *eights) {
    auto bytes = loadAs<Words>(from);
    eights[0] = bytes & 0x0f0f0f0f;
    eights[1] = (bytes >> 4) & 0x0f0f0f0f;
  }
};

#ifdef __AVX512BW__
/// For two indices, first + 4 · second, which of the bytes 0 and 1 goes where in four; 128 where none does.
struct SpreadTable {
  alignas(64) uint8_t places[16][4];

  constexpr SpreadTable() : places() {
    for (int key = 0; key < 16; ++key)
      for (int i = 0; i < 4; ++i)
        places[key][i] = i == key >> 2 ? 1 : i == (key & 3) ? 0 : 128;
  }
};
constexpr SpreadTable kSpread;

/// Two quads, each `dropped` but where the indices of its two kept bytes say: there it differs by `kept`, which has two
/// bytes of the first quad and two of the second.
inline void spread(Words kept, Words index, Words dropped, Words *quads) {
  // A permutation looks at the lowest four bits, a shuffle of bytes at sixteen bytes, those of four outputs.
  auto table = loadAs<__m512i>(kSpread.places);
  __m512i outputs = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0), keys = (__m512i)(index | index >> 6);
  __m512i first = _mm512_or_si512(_mm512_permutexvar_epi32(keys, table), outputs);
  __m512i second = _mm512_or_si512(_mm512_permutexvar_epi32(_mm512_srli_epi32(keys, 16), table),
                                   _mm512_or_si512(outputs, _mm512_set1_epi8(2)));
  quads[0] = (Words)_mm512_shuffle_epi8((__m512i)kept, first) ^ dropped;
  quads[1] = (Words)_mm512_shuffle_epi8((__m512i)kept, second) ^ dropped;
}
#else
/// Two quads, each `dropped` but where the indices of its two kept bytes say: there it differs by `kept`, which has two
/// bytes of the first quad and two of the second.
inline void spread(Words kept, Words index, Words dropped, Words *quads) {
  auto place = [&](uint32_t at) { return ((kept >> at) & 0xff) << (((index >> at) & 3) * 8); };
  quads[0] = dropped ^ place(0) ^ place(8);
  quads[1] = dropped ^ place(16) ^ place(24);
}
#endif

/// The operands of such a weight. Unpacked, a step is a line of four inputs, as ByteCodes has it.
template <typename Codes> struct SparseQuantizedWeight {
  static constexpr bool kIsUnpacked = true;
  static constexpr int64_t kLines = kIndexEights / Codes::kEights; // of values for a line of indices
  static constexpr int64_t kIndexSteps = kIndexInputs / 4;

  const uint8_t *values, *indices;
  int64_t valueBytes, indexBytes;           // from panel to panel
  int64_t panels, indexLines, lines, group; // lines as unpacked
  WeightScales scales;
  Outliers outliers; // none

  SparseQuantizedWeight(const hone::kernels::SparseQuantized::Planes &planes, int64_t group)
      : values(static_cast<const uint8_t *>(planes.values.data)),
        indices(static_cast<const uint8_t *>(planes.indices.data)), valueBytes(panelBytesOf(planes.values)),
        indexBytes(panelBytesOf(planes.indices)), panels(planes.indices.sizes[0]), indexLines(planes.indices.sizes[1]),
        lines(indexLines * kIndexSteps), group(group),
        scales(QuantizedWeight(planes.values, planes.scales, planes.zeros, group).scales) {}

  const uint8_t *valuesAt(int64_t panel, int64_t line) const {
    return values + panel * valueBytes + line * kLines * kLineBytes;
  }
  const uint8_t *indicesAt(int64_t panel, int64_t line) const {
    return indices + panel * indexBytes + line * kLineBytes;
  }
  int64_t groupOf(int64_t line) const { return group > 0 ? line * kIndexInputs / group : 0; }

  /// The quads of four inputs each that a line of indices is for; `zero` is the code of the zero point of each output.
  void unpackLine(int64_t panel, int64_t line, Words zero, Words *quads) const {
    const uint8_t *from = valuesAt(panel, line);
    auto index = loadAs<Words>(indicesAt(panel, line));
    Words dropped = zero * 0x01010101u;
    for (int64_t i = 0; i < kLines; ++i, from += kLineBytes) {
      Words eights[Codes::kEights];
      Codes::load(from, eights);
      prefetchWeights(from);
      for (int e = 0; e < Codes::kEights; ++e, index >>= 2, quads += 2)
        spread(eights[e] ^ dropped, index & 0x03030303u, dropped, quads);
    }
    prefetchWeights<kLines>(indicesAt(panel, line));
  }

  /// Writes the steps of a slice, whose first and count are multiples of those of a line of indices; panels
  /// `panelBytes` apart.
  void unpack(const Slice &slice, uint8_t *to, int64_t panelBytes) const {
    int64_t line = slice.step / kIndexSteps, end = line + slice.steps / kIndexSteps;
    for (; line < end; ++line, to += kIndexSteps * kLineBytes)
      for (int64_t p = 0; p < slice.width; ++p) {
        int64_t panel = slice.panel + p * slice.panelStride;
        Words quads[kIndexSteps];
        unpackLine(panel, line, zeroOf(panel, line), quads);
        __builtin_memcpy(to + p * panelBytes, quads, sizeof quads);
      }
  }

  Words zeroOf(int64_t panel, int64_t line) const {
    return __builtin_convertvector(scales.zero(groupOf(line), panel, Codes::kZero), Words);
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_WEIGHT_H
