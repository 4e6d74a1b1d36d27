// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed 2:4 weights in f32, f16 and bf16. GEMV gathers the activations that it multiplies; for GEMM
// the weights become dense, an N-tile at a time, in the cache.

#include "../expert_kernels.h"
#include "../kernels.h"

#include "experts.h"
#include "gemm_mlp.h"
#include "gemm_vectors.h"
#include "sparse_block.h"
#include "unpacked_tiles.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// Calls `body(make)` with what makes the engine of a weight for GEMM (large M), or returns false for GEMV.
template <typename Format, typename Body> bool withEngine(int64_t rows, const Body &body) {
  using Weight = SparseWeight<Format>;
#ifdef __AMX_TILE__
  if constexpr (__is_same(Format, SparseBf16)) {
    static_assert(kChunkInputs == kTileStepInputs); // a chunk is a tile
    if (rows <= kTileRows)
      return false;
    body([rows](const Weight &weight) { return TileEngine<StepTiles<Weight>>(StepTiles<Weight>(weight), rows); });
    return true;
  }
#endif
  if (rows <= kSparseRows)
    return false;
  body([](const Weight &weight) { return VectorEngine<Weight>(weight); });
  return true;
}

template <typename Kernel, typename Weight>
void runPacked(const hone_tensor &x, const Weight &weight, const hone_tensor &y, const Epilogue &epilogue) {
  Kernel kernel(x, weight, countRows(y));
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

template <typename Format>
void runLayer(const hone_tensor &x, const SparseWeight<Format> &weight, const hone_tensor &y,
              const Epilogue &epilogue) {
  auto runGemm = [&](auto make) {
    auto engine = make(weight);
    GemmLayer<decltype(engine)>(x, engine, y, epilogue).run();
  };
  if (withEngine<Format>(countRows(y), runGemm))
    return;
#ifdef __AMX_TILE__
  if constexpr (__is_same(Format, SparseBf16)) {
    using Kernel = StepTileRowsKernel<SparseWeight<Format>>;
    if (countRows(y) >= Kernel::kFewestRows)
      return runPacked<Kernel>(x, weight, y, epilogue);
  }
#endif
  runPacked<SparseKernel<Format>>(x, weight, y, epilogue);
}

/// Operands and attributes as kernels.h lists them.
template <typename Format> void runSparse(const hone_tensor *operands, const int64_t *ints) {
  hone_tensor x = withRowAxis(operands[0]), y = withRowAxis(operands[6]);
  hone_tensor factor = withRowAxis(operands[4]), residual = withRowAxis(operands[5]);
  if (!isAbsent(y))
    runLayer<Format>(x, {operands[1], operands[2]}, y, {vectorOf(operands[3]), factor, residual, ints[0]});
}

/// Operands and attributes as kernels.h lists them.
template <typename Format> void runSparseMlp(const hone_tensor *operands, const int64_t *ints) {
  using Weight = SparseWeight<Format>;
  MlpCall call(operands, ints, /*planes=*/2);
  auto weightOf = [](const hone_tensor *planes) { return Weight(planes[0], planes[1]); };
  // Where an N-tile of outputs is not as many inputs as a step, the layers are multiplied one after the other.
  auto withEngines = [&](const auto &body) {
    if constexpr (VectorEngine<Weight>::kTakesNTiles)
      withEngine<Format>(countRows(call.y),
                         [&](auto make) { body([&](const hone_tensor *planes) { return make(weightOf(planes)); }); });
  };
  runMlpCall(call, withEngines,
             [&](const hone_tensor &from, const hone_tensor *planes, const hone_tensor &to, const Epilogue &epilogue) {
               runLayer<Format>(from, weightOf(planes), to, epilogue);
             });
}

/// Kept inputs for layers of experts.
template <typename Format> struct SparseExperts : PanelPlanes<2> {
  static void runLayer(const hone_tensor &x, const hone_tensor *planes, const int64_t *, const hone_tensor &y,
                       const Epilogue &epilogue) {
    hone::cpu::HONE_ISA_NAMESPACE::runLayer<Format>(x, {planes[0], planes[1]}, y, epilogue);
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

void sparseMlpF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparseMlp<SparseF32>(operands, ints);
}

void sparseMlpF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparseMlp<SparseF16>(operands, ints);
}

void sparseMlpBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparseMlp<SparseBf16>(operands, ints);
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

} // namespace hone::cpu::HONE_ISA_NAMESPACE
