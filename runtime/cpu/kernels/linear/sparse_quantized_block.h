// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products with quantized 2:4 weights by dot products of bytes, for any number of rows. The product of a kept code q and its activation i
// is (q - z)(i + 128) - 128 (q - z): the instruction takes one signed and one unsigned byte, and what is to be subtracted is the same for
// all rows. So a zero point costs nothing, and what is not kept adds nothing.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_BLOCK_H

#ifdef __AVX512VNNI__

#include "packed_layer.h"
#include "quantized_activations.h"
#include "sparse_quantized_weight.h"

namespace {

// Sums in registers beside what four panels have of a step, and the rows of a single panel.
constexpr int kSparseQuantizedSums = 12, kSparseQuantizedRows = 16;

/// Limbs of rows plus 128, in blocks of `height` rows: [block][line of indices][row][limb][32 inputs].
class BiasedLimbs {
public:
  BiasedLimbs(const QuantizedActivations<int8_t> &rows, int64_t count, int64_t height)
      : rowBytes(rows.limbCount * rows.inputs), memory(count * rowBytes) {
    for (int64_t first = 0; first < count; first += height)
      for (int64_t r = 0, end = smaller(height, count - first); r < end; ++r)
        for (int64_t d = 0; d < rows.limbCount; ++d)
          convert(rows.row(first + r) + d * rows.planeStride(), rows.inputs,
                  memory.data() + first * rowBytes + (r * rows.limbCount + d) * kIndexInputs,
                  end * rows.limbCount * kIndexInputs);
  }

  /// The block that begins with row `first`.
  const uint8_t *block(int64_t first) const { return memory.data() + first * rowBytes; }

private:
  static void convert(const int8_t *from, int64_t inputs, uint8_t *to, int64_t lineBytes) {
    for (int64_t k = 0; k < inputs; k += kIndexInputs, to += lineBytes)
      for (int64_t i = 0; i < kIndexInputs; ++i)
        to[i] = static_cast<uint8_t>(from[k + i] + 128);
  }

  int64_t rowBytes;
  Scratch<uint8_t> memory;
};

/// Operands of a block; panels have a distance of `panelStride`.
template <typename Codes> struct SparseQuantizedOperands {
  const SparseQuantizedWeight<Codes> &weight;
  int64_t panel, panelStride, chunkLines;
  const uint8_t *x;
  const float *xScales;
  int64_t chunks; // distance of rows in xScales
  float *y;
  int64_t yStride, columns;
};

template <typename Codes, int LIMBS> struct SparseQuantizedBlock {
  /// y[ROWS, columns] = x[ROWS, inputs] · weight.
  template <int ROWS, int PANELS> static void run(const SparseQuantizedOperands<Codes> &o) {
    Vector totals[ROWS][PANELS] = {};
    WeightScales scales = o.weight.scales.from(0, o.panel, o.panelStride);
    const uint8_t *x = o.x;
    int64_t chunk = 0;
    for (int64_t line = 0; line < o.weight.indexLines; line += o.chunkLines, ++chunk) {
      Integers sums[ROWS][PANELS][LIMBS] = {}, excess[PANELS] = {};
      Words zeros[PANELS];
      for (int p = 0; p < PANELS; ++p)
        zeros[p] = __builtin_convertvector(scales.zero(chunk, p, Codes::kZero), Words) * 0x01010101u;
      for (int64_t i = line, end = smaller(line + o.chunkLines, o.weight.indexLines); i < end; ++i) {
        addLine<ROWS, PANELS>(o, i, zeros, x, sums, excess);
        x += ROWS * LIMBS * kIndexInputs;
      }
      for (int p = 0; p < PANELS; ++p) {
        Vector scale = scales.scale(chunk, p);
        for (int r = 0; r < ROWS; ++r)
          totals[r][p] = __builtin_elementwise_fma(merge(sums[r][p], excess[p]),
                                                   scale * o.xScales[r * o.chunks + chunk], totals[r][p]);
      }
    }
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p) {
        int64_t column = p * o.panelStride * kLanes;
        storeColumns(o.y + r * o.yStride + column, totals[r][p], o.columns - column);
      }
  }

private:
  static Vector merge(const Integers (&sums)[LIMBS], Integers excess) {
    Vector sum = __builtin_convertvector(sums[0] - excess, Vector);
    if constexpr (LIMBS == 2)
      sum = sum * 256.0f + __builtin_convertvector(sums[1] - excess, Vector);
    return sum;
  }

  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void
  addLine(const SparseQuantizedOperands<Codes> &o, int64_t line, const Words (&zeros)[PANELS], const uint8_t *x,
          Integers (&sums)[ROWS][PANELS][LIMBS], Integers (&excess)[PANELS]) {
    using Weight = SparseQuantizedWeight<Codes>;
    const uint8_t *values = o.weight.valuesAt(o.panel, line), *indices = o.weight.indicesAt(o.panel, line);
    int64_t valueBytes = o.panelStride * o.weight.valueBytes, indexBytes = o.panelStride * o.weight.indexBytes;
    Words index[PANELS];
    for (int p = 0; p < PANELS; ++p) {
      index[p] = loadAs<Words>(indices + p * indexBytes);
      prefetchWeights<Weight::kLines>(indices + p * indexBytes, p);
    }
#pragma clang loop unroll(disable)
    for (int64_t i = 0; i < Weight::kLines; ++i, values += kLineBytes) {
      Words eights[PANELS][Codes::kEights];
      for (int p = 0; p < PANELS; ++p) {
        const uint8_t *from = values + p * valueBytes;
        Codes::load(from, eights[p]);
        prefetchWeights(from, p);
      }
      for (int e = 0; e < Codes::kEights; ++e, x += kEightInputs)
        for (int p = 0; p < PANELS; ++p) {
          addEight<ROWS, PANELS>(eights[p][e], zeros[p], index[p], x, sums, excess[p], p);
          index[p] >>= 2;
        }
    }
  }

