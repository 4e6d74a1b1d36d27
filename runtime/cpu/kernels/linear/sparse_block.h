// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products with 2:4 weights by gathered activations: GEMV (small M), and GEMM of bf16 pairs. Sums of a block of rows stay in registers, its
// rows share the indices.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_BLOCK_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_BLOCK_H

#include "columns.h"
#include "packed_layer.h"
#include "sparse_formats.h"

namespace {

/// Operands of a block; panels have a distance of `panelStride`, x is [step][row][words of a chunk].
template <typename Format> struct SparseOperands {
  const SparseWeight<Format> &weight;
  int64_t panel, panelStride, steps;
  const float *x;
  float *y;
  int64_t yStride, columns;
};

template <typename Format> struct SparseBlock {
  /// y[ROWS, columns] = x[ROWS, steps] · weight.
  template <int ROWS, int PANELS> static void run(const SparseOperands<Format> &o) {
    using Weight = SparseWeight<Format>;
    Vector sums[ROWS][PANELS] = {};
    const uint8_t *values = o.weight.valuesAt(o.panel, 0), *indices = o.weight.indicesAt(o.panel, 0);
    const float *x = o.x;
    for (int64_t step = 0; step < o.steps; ++step) {
      Words words[PANELS];
      for (int p = 0; p < PANELS; ++p) {
        const uint8_t *from = indices + p * o.panelStride * o.weight.indexBytes;
        words[p] = loadAs<Words>(from);
        prefetchWeights<kLinesOfIndices>(from, p);
      }
      // Unrolled, the steps would be mixed until sums no longer fit the registers.
#pragma clang loop unroll(disable)
      for (int64_t i = 0; i < kChunkSteps; ++i) {
        addStep<ROWS, PANELS>(o, values + i * Format::kBytes, words, x + i * Format::kStepWords, sums);
        for (int p = 0; p < PANELS; ++p)
          words[p] >>= kNextStep;
      }
      values += Weight::kValueBytes;
      indices += Weight::kLineBytes;
      x += ROWS * kChunkWords;
    }
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p)
        storeColumns(o.y + r * o.yStride + p * o.panelStride * kLanes, sums[r][p],
                     o.columns - p * o.panelStride * kLanes);
  }

private:
  static constexpr int64_t kChunkWords = kChunkSteps * Format::kStepWords;

  template <int ROWS, int PANELS>
  __attribute__((always_inline)) static void addStep(const SparseOperands<Format> &o, const uint8_t *values,
                                                     const Words (&words)[PANELS], const float *x,
                                                     Vector (&sums)[ROWS][PANELS]) {
    typename Format::Weights weights[PANELS];
    for (int p = 0; p < PANELS; ++p) {
      const uint8_t *from = values + p * o.panelStride * o.weight.valueBytes;
      weights[p] = Format::load(from, words[p]);
      for (int line = 0; line < Format::kBytes; line += 64)
        prefetchWeights(from + line, p);
    }
    for (int r = 0; r < ROWS; ++r)
      for (int p = 0; p < PANELS; ++p)
        Format::add(sums[r][p], weights[p], x + r * kChunkWords);
  }
};

/// Rows of x as blocks of `height` rows take them: [block][step][row][words of a chunk], zeros where x has no more. A single row is not
/// copied where x has it so.
template <typename Format> class SparseActivations {
public:
  SparseActivations(const hone_tensor &x, int64_t rows, int64_t steps, int64_t height)
      : direct(findDirect(x, rows, steps)), rowWords(steps * kChunkWords), copy(direct ? 0 : rows * rowWords) {
    for (int64_t first = 0; !direct && first < rows; first += height)
      for (int64_t r = 0, end = smaller(height, rows - first); r < end; ++r)
        convertRow(rowOf(x, first + r), x.sizes[x.rank - 1], steps, end * kChunkWords,
                   copy.data() + first * rowWords + r * kChunkWords);
  }

  /// The block that begins with row `first`.
  const float *block(int64_t first) const { return direct ? direct : copy.data() + first * rowWords; }

private:
  static constexpr int64_t kChunkWords = kChunkSteps * Format::kStepWords;
  static constexpr bool kAreFloats = kChunkWords == kChunkInputs;

  static const float *findDirect(const hone_tensor &x, int64_t rows, int64_t steps) {
    bool isReady = kAreFloats && rows == 1 && x.sizes[x.rank - 1] == steps * kChunkInputs && rowOf(x, 0).stride == 1;
    return isReady ? rowOf(x, 0).data : nullptr;
  }

  static void convertRow(Row from, int64_t given, int64_t steps, int64_t stride, float *to) {
    for (int64_t step = 0; step < steps; ++step, to += stride) {
      float inputs[kChunkInputs] = {};
      for (int64_t k = 0; k < smaller(kChunkInputs, given - step * kChunkInputs); ++k)
        inputs[k] = from[step * kChunkInputs + k];
      if constexpr (kAreFloats)
        __builtin_memcpy(to, inputs, sizeof inputs);
      else
        store(to, Format::Target::words(inputs));
    }
  }

  const float *direct;
  int64_t rowWords;
  Scratch<float> copy;
};

/// Each panel from its first input to its last, for a block of rows; for PackedLayer.
template <typename Format> class SparseKernel {
public:
  SparseKernel(const hone_tensor &x, const SparseWeight<Format> &weight, int64_t rows)
      : weight(weight), steps(weight.steps), panels(weight.panels), height(evenHeight(rows, kSparseRows)),
        activations(x, rows, steps, height) {}

  static int64_t blockRows() { return kSparseRows; }
  int64_t blockHeight(int64_t) const { return height; }
  static int64_t width(int64_t rows) { return widthOf(rows, kSparseSums, 1); }
  int64_t sliceSteps(int64_t) const { return steps; }

  class Worker {
  public:
    explicit Worker(const SparseKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      SparseOperands<Format> operands = {
          kernel.weight, slice.panel, slice.panelStride, slice.steps, kernel.activations.block(row), y,
          yStride,       columns};
      runPanels<SparseBlock<Format>, kSparseSums, kSparseRows>(slice.width, rows, operands);
    }

  private:
    const SparseKernel &kernel;
    Slice slice = {};
  };

  const SparseWeight<Format> &weight;
  int64_t steps, panels, height;
  SparseActivations<Format> activations;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_SPARSE_BLOCK_H
