// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Quantized weights: integer sums over a chunk of inputs stay in registers, then are added to the f32 sums of y under
// the scales of both sides.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_BLOCK_H

#include "columns.h"
#include "quantized_dot.h"
#include "quantized_weight.h"

namespace {

/// Operands of a block; strides count elements, panelBytes and panelColumns are the distance of two panels.
struct QuantizedOperands {
  const uint8_t *weight;
  int64_t panelBytes, panelColumns, chunkSteps, steps;
  WeightScales scales;
  const Limb *x; // the words of all rows of the block
  int64_t planeStride;
  const float *xScales;  // [chunk][row of the block]
  const int32_t *xMinus; // sums of the integers of x, negated: [chunk][row of the block]
  float *y;
  int64_t yStride, columns;
  bool accumulate, isCached; // isCached: the L2 or the L3 cache may hold the weight since the last call
};

template <typename Codes, int LIMBS> struct QuantizedBlock {
  /// y[ROWS, columns] = x[ROWS, steps] · weight, plus what y held where `accumulate`.
  template <int ROWS, int PANELS> static void run(const QuantizedOperands &o) {
    Vector totals[ROWS][PANELS];
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p)
        totals[r][p] =
            o.accumulate ? loadColumns(o.y + r * o.yStride + p * o.panelColumns, o.columns - p * o.panelColumns) : 0;
    const uint8_t *weight = o.weight;
    const Limb *x = o.x;
    int64_t chunk = 0;
    for (int64_t left = o.steps; left > 0; left -= o.chunkSteps, ++chunk) {
      Integers sums[ROWS][PANELS][LIMBS] = {};
      if constexpr (LIMBS == 1)
        subtractZeros<ROWS, PANELS>(o, chunk, sums);
      int64_t count = left < o.chunkSteps ? left : o.chunkSteps;
      addChunk<ROWS, PANELS>(o, weight, x, count, sums);
      weight += count * Codes::kStepBytes;
      x += count * Codes::kInputs * ROWS;
      // The integer sums need all registers: totals stay in memory, where the compiler would move both back and forth.
      if constexpr (2 * ROWS * PANELS * LIMBS > kQuantizedSums)
        __asm__ volatile("" : : "r"(totals) : "memory");
      addTotals<ROWS, PANELS>(o, chunk, sums, totals);
    }
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p)
        storeColumns(o.y + r * o.yStride + p * o.panelColumns, totals[r][p], o.columns - p * o.panelColumns);
  }

private:
  static constexpr int64_t kWordLimbs = sizeof(int32_t) / sizeof(Limb);

  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void addChunk(const QuantizedOperands &o, const uint8_t *weight, const Limb *x,
                                                      int64_t steps, Integers (&sums)[ROWS][PANELS][LIMBS]) {
    for (int64_t step = 0; step < steps; ++step) {
      for (int p = 0; p < PANELS; ++p)
        o.isCached ? Codes::prefetchCached(weight + p * o.panelBytes) : Codes::prefetch(weight + p * o.panelBytes, p);
#pragma unroll
      for (int q = 0; q < Codes::kQuads; ++q)
        addQuad<ROWS, PANELS>(o, weight, x, q, sums);
      weight += Codes::kStepBytes;
      x += Codes::kInputs * ROWS;
    }
  }

  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void addQuad(const QuantizedOperands &o, const uint8_t *weight, const Limb *x,
                                                     int q, Integers (&sums)[ROWS][PANELS][LIMBS]) {
    Line codes[PANELS];
    for (int p = 0; p < PANELS; ++p)
      codes[p] = Codes::quad(weight + p * o.panelBytes, q);
    for (int r = 0; r < ROWS; ++r)
      for (int d = 0; d < LIMBS; ++d)
        for (int p = 0; p < PANELS; ++p)
          Quad(codes[p]).template add<ROWS>(sums[r][p][d], x + d * o.planeStride + 4 * q * ROWS + r * kWordLimbs);
  }

  /// Integer sums begin with what zero points take from them, which is exact.
  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void subtractZeros(const QuantizedOperands &o, int64_t chunk,
                                                           Integers (&sums)[ROWS][PANELS][LIMBS]) {
    const int32_t *minus = o.xMinus + chunk * ROWS;
    if (o.scales.zeros) {
      for (int p = 0; p < PANELS; ++p) {
        Integers zero = o.scales.zero(chunk, p);
        for (int r = 0; r < ROWS; ++r)
          sums[r][p][0] = zero * minus[r];
      }
      return;
    }
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p)
        sums[r][p][0] = Codes::kZero * minus[r];
  }

  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void addTotals(const QuantizedOperands &o, int64_t chunk,
                                                       const Integers (&sums)[ROWS][PANELS][LIMBS],
                                                       Vector (&totals)[ROWS][PANELS]) {
    for (int p = 0; p < PANELS; ++p) {
      Vector scale = o.scales.scale(chunk, p);
      for (int r = 0; r < ROWS; ++r) {
        int64_t of = chunk * ROWS + r;
        Vector sum = __builtin_convertvector(sums[r][p][0], Vector);
        if constexpr (LIMBS == 2) {
          sum = sum * 256.0f + __builtin_convertvector(sums[r][p][1], Vector);
          sum = __builtin_elementwise_fma(o.scales.zero(chunk, p, Codes::kZero),
                                          Vector(static_cast<float>(o.xMinus[of])), sum);
        }
        totals[r][p] = __builtin_elementwise_fma(sum, scale * o.xScales[of], totals[r][p]);
      }
    }
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_BLOCK_H