  /// Eight inputs of a panel: four kept codes of each output pick four of eight activations.
  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void addEight(Words codes, Words zero, Words index, const uint8_t *x,
                                                      Integers (&sums)[ROWS][PANELS][LIMBS], Integers &excess, int p) {
    __m512i kept = _mm512_sub_epi8((__m512i)codes, (__m512i)zero);
    auto pick = (__m512i)((index & 0x03030303) | 0x04040000);
    excess = (Integers)_mm512_dpbusd_epi32((__m512i)excess, _mm512_set1_epi8(-128), kept);
    for (int r = 0; r < ROWS; ++r)
      for (int d = 0; d < LIMBS; ++d) {
        __m512i eight = _mm512_set1_epi64(loadAs<int64_t>(x + (r * LIMBS + d) * kIndexInputs));
        sums[r][p][d] = (Integers)_mm512_dpbusd_epi32((__m512i)sums[r][p][d], _mm512_shuffle_epi8(eight, pick), kept);
      }
  }
};

/// GEMV: each panel from its first input to its last; for PackedLayer.
template <typename Codes> class SparseQuantizedKernel {
public:
  SparseQuantizedKernel(const hone_tensor &x, const SparseQuantizedWeight<Codes> &weight, int64_t rows, int64_t bits)
      : weight(weight), steps(weight.lines), panels(weight.panels),
        activations(x, rows, weight.indexLines * kIndexInputs, chunkInputs(weight.group, bits), bits, 0),
        height(evenHeight(rows, blockRows())), limbs(activations, rows, height) {}

  int64_t blockRows() const { return kSparseQuantizedRows / activations.limbCount; }
  int64_t blockHeight(int64_t) const { return height; }
  int64_t width(int64_t rows) const { return widthOf(rows * activations.limbCount, kSparseQuantizedSums, 1); }
  int64_t sliceSteps(int64_t) const { return steps; }

  class Worker {
  public:
    explicit Worker(const SparseQuantizedKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      const QuantizedActivations<int8_t> &x = kernel.activations;
      SparseQuantizedOperands<Codes> operands = {kernel.weight,
                                                 slice.panel,
                                                 slice.panelStride,
                                                 x.chunk / kIndexInputs,
                                                 kernel.limbs.block(row),
                                                 x.rowScales(row),
                                                 x.chunks,
                                                 y,
                                                 yStride,
                                                 columns};
      if (x.limbCount == 2)
        runLimbs<2>(rows, slice.width, operands);
      else
        runLimbs<1>(rows, slice.width, operands);
    }

  private:
    template <int LIMBS>
    static void runLimbs(int64_t rows, int64_t width, const SparseQuantizedOperands<Codes> &operands) {
      runPanels<SparseQuantizedBlock<Codes, LIMBS>, kSparseQuantizedSums / LIMBS, kSparseQuantizedRows / LIMBS>(
          width, rows, operands);
    }

    const SparseQuantizedKernel &kernel;
    Slice slice = {};
  };

  const SparseQuantizedWeight<Codes> &weight;
  int64_t steps, panels;
  QuantizedActivations<int8_t> activations;
  int64_t height;
  BiasedLimbs limbs;
};

} // namespace

#endif // __AVX512VNNI__
#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_QUANTIZED_BLOCK_H
