// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed f32, f16 and bf16 weights, and feed-forward blocks of them.

#include "../expert_kernels.h"
#include "../kernels.h"

#include "dense_activations.h"
#include "dense_block.h"
#include "experts.h"
#include "gemm_mlp.h"
#include "gemm_split.h"
#include "gemm_tiles.h"
#include "gemm_vectors.h"
#include "gemv_tiles.h"
#include "packed_layer.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// GEMV by vector registers: each panel from its first input to its last.
template <typename Format> class DenseKernel {
public:
  DenseKernel(const hone_tensor &x, const hone_tensor &weight, int64_t rows)
      : weight(static_cast<const uint8_t *>(weight.data)), steps(weight.sizes[1]), panels(weight.sizes[0]),
        activations(x, rows, steps * Format::kStepWords) {}

  static int64_t blockRows() { return kDenseRows; }
  static int64_t blockHeight(int64_t rows) { return rows; }
  static int64_t width(int64_t rows) { return widthOf(rows, kDenseSums, kDensePanels); }
  int64_t sliceSteps(int64_t) const { return steps; }

  class Worker {
  public:
    explicit Worker(const DenseKernel &kernel) : kernel(kernel) {}

    void select(const Slice &next) { slice = next; }

    void multiply(int64_t, int64_t rows, float *y, int64_t yStride, int64_t columns) const {
      int64_t panelBytes = kernel.steps * Format::kBytes;
      const uint8_t *weight = kernel.weight + slice.panel * panelBytes;
      DenseOperands operands = {weight,
                                slice.panelStride * panelBytes,
                                slice.panelStride * kLanes,
                                slice.steps,
                                {weight + kWeightsL2Distance, Format::kBytes, kPanelStagger},
                                kernel.activations.data(),
                                y,
                                yStride,
                                columns,
                                /*accumulate=*/false};
      runPanels<DenseBlock<Format>, kDenseSums, kDenseRows>(slice.width, rows, operands);
    }

  private:
    const DenseKernel &kernel;
    Slice slice = {};
  };

  const uint8_t *weight;
  int64_t steps, panels;
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
  } else if (rows >= SplitEngine<Format>::fewestRows()) {
    body([rows](const hone_tensor &weight) { return SplitEngine<Format>(weight, rows); });
    return true;
  }
#endif
  if (rows <= kDenseRows)
    return false;
  body([](const hone_tensor &weight) { return VectorEngine<DenseWeight<Format>>(DenseWeight<Format>(weight)); });
  return true;
}

template <typename Kernel>
void runPacked(const hone_tensor &x, const hone_tensor &weight, const hone_tensor &y, const Epilogue &epilogue) {
  Kernel kernel(x, weight, countRows(y));
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

template <typename Format>
void runLayer(const hone_tensor &x, const hone_tensor &weight, const hone_tensor &y, const Epilogue &epilogue) {
  auto runGemm = [&](auto make) {
    auto engine = make(weight);
    GemmLayer<decltype(engine)>(x, engine, y, epilogue).run();
  };
  if (withEngine<Format>(countRows(y), runGemm))
    return;
#ifdef __AMX_TILE__
  if constexpr (__is_same(Format, Bf16Format))
    if (countRows(y) >= TileRowsKernel::kFewestRows)
      return runPacked<TileRowsKernel>(x, weight, y, epilogue);
#endif
  runPacked<DenseKernel<Format>>(x, weight, y, epilogue);
}

/// Operands and attributes as kernels.h lists them.
template <typename Format> void runDense(const hone_tensor *operands, const int64_t *ints) {
  hone_tensor x = withRowAxis(operands[0]), y = withRowAxis(operands[5]);
  hone_tensor factor = withRowAxis(operands[3]), residual = withRowAxis(operands[4]);
  if (!isAbsent(y))
    runLayer<Format>(x, operands[1], y, {vectorOf(operands[2]), factor, residual, ints[0]});
}

/// Operands and attributes as kernels.h lists them.
template <typename Format> void runMlp(const hone_tensor *operands, const int64_t *ints) {
  MlpCall call(operands, ints, /*planes=*/1);
  auto withEngines = [&](const auto &body) {
    withEngine<Format>(countRows(call.y),
                       [&](auto make) { body([&](const hone_tensor *weight) { return make(*weight); }); });
  };
  runMlpCall(call, withEngines,
             [&](const hone_tensor &from, const hone_tensor *weight, const hone_tensor &to, const Epilogue &epilogue) {
               runLayer<Format>(from, *weight, to, epilogue);
             });
}

/// Floats for layers of experts.
template <typename Elements> struct DenseExperts : PanelPlanes<1> {
  static void runLayer(const hone_tensor &x, const hone_tensor *planes, const int64_t *, const hone_tensor &y,
                       const Epilogue &epilogue) {
    hone::cpu::HONE_ISA_NAMESPACE::runLayer<Elements>(x, *planes, y, epilogue);
  }
};

} // namespace

void expertHiddenF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<DenseExperts<F32Format>>(operands, ints);
}

void expertSumF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<DenseExperts<F32Format>>(operands, ints);
}

void expertHiddenF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<DenseExperts<F16Format>>(operands, ints);
}

void expertSumF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<DenseExperts<F16Format>>(operands, ints);
}

void expertHiddenBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<DenseExperts<Bf16Format>>(operands, ints);
}

void expertSumBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<DenseExperts<Bf16Format>>(operands, ints);
}

void packedLinearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runDense<F32Format>(operands, ints);
}

void packedLinearF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runDense<F16Format>(operands, ints);
}

void packedLinearBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runDense<Bf16Format>(operands, ints);
}

void packedMlpF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runMlp<F32Format>(operands, ints);
}

void packedMlpF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runMlp<F16Format>(operands, ints);
}

void packedMlpBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runMlp<Bf16Format>(operands, ints);
}

} // namespace hone::cpu::HONE_ISA_NAMESPACE
