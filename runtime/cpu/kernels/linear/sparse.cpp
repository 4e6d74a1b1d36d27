// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed f32, f16 and bf16 weights of which two of every four inputs are kept. A few rows pick the activations
// that they multiply; for many the weights become dense, a unit at a time, in the cache.

#include "../expert_kernels.h"
#include "../kernels.h"

#include "experts.h"
#include "sparse_block.h"
#include "step_tiles.h"
#include "vector_engine.h"

namespace hone::cpu::HONE_LEVEL_NAMESPACE {
namespace {

template <typename Engine>
void runBand(const hone_tensor &x, const Engine &engine, const hone_tensor &y, const Epilogue &epilogue) {
  BandLayer<Engine>(x, engine, y, epilogue).run();
}

template <typename Kernel, typename Weight>
void runPacked(const hone_tensor &x, const Weight &weight, const hone_tensor &y, const Epilogue &epilogue) {
  Kernel kernel(x, weight, countRows(y));
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

template <typename Format>
void runLayer(const hone_tensor &x, const SparseWeight<Format> &weight, const hone_tensor &y,
              const Epilogue &epilogue) {
  int64_t rows = countRows(y);
#ifdef __AMX_TILE__
  if constexpr (__is_same(Format, SparseBf16)) {
    if (rows > kTileRows)
      return runBand(x, TileEngine<StepTiles<SparseWeight<Format>>>(StepTiles<SparseWeight<Format>>(weight), rows), y,
                     epilogue);
    using Kernel = StepTileRowsKernel<SparseWeight<Format>>;
    static_assert(kChunkInputs == kTileStepInputs); // a chunk is a tile
    if (rows >= Kernel::kFewestRows)
      return runPacked<Kernel>(x, weight, y, epilogue);
  }
#endif
  if (rows > kSparseRows)
    return runBand(x, VectorEngine<SparseWeight<Format>>(weight), y, epilogue);
  runPacked<SparseKernel<Format>>(x, weight, y, epilogue);
}

/// Operands and attributes as kernels.h lists them.
template <typename Format> void runSparse(const hone_tensor *operands, const int64_t *ints) {
  hone_tensor x = withRowAxis(operands[0]), y = withRowAxis(operands[6]);
  hone_tensor factor = withRowAxis(operands[4]), residual = withRowAxis(operands[5]);
  if (!isAbsent(y))
    runLayer<Format>(x, {operands[1], operands[2]}, y, {vectorOf(operands[3]), factor, residual, ints[0]});
}

/// Kept inputs for layers of experts.
template <typename Format> struct SparseExperts : PanelPlanes<2> {
  static void runLayer(const hone_tensor &x, const hone_tensor *planes, const int64_t *, const hone_tensor &y,
                       const Epilogue &epilogue) {
    hone::cpu::HONE_LEVEL_NAMESPACE::runLayer<Format>(x, {planes[0], planes[1]}, y, epilogue);
  }
};

} // namespace

void sparseLinearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparse<SparseF32>(operands, ints);
}

void sparseLinearF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparse<SparseF16>(operands, ints);
}

void sparseLinearBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparse<SparseBf16>(operands, ints);
}

void sparseExpertHiddenF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<SparseExperts<SparseF32>>(operands, ints);
}

void sparseExpertSumF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<SparseExperts<SparseF32>>(operands, ints);
}

void sparseExpertHiddenF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<SparseExperts<SparseF16>>(operands, ints);
}

void sparseExpertSumF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<SparseExperts<SparseF16>>(operands, ints);
}

void sparseExpertHiddenBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<SparseExperts<SparseBf16>>(operands, ints);
}

void sparseExpertSumBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<SparseExperts<SparseBf16>>(operands, ints);
}

} // namespace hone::cpu::HONE_LEVEL_NAMESPACE
