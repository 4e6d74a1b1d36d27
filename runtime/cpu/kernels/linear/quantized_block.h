// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Quantized weights: integer sums over a chunk of inputs stay in registers, then are added to the f32 sums of y under
// the scales of both sides.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_BLOCK_H

#include "columns.h"
#include "quantized_activations.h"
#include "quantized_dot.h"
#include "quantized_weight.h"

namespace {

/// Operands of a block; strides count elements, panelBytes and panelColumns are the distance of two panels.
template <typename Limb> struct QuantizedOperands {
  const uint8_t *weight;
  int64_t panelBytes, panelColumns, chunkSteps, steps;
  WeightScales scales;
  const Limb *x; // the words of all rows of the block
  int64_t planeStride;
  const float *xScales;      // [chunk][row of the block]
  const SumOf<Limb> *xMinus; // sums of the integers of x, negated: [chunk][row of the block]
  float *y;
  int64_t yStride, columns;
  bool accumulate, isCached; // isCached: the L2 or the L3 cache may hold the weight since the last call
};

template <typename Codes, typename Dot, int LIMBS> struct QuantizedBlock {
  using Limb = typename Dot::Limb;
  using Operands = QuantizedOperands<Limb>;

  /// y[ROWS, columns] = x[ROWS, steps] · weight, plus what y held where `accumulate`.
  template <int ROWS, int PANELS> static void run(const Operands &o) {
    if (!o.accumulate)
      prefetchOutputs<ROWS, PANELS>(o);
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
      if constexpr (!kAreExact)
        subtractZeros<ROWS, PANELS>(o, chunk, sums);
      int64_t count = left < o.chunkSteps ? left : o.chunkSteps;
      addChunk<ROWS, PANELS>(o, weight, x, count, sums);
      weight += count * Codes::kStepBytes;
      x += count * Codes::kInputs * ROWS;
      // The integer sums need all registers: totals stay in memory, where the compiler would move both back and forth.
      if constexpr (2 * ROWS * PANELS * LIMBS > Dot::kSums)
        __asm__ volatile("" : : "r"(totals) : "memory");
      addTotals<ROWS, PANELS>(o, chunk, sums, totals);
    }
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p)
        storeColumns(o.y + r * o.yStride + p * o.panelColumns, totals[r][p], o.columns - p * o.panelColumns);
  }

