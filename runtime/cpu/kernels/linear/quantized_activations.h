// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations rounded to integers of 8 or 16 bits, with one scale for each row and chunk of inputs.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_ACTIVATIONS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_ACTIVATIONS_H

#include "../parallel_for.h"
#include "packed_layer.h"
#include "packed_rows.h"
#include "quantized_dot.h"

namespace {

/// Inputs that share a scale: the group of the weights, and where there is none as many as keep integer sums exact in
/// f32.
inline int64_t chunkInputs(int64_t group, int64_t bits) { return group > 0 ? group : bits == 16 ? 128 : 512; }

/// Rows of limbs, int8_t or int16_t. A limb of 16 bits is the integer itself, in the order 0 2 1 3 within each four; of two
/// limbs of 8 bits, integer = 256 · first + second, the second plane lies `planeStride` after the first.
template <typename Limb> class QuantizedActivations {
public:
  /// `spareRows` more may be read after the last one; they hold anything.
  QuantizedActivations(const hone_tensor &x, int64_t rows, int64_t inputs, int64_t chunk, int64_t bits,
                       int64_t spareRows)
      : chunk(chunk), bits(bits), inputs(inputs), stride(oddLineBytes(inputs * sizeof(Limb)) / sizeof(Limb)),
        limbCount(bits == 16 && sizeof(Limb) == 1 ? 2 : 1), rows(rows + spareRows), chunks(ceilDivide(inputs, chunk)),
        limbs((rows + spareRows) * stride * limbCount), scales(rows * chunks), sums(rows * chunks) {
    int64_t given = x.sizes[x.rank - 1];
    parallelFor(rows, rows * inputs > 1 << 15, [&](int64_t r) {
      for (int64_t c = 0; c < chunks; ++c)
        quantize(rowOf(x, r), given, r, c);
    });
  }

  const Limb *row(int64_t r) const { return limbs.data() + r * stride; }
  const float *rowScales(int64_t r) const { return scales.data() + r * chunks; }
  /// Sums of the integers of each chunk.
  const float *rowSums(int64_t r) const { return sums.data() + r * chunks; }

  const int64_t chunk, bits, inputs, stride, limbCount;
  const int64_t rows, chunks; // rows with the spare ones
  int64_t planeStride() const { return rows * stride; }

private:
  void quantize(Row x, int64_t given, int64_t r, int64_t c) const {
    constexpr int64_t most = 512;
    float copied[most];
    int32_t integers[most];
    int64_t first = c * chunk, count = smaller(chunk, inputs - first);
    const float *values = x.data + first;
    if (x.stride != 1 || first + count > given) {
      for (int64_t i = 0; i < count; ++i)
        copied[i] = first + i < given ? x[first + i] : 0.0f;
      values = copied;
    }
    float largest = magnitude(values, count), limit = bits == 16 ? 127.0f * 256 : 127.0f;
    float factor = largest > 0 ? limit / largest : 0.0f;
    int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i) {
      integers[i] = static_cast<int32_t>(__builtin_roundevenf(values[i] * factor));
      sum += integers[i];
    }
    scales.data()[r * chunks + c] = largest / limit;
    sums.data()[r * chunks + c] = static_cast<float>(sum);
    writeLimbs(integers, count, limbs.data() + r * stride + first);
  }

  /// Magnitudes compare as the integers of their bits do, and integers have one order.
  static float magnitude(const float *values, int64_t count) {
    int32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < count; ++i) {
      int32_t bits = loadAs<int32_t>(values + i) & 0x7fffffff;
      largest = bits > largest ? bits : largest;
    }
    return loadAs<float>(&largest);
  }

  void writeLimbs(const int32_t *integers, int64_t count, Limb *to) const {
    if constexpr (sizeof(Limb) == 2) {
      for (int64_t i = 0; i < count; i += 4)
        for (int64_t j = 0; j < 4; ++j)
          to[i + j] = static_cast<Limb>(integers[i + (j < 2 ? 2 * j : 2 * j - 3)]);
      return;
    }
    if (limbCount == 1) {
      for (int64_t i = 0; i < count; ++i)
        to[i] = static_cast<Limb>(integers[i]);
      return;
    }
    Limb *second = to + planeStride();
    for (int64_t i = 0; i < count; ++i) {
      second[i] = static_cast<Limb>(integers[i]);
      to[i] = static_cast<Limb>((integers[i] + 128) >> 8);
    }
  }

  Scratch<Limb> limbs;
  Scratch<float> scales, sums;
};

/// What blocks take the sums of a chunk's integers as: where floats hold the sums of products exactly, products with zero
/// points are subtracted from those as floats.
template <typename Limb> using SumOf = __type_pack_element<sizeof(Limb) == 1, int32_t, float>;

/// Limbs of blocks of `height` rows, the last one lower, [limb][block][word][row of the block]; a word has as many
/// limbs as fill 32 bits. Scales and sums of chunks likewise, [block][chunk][row of the block].
template <typename Limb> class PackedLimbs {
public:
  using Sum = SumOf<Limb>;

  PackedLimbs(const QuantizedActivations<Limb> &rows, int64_t count, int64_t height)
      : words(rows.inputs / kWordLimbs), planeWords(count * words), chunks(rows.chunks),
        memory(planeWords * rows.limbCount), packedScales(count * chunks), packedMinus(count * chunks) {
    int64_t blocks = ceilDivide(count, height);
    parallelFor(blocks, planeWords > 1 << 15, [&](int64_t block) {
      packChunks(rows, block * height, smaller(height, count - block * height));
      for (int64_t limb = 0; limb < rows.limbCount; ++limb) {
        int64_t first = block * height;
        packRows(memory.data() + limb * planeWords + first * words, smaller(height, count - first), words,
                 [&](int64_t r, int64_t word) {
                   return loadAs<Vector>(rows.row(first + r) + limb * rows.planeStride() + word * kWordLimbs);
                 });
      }
    });
  }

  /// The block of `rows` rows that begins at row `first`, from `input` on.
  const Limb *block(int64_t first, int64_t rows, int64_t input) const {
    return reinterpret_cast<const Limb *>(memory.data() + first * words) + input * rows;
  }
  /// Distance of the planes, in limbs.
  int64_t planeStride() const { return planeWords * kWordLimbs; }

  /// What the rows of such a block have for the chunks from `chunk` on: scales, and sums of integers, negated.
  const float *scales(int64_t first, int64_t rows, int64_t chunk) const {
    return packedScales.data() + first * chunks + chunk * rows;
  }
  const Sum *minus(int64_t first, int64_t rows, int64_t chunk) const {
    return packedMinus.data() + first * chunks + chunk * rows;
  }

  static constexpr int64_t kWordLimbs = sizeof(float) / sizeof(Limb);

private:
  void packChunks(const QuantizedActivations<Limb> &from, int64_t first, int64_t rows) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        int64_t to = first * chunks + chunk * rows + r;
        packedScales.data()[to] = from.rowScales(first + r)[chunk];
        packedMinus.data()[to] = static_cast<Sum>(-from.rowSums(first + r)[chunk]);
      }
  }

  int64_t words, planeWords, chunks;
  Scratch<float> memory, packedScales;
  Scratch<Sum> packedMinus;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_ACTIVATIONS_H
