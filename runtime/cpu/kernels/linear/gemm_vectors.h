// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GEMM (large M) of floating-point weights by vector registers; formats without arithmetic are converted to f32 first.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_VECTORS_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_VECTORS_H

#include "../../bf16_rate.h"
#include "dense_activations.h"
#include "dense_block.h"
#include "gemm_layer.h"

namespace {

/// Packed weights of a dense format. Formats that do not calculate with what they load become floats first.
template <typename Format> class DenseWeight {
public:
  /// What is multiplied, and how many steps of it a step is.
  using Target = __type_pack_element<Format::kUnpacks, Format, F32Format>;
  static constexpr int64_t kTargetSteps = Format::kUnpacks ? Format::kStepWords : 1;
  static constexpr bool kIsUnpacked = Format::kUnpacks;

  explicit DenseWeight(const hone_tensor &weight)
      : panels(weight.sizes[0]), steps(weight.sizes[1]), data(static_cast<const uint8_t *>(weight.data)) {}

  const uint8_t *at(int64_t panel, int64_t step) const { return data + (panel * steps + step) * Format::kBytes; }

  /// Writes `count` steps from `step` on as `Target` has them.
  void unpack(int64_t panel, int64_t step, int64_t count, float *to) const {
    for (int64_t end = step + count; step < end; ++step, to += kTargetSteps * Target::kStepWords * kLanes) {
      Format::unpack(at(panel, step), to);
      prefetchWeights(at(panel, step));
    }
  }

  int64_t panels, steps;

private:
  const uint8_t *data;
};

/// Sums of a block of rows, of weights of any format.
struct VectorSums {
  alignas(64) float data[kDenseRows][kDensePanels][kLanes];

