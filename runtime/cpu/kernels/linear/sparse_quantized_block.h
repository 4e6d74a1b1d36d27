// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few rows of y by weights of few bits of which two of every four inputs are kept, with dot products of bytes. A product of a kept
// level q and its activation i is (q - z)(i + 128) - 128 (q - z): the instruction takes one signed and one unsigned byte,
// and what is to be subtracted is the same for all rows. So a zero point costs nothing, and what is not kept adds nothing.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_BLOCK_H

#ifdef __AVX512VNNI__

#include "layer.h"
#include "quantized_activations.h"
#include "sparse_levels.h"

namespace {

// Sums in registers beside what four panels have of a step, and the rows of a single panel.
constexpr int kSparseLevelSums = 12, kSparseLevelRows = 16;

/// Digits of a few rows plus 128: [line of indices][row][digit][32 inputs].
class BiasedDigits {
public:
  BiasedDigits(const QuantizedActivations &rows, int64_t count)
      : lineBytes(count * rows.digitCount * kIndexInputs), memory(rows.inputs / kIndexInputs * lineBytes) {
    for (int64_t r = 0; r < count; ++r)
      for (int64_t d = 0; d < rows.digitCount; ++d) {
        const Digit *from = rows.row(r) + d * rows.planeStride();
        uint8_t *to = memory.data() + (r * rows.digitCount + d) * kIndexInputs;
        for (int64_t k = 0; k < rows.inputs; k += kIndexInputs, to += lineBytes)
          for (int64_t i = 0; i < kIndexInputs; ++i)
            to[i] = static_cast<uint8_t>(from[k + i] + 128);
      }
  }

  const uint8_t *data() const { return memory.data(); }

private:
  int64_t lineBytes;
  Scratch<uint8_t> memory;
};

/// Operands of a block; panels are `apart` from each other.
template <typename Levels> struct SparseLevelOperands {
  const SparseLevelWeight<Levels> &weight;
  int64_t panel, apart, chunkLines;
  const uint8_t *x;
  const float *xScales;
  int64_t chunks; // distance of rows in xScales
  float *y;
  int64_t yStride, columns;
};

template <typename Levels, int DIGITS> struct SparseLevelBlock {
  /// y[ROWS, columns] = x[ROWS, inputs] · weight.
  template <int ROWS, int PANELS> static void run(const SparseLevelOperands<Levels> &o) {
    Vector totals[ROWS][PANELS] = {};
    WeightScales scales = o.weight.scales.from(0, o.panel, o.apart);
    const uint8_t *x = o.x;
    int64_t chunk = 0;
    for (int64_t line = 0; line < o.weight.indexLines; line += o.chunkLines, ++chunk) {
      Integers sums[ROWS][PANELS][DIGITS] = {}, excess[PANELS] = {};
      Words zeros[PANELS];
      for (int p = 0; p < PANELS; ++p)
        zeros[p] = __builtin_convertvector(scales.zero(chunk, p, Levels::kZero), Words) * 0x01010101u;
      for (int64_t i = line, end = smaller(line + o.chunkLines, o.weight.indexLines); i < end; ++i) {
        addLine<ROWS, PANELS>(o, i, zeros, x, sums, excess);
        x += ROWS * DIGITS * kIndexInputs;
      }
      for (int p = 0; p < PANELS; ++p) {
        Vector scale = scales.scale(chunk, p);
        for (int r = 0; r < ROWS; ++r)
          totals[r][p] += join(sums[r][p], excess[p]) * (scale * o.xScales[r * o.chunks + chunk]);
      }
    }
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p) {
        int64_t column = p * o.apart * kLanes;
        storeColumns(o.y + r * o.yStride + column, totals[r][p], o.columns - column);
      }
  }

private:
  static Vector join(const Integers (&sums)[DIGITS], Integers excess) {
    Vector sum = __builtin_convertvector(sums[0] - excess, Vector);
    if constexpr (DIGITS == 2)
      sum = sum * 256.0f + __builtin_convertvector(sums[1] - excess, Vector);
    return sum;
  }

  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void
  addLine(const SparseLevelOperands<Levels> &o, int64_t line, const Words (&zeros)[PANELS], const uint8_t *x,
          Integers (&sums)[ROWS][PANELS][DIGITS], Integers (&excess)[PANELS]) {
    using Weight = SparseLevelWeight<Levels>;
    const uint8_t *values = o.weight.valuesAt(o.panel, line), *indices = o.weight.indicesAt(o.panel, line);
    int64_t lines = o.apart * o.weight.indexLines;
    Words index[PANELS];
    for (int p = 0; p < PANELS; ++p) {
      index[p] = loadAs<Words>(indices + p * lines * kLineBytes);
      askForWeights<Weight::kLines>(indices + p * lines * kLineBytes, p);
    }
#pragma clang loop unroll(disable)
    for (int64_t i = 0; i < Weight::kLines; ++i, values += kLineBytes) {
      Words eights[PANELS][Levels::kEights];
      for (int p = 0; p < PANELS; ++p) {
        const uint8_t *from = values + p * lines * Weight::kLines * kLineBytes;
        Levels::load(from, eights[p]);
        askForWeights(from, p);
      }
      for (int e = 0; e < Levels::kEights; ++e, x += kEightInputs)
        for (int p = 0; p < PANELS; ++p) {
          addEight<ROWS, PANELS>(eights[p][e], zeros[p], index[p], x, sums, excess[p], p);
          index[p] >>= 2;
        }
    }
  }

