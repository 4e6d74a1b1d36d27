// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many rows of floating-point weights by vector registers.

#ifndef HONE_RUNTIME_CPU_KERNELS_LINEAR_VECTOR_ENGINE_H
#define HONE_RUNTIME_CPU_KERNELS_LINEAR_VECTOR_ENGINE_H

#include "band_layer.h"
#include "dense_activations.h"
#include "dense_block.h"

namespace {

/// A step is one of the format's. Formats that do not calculate with what they load become floats first, a unit at a time.
template <typename Format> class VectorEngine {
public:
  static constexpr int64_t kPanels = kDensePanels, kStepInputs = Format::kStepWords * Format::kWordInputs;

  struct Sums {
    alignas(64) float lanes[kDenseRows][kDensePanels][kLanes];

    Vector at(int64_t panel, int64_t row) const { return load(lanes[row][panel]); }
  };

  explicit VectorEngine(const hone_tensor &weight)
      : panels(weight.sizes[0]), steps(weight.sizes[1]), data(static_cast<const uint8_t *>(weight.data)) {}

  /// Converted rows of a part fill half of a second-level cache of 2 MiB.
  static BandLimits limits(int64_t rows) { return {evenHeight(rows, kDenseRows), 1024 / Format::kStepWords, 256, 128}; }
  static int64_t blockBytes(int64_t rows, int64_t steps) { return rows * steps * Format::kStepWords * 4; }

  static void convert(const hone_tensor &x, int64_t row, int64_t rows, int64_t step, int64_t steps, uint8_t *to) {
    packWords<Format>(x, row, rows, step * Format::kStepWords, steps * Format::kStepWords,
                      reinterpret_cast<float *>(to));
  }

  /// Outputs of `panels` panels as inputs of a block that has `steps`, from input 16 · `panel` on: `read(row, p)` gives those of a row
  /// and of the p-th of them.
  template <typename Read>
  static void convertSums(uint8_t *block, int64_t rows, int64_t panel, int64_t panels, int64_t steps, Read read) {
    auto *words = reinterpret_cast<float *>(block);
    int64_t first = panel * kLanes / Format::kWordInputs, end = steps * Format::kStepWords;
    if constexpr (Format::kWordInputs == 1) {
      for (int64_t p = 0; p < panels; ++p, first += kLanes)
        packRows(words + first * rows, rows, smaller(kLanes, end - first),
                 [&](int64_t r, int64_t) { return read(r, p); });
    } else {
      static_assert(Format::kWordInputs == kPanels);
      packRows(words + first * rows, rows, smaller(kLanes, end - first), [&](int64_t r, int64_t) {
        float inputs[2 * kLanes] = {};
        for (int64_t p = 0; p < panels; ++p)
          store(inputs + p * kLanes, read(r, p));
        return Format::words(inputs);
      });
    }
  }

  /// Zeros for inputs from `first` on, a multiple of 16: weights may be filled up by more than the panels of a layer before are.
  static void clearInputs(uint8_t *block, int64_t rows, int64_t first, int64_t steps) {
    auto *words = reinterpret_cast<float *>(block);
    for (int64_t i = first / Format::kWordInputs * rows; i < steps * Format::kStepWords * rows; ++i)
      words[i] = 0;
  }

  class Worker {
  public:
    Worker(const VectorEngine &engine, const BandDivision &division)
        : engine(engine), unpacked(Format::kUnpacks ? kPanels * division.sliceSteps * kUnpackedBytes / 4 : 0) {}

    void select(int64_t panel, int64_t count, int64_t step, int64_t some) {
      steps = some;
      width = count;
      panelBytes = engine.steps * Format::kBytes;
      from = engine.data + panel * panelBytes + step * Format::kBytes;
      if constexpr (Format::kUnpacks)
        unpack();
    }

    template <typename Ahead>
    void multiply(const uint8_t *x, int64_t rows, BlockShare, bool accumulates, Sums &sums, const Ahead &ahead) const {
      ahead.ask(0, 1);
      DenseOperands operands = {from,
                                panelBytes,
                                kLanes,
                                steps,
                                reinterpret_cast<const float *>(x),
                                sums.lanes[0][0],
                                kPanels * kLanes,
                                kPanels * kLanes,
                                accumulates};
      if constexpr (Format::kUnpacks) {
        operands.steps *= Format::kStepWords;
        runPanels<DenseBlock<F32Format>, kDenseSums, kDenseRows, kPanels>(width, rows, operands);
      } else {
        runPanels<DenseBlock<Format>, kDenseSums, kDenseRows, kPanels>(width, rows, operands);
      }
    }

  private:
    static constexpr int64_t kUnpackedBytes = Format::kStepWords * F32Format::kBytes;

    void unpack() {
      auto *to = reinterpret_cast<uint8_t *>(unpacked.data());
      for (int64_t panel = 0; panel < width; ++panel)
        for (int64_t step = 0; step < steps; ++step) {
          const uint8_t *packed = from + panel * panelBytes + step * Format::kBytes;
          Format::unpack(packed, reinterpret_cast<float *>(to + (panel * steps + step) * kUnpackedBytes));
          prefetchAhead(packed, kWeightPrefetch);
        }
      from = to;
      panelBytes = steps * kUnpackedBytes;
    }

    const VectorEngine &engine;
    int64_t width = 0, steps = 0, panelBytes = 0;
    const uint8_t *from = nullptr;
    Scratch<float> unpacked;
  };

  int64_t panels, steps;

private:
  const uint8_t *data;
};

} // namespace

#endif // HONE_RUNTIME_CPU_KERNELS_LINEAR_VECTOR_ENGINE_H
