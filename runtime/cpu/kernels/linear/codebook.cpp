// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed indices of 4 and 3 bits into tables of bf16, and pairs of them. GEMV multiplies what it
// looks up; for GEMM the weights become bf16, or f32 where nothing multiplies that, an N-tile at a time, in the cache.

#include "../codebook_kernels.h"

#include "codebook_block.h"
#include "experts.h"
#include "gemm_mlp.h"
#include "gemm_vectors.h"
#include "unpacked_tiles.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// Calls `body(make)` with what makes the engine of a weight for GEMM (large M), or returns false for GEMV.
template <typename Weight, typename Body> bool withEngine(int64_t rows, const Body &body) {
#ifdef __AMX_TILE__
  if (rows <= kTileRows)
    return false;
  body([rows](const Weight &weight) { return TileEngine<StepTiles<Weight>>(StepTiles<Weight>(weight), rows); });
#else
  if (rows <= kCodebookSums)
    return false;
  body([](const Weight &weight) { return VectorEngine<Weight>(weight); });
#endif
  return true;
}

template <typename Kernel, typename Weight>
void runPacked(const hone_tensor &x, const Weight &weight, const hone_tensor &y, const Epilogue &epilogue) {
  Kernel kernel(x, weight, countRows(y));
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

template <typename Indices>
void runLayer(const hone_tensor &x, const CodebookWeight<Indices> &weight, const hone_tensor &y,
              const Epilogue &epilogue) {
  using Weight = CodebookWeight<Indices>;
  auto runGemm = [&](auto make) {
    auto engine = make(weight);
    GemmLayer<decltype(engine)>(x, engine, y, epilogue).run();
  };
  if (withEngine<Weight>(countRows(y), runGemm))
    return;
#ifdef __AMX_TILE__
  if (countRows(y) >= StepTileRowsKernel<Weight>::kFewestRows)
    return runPacked<StepTileRowsKernel<Weight>>(x, weight, y, epilogue);
#endif
  runPacked<CodebookKernel<Indices>>(x, weight, y, epilogue);
}

/// `planes`: indices and tables, and what follows them, as codebook_kernels.h lists operands and attributes.
template <typename Indices>
void runLayerOf(const hone_tensor &from, const hone_tensor *planes, const Outliers &outliers, const int64_t *ints) {
  hone_tensor x = withRowAxis(from), y = withRowAxis(planes[5]);
  hone_tensor factor = withRowAxis(planes[3]), residual = withRowAxis(planes[4]);
  if (!isAbsent(y))
    runLayer<Indices>(x, CodebookWeight<Indices>(planes, outliers), y,
                      {vectorOf(planes[2]), factor, residual, ints[0]});
}

template <typename Indices> void runCodebook(const hone_tensor *operands, const int64_t *ints) {
  runLayerOf<Indices>(operands[0], operands + 1, {}, ints);
}

/// With outliers between x and the weight.
template <typename Indices> void runWithOutliers(const hone_tensor *operands, const int64_t *ints) {
  runLayerOf<Indices>(operands[0], operands + 1 + kOutlierPlanes, Outliers(operands + 1), ints);
}

template <typename Indices, bool HAS_OUTLIERS = false>
void runCodebookMlp(const hone_tensor *operands, const int64_t *ints) {
  using Weight = CodebookWeight<Indices>;
  constexpr int64_t before = HAS_OUTLIERS ? kOutlierPlanes : 0;
  MlpCall call(operands, ints, before + 2);
  auto weightOf = [](const hone_tensor *planes) {
    return Weight(planes + before, HAS_OUTLIERS ? Outliers(planes) : Outliers());
  };
  // Where an N-tile of outputs is not as many inputs as a step, the layers are multiplied one after the other.
  auto withEngines = [&](const auto &body) {
    if constexpr (VectorEngine<Weight>::kTakesNTiles)
      withEngine<Weight>(countRows(call.y),
                         [&](auto make) { body([&](const hone_tensor *planes) { return make(weightOf(planes)); }); });
  };
  runMlpCall(call, withEngines,
             [&](const hone_tensor &from, const hone_tensor *planes, const hone_tensor &to, const Epilogue &epilogue) {
               runLayer<Indices>(from, weightOf(planes), to, epilogue);
             });
}

/// Indices for layers of experts.
template <typename Indices> struct CodebookExperts : PanelPlanes<2> {
  static void runLayer(const hone_tensor &x, const hone_tensor *planes, const int64_t *, const hone_tensor &y,
                       const Epilogue &epilogue) {
    hone::cpu::HONE_ISA_NAMESPACE::runLayer<Indices>(x, CodebookWeight<Indices>(planes), y, epilogue);
  }
};

template <typename Indices> struct CodebookExpertsWithOutliers : OutlierPlanes<2> {
  static void runLayer(const hone_tensor &x, const hone_tensor *planes, const int64_t *, const hone_tensor &y,
                       const Epilogue &epilogue) {
    CodebookWeight<Indices> weight(planes + kOutlierPlanes, Outliers(planes));
    hone::cpu::HONE_ISA_NAMESPACE::runLayer<Indices>(x, weight, y, epilogue);
  }
};

} // namespace

void packedLinearCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runCodebook<U4Codes>(operands, ints);
}

void packedLinearCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runCodebook<U3Codes>(operands, ints);
}

void packedLinearOutliersCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runWithOutliers<U4Codes>(operands, ints);
}

void packedLinearOutliersCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runWithOutliers<U3Codes>(operands, ints);
}

void packedMlpCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runCodebookMlp<U4Codes>(operands, ints);
}

void packedMlpCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runCodebookMlp<U3Codes>(operands, ints);
}

void packedMlpOutliersCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runCodebookMlp<U4Codes, /*HAS_OUTLIERS=*/true>(operands, ints);
}

void packedMlpOutliersCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runCodebookMlp<U3Codes, /*HAS_OUTLIERS=*/true>(operands, ints);
}

void expertHiddenCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<CodebookExperts<U4Codes>>(operands, ints);
}

void expertHiddenCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<CodebookExperts<U3Codes>>(operands, ints);
}

void expertSumCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<CodebookExperts<U4Codes>>(operands, ints);
}

void expertSumCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<CodebookExperts<U3Codes>>(operands, ints);
}

void expertHiddenOutliersCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<CodebookExpertsWithOutliers<U4Codes>>(operands, ints);
}

void expertSumOutliersCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<CodebookExpertsWithOutliers<U4Codes>>(operands, ints);
}

void expertHiddenOutliersCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<CodebookExpertsWithOutliers<U3Codes>>(operands, ints);
}

void expertSumOutliersCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<CodebookExpertsWithOutliers<U3Codes>>(operands, ints);
}

} // namespace hone::cpu::HONE_ISA_NAMESPACE
