// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed f32, f16 and bf16 weights, and feed-forward blocks of them.

#include "dense_activations.h"
#include "dense_block.h"
#include "entries.h"
#include "gemm_split.h"
#include "gemm_tiles.h"
#include "gemm_vectors.h"
#include "gemv_tiles.h"
#include "packed_layer.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// GEMV by vector registers: each panel from its first input to its last, for all rows.
template <typename Format> class DenseKernel {
public:
  DenseKernel(const hone_tensor &x, const hone_tensor &weight, int64_t rows)
      : weight(static_cast<const uint8_t *>(weight.data)), steps(weight.sizes[1]), panels(weight.sizes[0]),
        height(evenHeight(rows, kDenseRows)), activations(x, rows, steps * Format::kStepWords, height) {}

  static int64_t blockRows() { return kDenseGemvRows; }
  int64_t blockHeight(int64_t) const { return height; }
  static int64_t width(int64_t rows) { return widthOf(rows, kDenseSums, kDensePanels); }
  int64_t sliceSteps(int64_t rows) const { return rows <= kDenseRows ? steps : kDenseGemvSliceBytes / Format::kBytes; }

  class Worker {
  public:
    explicit Worker(const DenseKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      if (slice.taskRows <= kDenseRows)
        return run<1>(row, rows, y, yStride, columns);
      if constexpr (kDenseGemvBlocks > 1)
        run<kDenseGemvBlocks>(row, rows, y, yStride, columns);
    }

  private:
    /// Where BLOCKS blocks take turns, each prefetches its share of the next slice.
    template <int64_t BLOCKS>
    void run(int64_t row, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      constexpr int64_t share = kDenseGemvSliceBytes / BLOCKS, stepBytes = Format::kBytes / BLOCKS;
      int64_t panelBytes = kernel.steps * Format::kBytes;
      const uint8_t *weight = kernel.weight + slice.panel * panelBytes + slice.step * Format::kBytes;
      WeightPrefetch prefetch = {weight + kWeightsL2Distance, stepBytes, kPanelStagger};
      if (BLOCKS > 1)
        prefetch = {weight + kDenseGemvSliceBytes + row / kernel.height % BLOCKS * share, stepBytes, 0};
      DenseOperands operands = {weight,
                                slice.panelStride * panelBytes,
                                slice.panelStride * kLanes,
                                slice.steps,
                                prefetch,
                                kernel.activations.block(row, rows, slice.step * Format::kStepWords),
                                y,
                                yStride,
                                columns,
                                /*accumulate=*/BLOCKS > 1 && slice.step != 0};
      runPanels<DenseBlock<Format, stepBytes>, kDenseSums, kDenseRows>(slice.width, rows, operands);
    }

    const DenseKernel &kernel;
    Slice slice = {};
  };

  const uint8_t *weight;
  int64_t steps, panels, height;
  DenseActivations<Format> activations;
};

/// Calls `body(make)` with what makes the engine of a weight for GEMM (large M), or returns false for GEMV.
template <typename Format, typename Body> bool withEngine(int64_t rows, const Body &body) {
#ifdef __AMX_TILE__
  if constexpr (__is_same(Format, Bf16Format)) {
    if (rows <= kTileRows)
      return false;
    body([rows](const hone_tensor &weight) { return TileEngine<Bf16Weights>(Bf16Weights(weight), rows); });
    return true;
  } else {
    using Panels = SplitPanels<Format>;
    if (rows >= SplitEngine<Panels>::fewestRows()) {
      body([rows](const hone_tensor &weight) { return SplitEngine<Panels>(Panels(weight), rows); });
      return true;
    }
  }
#endif
  if (rows <= kDenseGemvRows)
    return false;
  if constexpr (__is_same(Format, Bf16Format))
    if (withWidenedBf16<DenseWeight<WidenedBf16Format>, hone_tensor>(rows, body))
      return true;
  body([](const hone_tensor &weight) { return VectorEngine<DenseWeight<Format>>(DenseWeight<Format>(weight)); });
  return true;
}

template <typename Kernel>
void runPacked(const hone_tensor &x, const hone_tensor &weight, const hone_tensor &y, const Epilogue &epilogue) {
  Kernel kernel(x, weight, countRows(y));
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

template <typename Elements, typename FORMAT> struct Layer {
  using Format = FORMAT;

  static const hone_tensor &weightOf(const hone_tensor *planes, const typename Format::Ints &) {
    return kernels::planesOf<Format>(planes).elements;
  }

  template <typename Body> static bool withEngine(const hone_tensor &, int64_t rows, const Body &body) {
    return hone::cpu::HONE_ISA_NAMESPACE::withEngine<Elements>(rows, body);
  }

  static void runGemv(const hone_tensor &x, const hone_tensor &weight, const hone_tensor &y, const Epilogue &epilogue) {
#ifdef __AMX_TILE__
    if constexpr (__is_same(Elements, Bf16Format))
      if (countRows(y) >= TileRowsKernel::kFewestRows)
        return runPacked<TileRowsKernel>(x, weight, y, epilogue);
#endif
    runPacked<DenseKernel<Elements>>(x, weight, y, epilogue);
  }
};

} // namespace

#define HONE_KERNEL HONE_DEFINE_LAYER
#include "hone/kernels/cpu/dense.def"
#undef HONE_KERNEL

} // namespace hone::cpu::HONE_ISA_NAMESPACE
