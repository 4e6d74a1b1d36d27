// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys and values as they are kept, and their way into rows of floats.

#ifndef HONE_RUNTIME_CPU_KERNELS_ATTENTION_CACHE_H
#define HONE_RUNTIME_CPU_KERNELS_ATTENTION_CACHE_H

#include "../vector.h"
#include "problem.h"

namespace {

struct F32Cache {
  using Element = float;
  static constexpr bool kIsFloat = true;
  static Vector load16(const float *from) { return load(from); }
  static float load1(const float *from) { return *from; }
};

struct F16Cache {
  using Element = _Float16;
  static constexpr bool kIsFloat = false;
  static Vector load16(const _Float16 *from) { return loadHalves(from); }
  static float load1(const _Float16 *from) { return static_cast<float>(*from); }
};

struct Bf16Cache {
  using Element = uint16_t;
  static constexpr bool kIsFloat = false;
  static Vector load16(const uint16_t *from) {
    typedef uint16_t Halves __attribute__((ext_vector_type(16)));
    typedef uint32_t Words __attribute__((ext_vector_type(16)));
    Words words = __builtin_convertvector(loadAs<Halves>(from), Words) << 16;
    return loadAs<Vector>(&words);
  }
  static float load1(const uint16_t *from) {
    uint32_t word = static_cast<uint32_t>(*from) << 16;
    return loadAs<float>(&word);
  }
};

struct I8Cache {
  using Element = int8_t;
  static constexpr bool kIsFloat = false;
  static Vector load16(const int8_t *from) {
    typedef int8_t Bytes __attribute__((ext_vector_type(16)));
    return __builtin_convertvector(loadAs<Bytes>(from), Vector);
  }
  static float load1(const int8_t *from) { return *from; }
};

/// Rows [first, first + count) of one sequence and head of a key or value tensor.
template <typename Cache> class CacheRows {
public:
  using Element = typename Cache::Element;

  CacheRows(const hone_tensor &tensor, const hone_tensor &scales, int64_t sequence, int64_t head, int64_t first)
      : data(static_cast<const Element *>(tensor.data) + offsetOf(tensor, sequence, head, first)),
        stride(tensor.strides[2]), step(tensor.strides[3]), size(tensor.sizes[3]) {
    if (isAbsent(scales))
      return;
    scale = {floats(scales) + sequence * scales.strides[0] + head * scales.strides[1] + first * scales.strides[2],
             scales.strides[2]};
  }

  /// True where the rows can be read as they are: floats next to each other.
  bool isReady() const { return Cache::kIsFloat && step == 1; }
  const float *floatRows() const { return reinterpret_cast<const float *>(data); }
  int64_t rowStride() const { return stride; }

  const uint8_t *rowBytes(int64_t j) const { return reinterpret_cast<const uint8_t *>(data + j * stride); }
  /// Lines of 64 bytes that hold a row, or none where its elements lie apart.
  int64_t rowLines() const { return step == 1 ? (size * static_cast<int64_t>(sizeof(Element)) + 63) / 64 : 0; }

  /// Writes `count` rows as floats, `width` elements each; what the rows lack is 0.
  void copy(int64_t count, float *to, int64_t width) const {
    for (int64_t j = 0; j < count; ++j)
      copyRow(data + j * stride, scale.data ? scale[j] : 1.0f, to + j * width, width);
  }

private:
  void copyRow(const Element *from, float factor, float *to, int64_t width) const {
    int64_t d = 0;
    if (step == 1)
      for (; d + kLanes <= size; d += kLanes)
        store(to + d, Cache::load16(from + d) * factor);
    for (; d < size; ++d)
      to[d] = Cache::load1(from + d * step) * factor;
    for (; d < width; ++d)
      to[d] = 0;
  }

  const Element *data;
  int64_t stride, step, size;
  Row scale = {nullptr, 0};
};

/// Asks for the keys and values of the next block, a few lines at a time between the calculations of this one: memory is
/// waited for as little as the machine allows when neither rests.
template <typename Cache> class Prefetch {
public:
  /// `rows` rows of both, to be asked for by `calls` calls of `advance`.
  Prefetch(const CacheRows<Cache> &keys, const CacheRows<Cache> &values, int64_t rows, int64_t calls)
      : sources{keys, values}, rows(rows),
        linesPerCall((rows * (keys.rowLines() + values.rowLines()) + calls - 1) / calls) {}

  void advance() {
    for (int64_t left = linesPerCall; left > 0 && row < rows; --left) {
      __builtin_prefetch(sources[source].rowBytes(row) + line * 64, 0, 2);
      if (++line < sources[source].rowLines())
        continue;
      line = 0;
      row += source;
      source ^= 1;
    }
  }

private:
  CacheRows<Cache> sources[2];
  int64_t rows, linesPerCall, row = 0, line = 0;
  int source = 0;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_ATTENTION_CACHE_H