private:
  static constexpr int64_t kWordLimbs = sizeof(int32_t) / sizeof(Limb);
  static constexpr bool kAreExact = __is_same(SumOf<Limb>, float);

  /// Where results are to be written: the large output of a GEMM is not in the cache.
  template <int ROWS, int PANELS> __attribute__((always_inline)) static void prefetchOutputs(const Operands &o) {
    if constexpr (ROWS > 1)
      for (int r = 0; r < ROWS; ++r)
        for (int p = 0; p < PANELS; ++p)
          __builtin_prefetch(o.y + r * o.yStride + p * o.panelColumns, 1);
  }

  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void addChunk(const Operands &o, const uint8_t *weight, const Limb *x,
                                                      int64_t steps, Integers (&sums)[ROWS][PANELS][LIMBS]) {
    if constexpr (Dot::kPairQuads == 0) {
      addSteps<ROWS, PANELS>(o, weight, x, steps, sums);
    } else if constexpr (Dot::kPairQuads < Codes::kQuads) {
      for (; steps > 0; --steps, weight += Codes::kStepBytes, x += Codes::kInputs * ROWS) {
        prefetchStep<PANELS>(o, weight);
#pragma unroll
        for (int q = 0; q < Codes::kQuads; q += Dot::kPairQuads) {
          typename Dot::Pairs pairs[ROWS][PANELS][LIMBS] = {};
#pragma unroll
          for (int i = 0; i < Dot::kPairQuads; ++i)
            addQuad<ROWS, PANELS>(o, weight, x, q + i, pairs);
          addPairs<ROWS, PANELS>(pairs, sums);
        }
      }
    } else {
      constexpr int64_t most = Dot::kPairQuads / Codes::kQuads;
      for (; steps > 0; steps -= most, weight += most * Codes::kStepBytes, x += most * Codes::kInputs * ROWS) {
        typename Dot::Pairs pairs[ROWS][PANELS][LIMBS] = {};
        addSteps<ROWS, PANELS>(o, weight, x, steps < most ? steps : most, pairs);
        addPairs<ROWS, PANELS>(pairs, sums);
      }
    }
  }

  template <int ROWS, int PANELS, typename Pairs>
  __attribute__((always_inline)) static void addPairs(const Pairs (&pairs)[ROWS][PANELS][LIMBS],
                                                      Integers (&sums)[ROWS][PANELS][LIMBS]) {
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p)
        for (int d = 0; d < LIMBS; ++d)
          sums[r][p][d] += Dot::sum(pairs[r][p][d]);
  }

  template <int PANELS>
  __attribute__((always_inline)) static void prefetchStep(const Operands &o, const uint8_t *weight) {
    for (int p = 0; p < PANELS; ++p)
      o.isCached ? Codes::prefetchCached(weight + p * o.panelBytes) : Codes::prefetch(weight + p * o.panelBytes, p);
  }

  template <int ROWS, int PANELS, typename Sums>
  __attribute__((always_inline)) static void addSteps(const Operands &o, const uint8_t *weight, const Limb *x,
                                                      int64_t steps, Sums (&sums)[ROWS][PANELS][LIMBS]) {
    for (int64_t step = 0; step < steps; ++step) {
      prefetchStep<PANELS>(o, weight);
#pragma unroll
      for (int q = 0; q < Codes::kQuads; ++q)
        addQuad<ROWS, PANELS>(o, weight, x, q, sums);
      weight += Codes::kStepBytes;
      x += Codes::kInputs * ROWS;
    }
  }

  template <int ROWS, int PANELS, typename Sums>
  __attribute__((always_inline)) static void addQuad(const Operands &o, const uint8_t *weight, const Limb *x, int q,
                                                     Sums (&sums)[ROWS][PANELS][LIMBS]) {
    typename Dot::Quad quads[PANELS];
    for (int p = 0; p < PANELS; ++p)
      quads[p] = typename Dot::Quad(Codes::quad(weight + p * o.panelBytes, q));
    for (int r = 0; r < ROWS; ++r)
      for (int d = 0; d < LIMBS; ++d)
        for (int p = 0; p < PANELS; ++p)
          quads[p].template add<ROWS>(sums[r][p][d], x + d * o.planeStride + 4 * q * ROWS + r * kWordLimbs);
  }

  /// Integer sums begin with what zero points take from them, which is exact.
  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void subtractZeros(const Operands &o, int64_t chunk,
                                                           Integers (&sums)[ROWS][PANELS][LIMBS]) {
    const SumOf<Limb> *minus = o.xMinus + chunk * ROWS;
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
  __attribute__((always_inline)) static void addTotals(const Operands &o, int64_t chunk,
                                                       const Integers (&sums)[ROWS][PANELS][LIMBS],
                                                       Vector (&totals)[ROWS][PANELS]) {
    for (int p = 0; p < PANELS; ++p) {
      Vector scale = o.scales.scale(chunk, p), zero = o.scales.zero(chunk, p, Codes::kZero);
      for (int r = 0; r < ROWS; ++r) {
        int64_t of = chunk * ROWS + r;
        Vector sum = __builtin_convertvector(sums[r][p][0], Vector);
        if constexpr (LIMBS == 2)
          sum = sum * 256.0f + __builtin_convertvector(sums[r][p][1], Vector);
        if constexpr (kAreExact)
          sum = __builtin_elementwise_fma(zero, Vector(o.xMinus[of]), sum);
        totals[r][p] = __builtin_elementwise_fma(sum, scale * o.xScales[of], totals[r][p]);
      }
    }
  }
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_QUANTIZED_BLOCK_H