  float *lanes(int64_t panel, int64_t row) { return data[row][panel]; }
  Vector at(int64_t panel, int64_t row) const { return load(data[row][panel]); }
};

/// Weights have `panels` and `steps`; a step is kTargetSteps of the format `Target`, as which it lies `at` a panel and
/// step, or is unpacked, an N-tile at a time.
template <typename Weights> class VectorEngine {
public:
  using Target = typename Weights::Target;
  static constexpr int64_t kStepWords = Weights::kTargetSteps * Target::kStepWords;
  static constexpr int64_t kPanels = kDensePanels, kStepInputs = kStepWords * Target::kWordInputs;
  static constexpr int64_t kL1Steps = INT64_MAX / 2; // all: products are compute-bound
  static constexpr int64_t kSliceInputs = 1024;      // of what is between two layers
  static constexpr int64_t kPartBytes = 13 << 17;    // of a L2 cache of 2 MiB
  /// Whether what a layer finishes at a time is whole steps of the next.
  static constexpr bool kTakesNTiles = kPanels * kLanes % kStepInputs == 0;

  using Sums = VectorSums;

  explicit VectorEngine(const Weights &weights) : panels(weights.panels), steps(weights.steps), weights(weights) {}

  /// Converted rows of a part fill half of a L2 cache of 2 MiB.
  static GemmLimits limits(int64_t rows) {
    return {evenHeight(rows, kDenseRows), larger(1024 / kStepWords, 1), 256, 128};
  }
  static int64_t blockBytes(int64_t rows, int64_t steps) { return rows * steps * kStepWords * 4; }

  static void convert(const hone_tensor &x, int64_t row, int64_t rows, int64_t step, int64_t steps, uint8_t *to) {
    packWords<Target>(x, row, rows, step * kStepWords, steps * kStepWords, reinterpret_cast<float *>(to));
  }

  /// Outputs of `panels` panels as inputs of a block that has `steps`, from input 16 · `panel` on.
  static void convertSums(uint8_t *block, int64_t rows, int64_t panel, int64_t panels, int64_t steps,
                          const Sums &sums) {
    auto *words = reinterpret_cast<float *>(block);
    int64_t first = panel * kLanes / Target::kWordInputs, end = steps * kStepWords;
    if constexpr (Target::kWordInputs == 1) {
      for (int64_t p = 0; p < panels; ++p, first += kLanes)
        packRows(words + first * rows, rows, smaller(kLanes, end - first),
                 [&](int64_t r, int64_t) { return sums.at(p, r); });
    } else {
      static_assert(Target::kWordInputs == kPanels);
      packRows(words + first * rows, rows, smaller(kLanes, end - first), [&](int64_t r, int64_t) {
        float inputs[2 * kLanes] = {};
        for (int64_t p = 0; p < panels; ++p)
          store(inputs + p * kLanes, sums.at(p, r));
        return Target::words(inputs);
      });
    }
  }

  static int64_t betweenBytes(int64_t rows, int64_t steps) { return blockBytes(rows, steps); }

  /// Zeros for inputs after those of so many panels: weights may be filled up by more than the panels of a layer before
  /// are.
  static void finishInputs(uint8_t *block, int64_t rows, int64_t count, int64_t steps) {
    auto *words = reinterpret_cast<float *>(block);
    for (int64_t i = count * kLanes / Target::kWordInputs * rows; i < steps * kStepWords * rows; ++i)
      words[i] = 0;
  }

  class Worker {
  public:
    Worker(const VectorEngine &engine, const GemmTiling &division)
        : engine(engine), unpacked(Weights::kIsUnpacked ? kPanels * division.sliceSteps * kStepBytes / 4 : 0) {}

    void select(int64_t panel, int64_t count, int64_t step, int64_t some) {
      steps = some;
      width = count;
      if constexpr (Weights::kIsUnpacked) {
        unpack(panel, step);
      } else {
        panelBytes = engine.steps * kStepBytes;
        from = engine.weights.at(panel, step);
      }
    }

    template <typename Prefetcher>
    void multiply(const uint8_t *x, int64_t rows, BlockShare share, bool accumulates, Sums &sums,
                  const Prefetcher &prefetcher) const {
      prefetcher.prefetch(0, 1);
      DenseOperands operands = {from,
                                panelBytes,
                                kLanes,
                                steps * Weights::kTargetSteps,
                                weightPrefetch(share),
                                reinterpret_cast<const float *>(x),
                                sums.lanes(0, 0),
                                kPanels * kLanes,
                                kPanels * kLanes,
                                accumulates};
      runPanels<DenseBlock<Target>, kDenseSums, kDenseRows, kPanels>(width, rows, operands);
    }

  private:
    static constexpr int64_t kStepBytes = Weights::kTargetSteps * Target::kBytes;

    /// The first block prefetches its own weights. While the others are multiplied, the next N-tile is prefetched, as
    /// many bytes at each step: one block alone takes weights faster than memory delivers them.
    WeightPrefetch weightPrefetch(BlockShare share) const {
      if (Weights::kIsUnpacked)
        return {from, 0, 0};
      if (share.index == 0)
        return {from + kWeightsL2Distance, kStepBytes, kPanelStagger};
      int64_t stepBytes = ceilDivide(kStepBytes, share.count - 1);
      return {from + share.panelsToNext * panelBytes + (share.index - 1) * steps * stepBytes, stepBytes, 0};
    }

    void unpack(int64_t panel, int64_t step) {
      panelBytes = steps * kStepBytes;
      for (int64_t p = 0; p < width; ++p)
        engine.weights.unpack(panel + p, step, steps, unpacked.data() + p * panelBytes / 4);
      from = reinterpret_cast<const uint8_t *>(unpacked.data());
    }

    const VectorEngine &engine;
    int64_t width = 0, steps = 0, panelBytes = 0;
    const uint8_t *from = nullptr;
    Scratch<float> unpacked;
  };

  int64_t panels, steps;

private:
  Weights weights;
};

/// Where FMA multiplies faster than dot products of bf16, calls `body(make)`, where make(weight) is the engine of a
/// `Weight` of bf16 as `Widened`, of f32, and returns true. Up to kIndependentRows rows keep the results of GEMV.
template <typename Widened, typename Weight, typename Body> bool withWidenedBf16(int64_t rows, const Body &body) {
#if defined(__AVX512BF16__) && !defined(__AMX_TILE__)
  if (rows > kIndependentRows && !hone::cpu::hasFastBf16Products()) {
    body([](const Weight &weight) { return VectorEngine<Widened>(Widened(weight)); });
    return true;
  }
#else
  (void)rows, (void)body;
#endif
  return false;
}

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_GEMM_VECTORS_H
