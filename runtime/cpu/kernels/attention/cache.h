// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys and values as they are kept, and their way into floats: values as rows, keys transposed. A cache says what
// sixteen words of 32 bits hold, and how many elements a word of a cache in blocks has (packing/cache_blocks.h).

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_CACHE_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_CACHE_H

#include "../transpose.h"
#include "problem.h"

namespace {

struct F32Cache {
  using Element = float;
  static constexpr int kBlockWord = 1;
  static Vector load16(const float *from) { return load(from); }
  static float load1(const float *from) { return *from; }
  template <int INDEX> static Vector part(Words words) { return asFloats(words); }
};

struct F16Cache {
  using Element = _Float16;
  static constexpr int kBlockWord = 1;
  static Vector load16(const _Float16 *from) { return loadHalves(from); }
  static float load1(const _Float16 *from) { return static_cast<float>(*from); }
  template <int INDEX> static Vector part(Words words) {
    typedef uint16_t Halves __attribute__((ext_vector_type(16)));
    auto halves = __builtin_convertvector(words >> (16 * INDEX), Halves);
    return loadHalves(&halves);
  }
};

struct Bf16Cache {
  using Element = uint16_t;
  static constexpr int kBlockWord = 2;
  static Vector load16(const uint16_t *from) {
    typedef uint16_t Halves __attribute__((ext_vector_type(16)));
    return asFloats(__builtin_convertvector(loadAs<Halves>(from), Words) << 16);
  }
  static float load1(const uint16_t *from) {
    uint32_t word = static_cast<uint32_t>(*from) << 16;
    return loadAs<float>(&word);
  }
  template <int INDEX> static Vector part(Words words) {
    return asFloats(INDEX == 0 ? words << 16 : words & 0xffff0000u);
  }
};

/// Rows [first, first + count) of one sequence and head of a key or value tensor.
template <typename Cache> class CacheRows {
public:
  using Element = typename Cache::Element;
  static constexpr bool kIsFloat = sizeof(Element) == sizeof(float);
  static constexpr int kPerWord = sizeof(float) / sizeof(Element);
  static constexpr int64_t kPerBlock = kLanes * kPerWord; // elements that are transposed at once

  CacheRows(const hone_tensor &tensor, int64_t sequence, int64_t head, int64_t first)
      : data(static_cast<const Element *>(tensor.data) + offsetOf(tensor, sequence, head, first)),
        stride(tensor.strides[2]), step(tensor.strides[3]), size(tensor.sizes[3]) {}

  /// True where the elements of a row lie next to each other.
  bool isDense() const { return step == 1; }
  const Element *row(int64_t j) const { return data + j * stride; }
  /// True where rows can be read as they are: floats next to each other, a multiple of 16.
  bool areFloats() const { return kIsFloat && step == 1 && size % kLanes == 0; }
  const float *floatRow(int64_t j) const { return reinterpret_cast<const float *>(data + j * stride); }
  int64_t rowStride() const { return stride; }

  const uint8_t *rowBytes(int64_t j) const { return reinterpret_cast<const uint8_t *>(data + j * stride); }
  int64_t strideBytes() const { return stride * static_cast<int64_t>(sizeof(Element)); }
  /// Lines of 64 bytes that hold a row, or none where its elements are strided.
  int64_t rowLines() const { return step == 1 ? (size * static_cast<int64_t>(sizeof(Element)) + 63) / 64 : 0; }

  /// Prefetches the first `count` rows.
  void prefetch(int64_t count) const {
    for (int64_t j = 0, lines = rowLines(); j < count; ++j)
      for (int64_t line = 0; line < lines; ++line)
        __builtin_prefetch(rowBytes(j) + 64 * line, 0, 2);
  }

  /// Writes rows [first, first + count) as floats, `width` elements each; what the rows lack is 0.
  void copy(int64_t first, int64_t count, float *to, int64_t width) const {
    for (int64_t j = 0; j < count; ++j)
      copyRow(data + (first + j) * stride, to + j * width, width);
  }

  /// True where `transposeBlock` may be called.
  bool canTranspose() const { return step == 1 && size % kPerBlock == 0; }

  /// to[d][j] = row first + j, element d, for 16 rows and the elements of block `block`; rows from `count` on repeat
  /// the last one.
  void transposeBlock(int64_t first, int64_t count, int64_t block, float *to, int64_t toStride) const {
    Vector words[kLanes];
    for (int64_t j = 0; j < kLanes; ++j)
      words[j] = loadAs<Vector>(data + (first + smaller(j, count - 1)) * stride + block * kPerBlock);
    transpose(words);
    to += block * kPerBlock * toStride;
    for (int64_t word = 0; word < kLanes; ++word)
      storeParts<0>(loadAs<Words>(&words[word]), to + word * kPerWord * toStride, toStride);
  }

private:
  template <int INDEX> static void storeParts(Words words, float *to, int64_t toStride) {
    store(to + INDEX * toStride, Cache::template part<INDEX>(words));
    if constexpr (INDEX + 1 < kPerWord)
      storeParts<INDEX + 1>(words, to, toStride);
  }

  void copyRow(const Element *from, float *to, int64_t width) const {
    int64_t d = 0;
    if (step == 1)
      for (; d + kLanes <= size; d += kLanes)
        store(to + d, Cache::load16(from + d));
    for (; d < size; ++d)
      to[d] = Cache::load1(from + d * step);
    for (; d < width; ++d)
      to[d] = 0;
  }

  const Element *data;
  int64_t stride, step, size;
};

/// to[d][j] = from[j][d] for 16 rows of floats and a multiple of 16 elements; rows from `count` on repeat the last one.
inline void transposeFloats(const float *from, int64_t fromStride, int64_t count, int64_t size, float *to,
                            int64_t toStride) {
  for (int64_t d = 0; d < size; d += kLanes) {
    Vector rows[kLanes];
    for (int64_t j = 0; j < kLanes; ++j)
      rows[j] = load(from + smaller(j, count - 1) * fromStride + d);
    transpose(rows);
    for (int64_t i = 0; i < kLanes; ++i)
      store(to + (d + i) * toStride, rows[i]);
  }
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_CACHE_H
