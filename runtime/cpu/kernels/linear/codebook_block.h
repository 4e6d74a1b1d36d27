// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMV (small M) by weights with codebooks: centroids are multiplied as they come out of the tables, four outputs a
// register, and sums are put in order once in the end.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_CODEBOOK_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_CODEBOOK_BLOCK_H

#include "codebook_weight.h"
#include "dense_activations.h"
#include "packed_layer.h"

namespace {

// Rows and panels whose sums, four registers each, stay in registers beside what is looked up. Where sixteen outputs
// are two registers not even those of one row and panel do, and go through the L1 cache once a step; of several rows
// those of a quarter do.
#ifdef __AVX512F__
constexpr int kCodebookSums = 6;
#else
constexpr int kCodebookSums = 4;
#endif

/// Four words, four times.
inline Vector repeat(const float *four) {
  typedef float Four __attribute__((ext_vector_type(4)));
  auto words = loadAs<Four>(four);
  return __builtin_shufflevector(words, words, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}

#ifdef __AVX512BF16__
constexpr int64_t kEightWords = 4; // of eight inputs

/// Sixteen pairs of a row's inputs are what products take.
inline void storeInputs(const float *inputs, float *to) { store(to, Bf16Format::words(inputs)); }

/// Adds the products of eight inputs, `x`, with four outputs.
inline void addPairs(Vector &sum, Words pairs, const float *x) {
  sum = (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)pairs, (__m512bh)repeat(x));
}
#else
constexpr int64_t kEightWords = 8;

/// Of each eight inputs those of even number come first.
inline void storeInputs(const float *inputs, float *to) {
  for (int64_t i = 0; i < 2; ++i, inputs += kLanes, to += kLanes) {
    Vector some = load(inputs);
    store(to, __builtin_shufflevector(some, some, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
  }
}

inline void addPairs(Vector &sum, Words pairs, const float *x) {
  sum += asFloats(pairs << 16) * repeat(x);
  sum += asFloats(pairs & 0xffff0000u) * repeat(x + 4);
}
#endif

/// Rows of x in the order of products, one after the other; inputs that x lacks are zeros.
class CodebookActivations {
public:
  CodebookActivations(const hone_tensor &x, int64_t rows, int64_t steps)
      : rowWords(steps * kStepWords), words(rows * rowWords) {
    int64_t given = x.sizes[x.rank - 1];
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t step = 0; step < steps; ++step)
        convert(rowOf(x, r), step * kStepInputs, given, words.data() + r * rowWords + step * kStepWords);
  }

  const float *row(int64_t r) const { return words.data() + r * rowWords; }

  static constexpr int64_t kStepInputs = 32, kStepWords = kStepInputs / 8 * kEightWords;

  const int64_t rowWords;

private:
  static void convert(Row from, int64_t first, int64_t given, float *to) {
    if (from.stride == 1 && first + kStepInputs <= given)
      return storeInputs(from.data + first, to);
    float inputs[kStepInputs] = {};
    for (int64_t k = 0; k < smaller(kStepInputs, given - first); ++k)
      inputs[k] = from[first + k];
    storeInputs(inputs, to);
  }

  Scratch<float> words;
};

/// Operands of a block; panelSteps and panelColumns are the distance of two panels.
template <typename Indices> struct CodebookOperands {
  const CodebookWeight<Indices> &weight;
  int64_t panel, panelStride;
  const float *x; // first row
  int64_t rowWords;
  float *y;
  int64_t yStride, columns;
};

template <typename Indices> struct CodebookBlock {
  using Weight = CodebookWeight<Indices>;

  /// y[ROWS, columns] = x[ROWS, inputs] · weight, without outliers. Where registers have 256 bits, several rows go
  /// through a panel once for each quarter, whose sums stay in registers then.
  template <int ROWS, int PANELS> static void run(const CodebookOperands<Indices> &o) {
    Vector sums[ROWS][PANELS][kQuarters] = {};
    if constexpr (kHasByQuarters && ROWS > 1) {
      for (int p = 0; p < PANELS; ++p)
        for (int quarter = 0; quarter < kQuarters; ++quarter)
          addQuarter<ROWS, PANELS>(o, p, quarter, sums);
    } else {
      const float *x = o.x;
      for (int64_t step = 0; step < o.weight.steps; ++step, x += CodebookActivations::kStepWords)
        for (int p = 0; p < PANELS; ++p)
          addStep<ROWS, PANELS>(o, p, step, x, sums);
    }
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p) {
        transposeQuads(sums[r][p]);
        int64_t column = p * o.panelStride * kLanes;
        storeColumns(o.y + r * o.yStride + column, (sums[r][p][0] + sums[r][p][1]) + (sums[r][p][2] + sums[r][p][3]),
                     o.columns - column);
      }
  }

private:
#ifdef __AVX512F__
  static constexpr bool kHasByQuarters = false;
#else
  static constexpr bool kHasByQuarters = true;
#endif

  template <int ROWS, int PANELS>
  static void addQuarter(const CodebookOperands<Indices> &o, int p, int quarter,
                         Vector (&sums)[ROWS][PANELS][kQuarters]) {
    int64_t panel = o.panel + p * o.panelStride;
    const uint8_t *from = o.weight.at(panel, 0), *tables = o.weight.tablesOf(panel);
    Vector own[ROWS] = {};
    const float *x = o.x;
    for (int64_t step = 0; step < o.weight.steps; ++step, from += Weight::kStepBytes) {
      if (quarter == 0)
        Weight::prefetch(from, p);
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        Words pairs[2];
        Weight::look(from, tables, quarter * kHalves + half, pairs);
        for (int part = 0; part < 2; ++part, x += kEightWords)
          for (int r = 0; r < ROWS; ++r)
            addPairs(own[r], pairs[part], x + r * o.rowWords);
      }
    }
    for (int r = 0; r < ROWS; ++r)
      sums[r][p][quarter] = own[r];
  }

  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void addStep(const CodebookOperands<Indices> &o, int p, int64_t step,
                                                     const float *x, Vector (&sums)[ROWS][PANELS][kQuarters]) {
    int64_t panel = o.panel + p * o.panelStride;
    const uint8_t *from = o.weight.at(panel, step), *tables = o.weight.tablesOf(panel);
    Weight::prefetch(from, p);
#pragma unroll
    for (int number = 0; number < kQuarters * kHalves; ++number) {
      Words pairs[2];
      Weight::look(from, tables, number, pairs);
      const float *inputs = x + number % kHalves * 2 * kEightWords;
      for (int r = 0; r < ROWS; ++r)
        for (int part = 0; part < 2; ++part)
          addPairs(sums[r][p][number / kHalves], pairs[part], inputs + r * o.rowWords + part * kEightWords);
    }
  }
};