  /// Eight inputs of a panel: four kept levels of each output pick four of eight activations.
  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void addEight(Words levels, Words zero, Words index, const uint8_t *x,
                                                      Integers (&sums)[ROWS][PANELS][DIGITS], Integers &excess, int p) {
    __m512i kept = _mm512_sub_epi8((__m512i)levels, (__m512i)zero);
    auto pick = (__m512i)((index & 0x03030303) | 0x04040000);
    excess = (Integers)_mm512_dpbusd_epi32((__m512i)excess, _mm512_set1_epi8(-128), kept);
    for (int r = 0; r < ROWS; ++r)
      for (int d = 0; d < DIGITS; ++d) {
        __m512i eight = _mm512_set1_epi64(loadAs<int64_t>(x + (r * DIGITS + d) * kIndexInputs));
        sums[r][p][d] = (Integers)_mm512_dpbusd_epi32((__m512i)sums[r][p][d], _mm512_shuffle_epi8(eight, pick), kept);
      }
  }
};

/// A few rows, each panel from its first input to its last; for PackedLayer.
template <typename Levels> class SparseLevelKernel {
public:
  SparseLevelKernel(const hone_tensor &x, const SparseLevelWeight<Levels> &weight, int64_t rows, int64_t bits)
      : weight(weight), steps(weight.lines), panels(weight.panels),
        activations(x, rows, weight.indexLines * kIndexInputs, chunkInputs(weight.group, bits), bits, 0),
        digits(activations, rows) {}

  static int64_t mostRows(int64_t bits) { return bits == 16 ? kSparseLevelRows / kMostDigits : kSparseLevelRows; }

  int64_t blockRows() const { return kSparseLevelRows / activations.digitCount; }
  static int64_t blockHeight(int64_t rows) { return rows; }
  int64_t width(int64_t rows) const { return widthOf(rows * activations.digitCount, kSparseLevelSums, 1); }
  int64_t sliceSteps(int64_t) const { return steps; }

  class Worker {
  public:
    explicit Worker(const SparseLevelKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      const QuantizedActivations &x = kernel.activations;
      SparseLevelOperands<Levels> operands = {kernel.weight,
                                              slice.panel,
                                              slice.apart,
                                              x.chunk / kIndexInputs,
                                              kernel.digits.data(),
                                              x.rowScales(0),
                                              x.chunks,
                                              y,
                                              yStride,
                                              columns};
      if (x.digitCount == kMostDigits)
        runDigits<kMostDigits>(rows, slice.width, operands);
      else
        runDigits<1>(rows, slice.width, operands);
    }

  private:
    template <int DIGITS>
    static void runDigits(int64_t rows, int64_t width, const SparseLevelOperands<Levels> &operands) {
      runPanels<SparseLevelBlock<Levels, DIGITS>, kSparseLevelSums / DIGITS, kSparseLevelRows / DIGITS>(width, rows,
                                                                                                        operands);
    }

    const SparseLevelKernel &kernel;
    Slice slice = {};
  };

  const SparseLevelWeight<Levels> &weight;
  int64_t steps, panels;
  QuantizedActivations activations;
  BiasedDigits digits;
};

} // namespace

#endif // __AVX512VNNI__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_BLOCK_H