/// GEMV: each panel from its first input to its last; for PackedLayer.
template <typename Indices> class CodebookKernel {
public:
  CodebookKernel(const hone_tensor &x, const CodebookWeight<Indices> &weight, int64_t rows)
      : weight(weight), steps(weight.steps), panels(weight.panels), activations(x, rows, steps),
        outliers(weight.outliers, x, rows) {}

  static int64_t blockRows() { return kCodebookSums; }
  static int64_t blockHeight(int64_t rows) { return smaller(rows, kCodebookSums); }
  static int64_t width(int64_t rows) { return widthOf(blockHeight(rows), kCodebookSums, 1); }
  int64_t sliceSteps(int64_t) const { return steps; }

  class Worker {
  public:
    explicit Worker(const CodebookKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) {
      slice = next;
      prefetchOutliers(kernel, slice);
    }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      CodebookOperands<Indices> operands = {
          kernel.weight, slice.panel, slice.panelStride, kernel.activations.row(row), kernel.activations.rowWords, y,
          yStride,       columns};
      runPanels<CodebookBlock<Indices>, kCodebookSums, kCodebookSums>(slice.width, rows, operands);
      addOutliers(kernel, slice, row, rows, y, yStride, columns);
    }

  private:
    const CodebookKernel &kernel;
    Slice slice = {};
  };

  const CodebookWeight<Indices> &weight;
  int64_t steps, panels;
  CodebookActivations activations;
  OutlierProducts outliers;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_CODEBOOK_BLOCK_H
