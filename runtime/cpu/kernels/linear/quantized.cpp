// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed weights of 8, 4, 3 and 2 bits, and feed-forward blocks of them.

#include "../expert_kernels.h"
#include "../kernels.h"

#include "dequantized_weights.h"
#include "experts.h"
#include "gemm_mlp.h"
#include "quantized_kernel.h"
#include "tile_bytes.h"
#include "tile_quantized.h"
#include "tile_unpacked.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

/// A weight, and how x is rounded.
struct QuantizedOperand {
  QuantizedWeight weight;
  int64_t bits;
  bool isLeast; // of the bits: more of x may be kept

  /// Of codes that are bytes.
  bool isTiles() const { return bits == 8 && weight.group == 0 && weight.outliers.count == 0; }
  bool unpacks(int64_t fewestRows, int64_t rows) const { return rows >= fewestRows && bits == 8 && isLeast; }
};

template <typename Kernel>
void runKernel(const hone_tensor &x, const QuantizedOperand &operand, const hone_tensor &y, const Epilogue &epilogue) {
  Kernel kernel(x, operand.weight, countRows(y), operand.bits);
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

/// Calls `body(make)` with what makes the engine of a weight for GEMM (large M), or returns false where they are few,
/// or have to be rounded as few rows are, or dot products of bytes are faster. `operand` stands for all weights.
template <typename Codes, typename Body>
bool withEngine(const QuantizedOperand &operand, int64_t rows, const Body &body) {
#if defined(__AMX_TILE__)
  if constexpr (Codes::kQuads == 1)
    if (operand.isTiles() && rows > kTileRows) {
      body([](const QuantizedWeight &weight) { return ByteTileEngine(weight); });
      return true;
    }
  if (!operand.unpacks(kFewestUnpackedRows<Codes>, rows))
    return false;
  using Weights = UnpackedWeights<Codes>;
  body([rows](const QuantizedWeight &weight) { return TileEngine<Weights>(Weights(weight), rows); });
  return true;
#elif !defined(__AVX512VNNI__)
  if (operand.weight.outliers.count == 0 || !operand.unpacks(kFewestFloatRows, rows))
    return false;
  using Weights = DequantizedWeights<Codes>;
  body([](const QuantizedWeight &weight) { return VectorEngine<Weights>(Weights(weight)); });
  return true;
#else
  (void)operand, (void)rows, (void)body;
  return false;
#endif
}

template <typename Codes>
void runLayer(const hone_tensor &x, const QuantizedOperand &operand, const hone_tensor &y, const Epilogue &epilogue) {
  auto runGemm = [&](auto make) {
    auto engine = make(operand.weight);
    GemmLayer<decltype(engine)>(x, engine, y, epilogue).run();
  };
  if (withEngine<Codes>(operand, countRows(y), runGemm))
    return;
#ifdef __AMX_TILE__
  // Tiles add up the same integers in the same chunks, and pay as soon as they hold a few rows.
  if (countRows(y) >= kFewestTileRows<Codes>)
    return runKernel<TileQuantizedKernel<Codes, QuantizedWeight>>(x, operand, y, epilogue);
#endif
  runKernel<QuantizedKernel<Codes, QuantizedWeight>>(x, operand, y, epilogue);
}

/// `planes`: the weight, its scales and zeros, and what follows them, as kernels.h lists operands and attributes.
template <typename Codes>
void runLayerOf(const hone_tensor &from, const hone_tensor *planes, const Outliers &outliers, const int64_t *ints) {
  hone_tensor x = withRowAxis(from), y = withRowAxis(planes[6]);
  hone_tensor factor = withRowAxis(planes[4]), residual = withRowAxis(planes[5]);
  if (isAbsent(y))
    return;
  QuantizedOperand operand = {{planes[0], planes[1], planes[2], ints[1], outliers}, ints[2], ints[3] != 0};
  runLayer<Codes>(x, operand, y, {vectorOf(planes[3]), factor, residual, ints[0]});
}

template <typename Codes> void runQuantized(const hone_tensor *operands, const int64_t *ints) {
  runLayerOf<Codes>(operands[0], operands + 1, {}, ints);
}

/// With outliers between x and the weight.
template <typename Codes> void runWithOutliers(const hone_tensor *operands, const int64_t *ints) {
  runLayerOf<Codes>(operands[0], operands + 1 + kOutlierPlanes, Outliers(operands + 1), ints);
}

/// Operands and attributes as kernels.h lists them.
template <typename Codes, bool HAS_OUTLIERS = false>
void runQuantizedMlp(const hone_tensor *operands, const int64_t *ints) {
  constexpr int64_t before = HAS_OUTLIERS ? kOutlierPlanes : 0;
  MlpCall call(operands, ints, before + 3);
  auto operandOf = [ints](const hone_tensor *planes) {
    const hone_tensor *codes = planes + before;
    Outliers outliers = HAS_OUTLIERS ? Outliers(planes) : Outliers();
    return QuantizedOperand{{codes[0], codes[1], codes[2], ints[2], outliers}, ints[3], ints[4] != 0};
  };
  auto withEngines = [&](const auto &body) {
    withEngine<Codes>(operandOf(call.up), countRows(call.y), [&](auto make) {
      using Engine = decltype(make(operandOf(call.up).weight));
      // Where an N-tile of outputs is not as many inputs as a step, the layers are multiplied one after the other.
      if constexpr (Engine::kTakesNTiles)
        body([&](const hone_tensor *planes) { return make(operandOf(planes).weight); });
    });
  };
  runMlpCall(call, withEngines,
             [&](const hone_tensor &from, const hone_tensor *planes, const hone_tensor &to, const Epilogue &epilogue) {
               runLayer<Codes>(from, operandOf(planes), to, epilogue);
             });
}

/// Codes for layers of experts; ints are {group, bits, at_least}.
template <typename Codes> struct QuantizedExperts : PanelPlanes<3> {
  static void runLayer(const hone_tensor &x, const hone_tensor *planes, const int64_t *ints, const hone_tensor &y,
                       const Epilogue &epilogue) {
    runWith(x, planes, {}, ints, y, epilogue);
  }

  static void runWith(const hone_tensor &x, const hone_tensor *planes, const Outliers &outliers, const int64_t *ints,
                      const hone_tensor &y, const Epilogue &epilogue) {
    QuantizedOperand operand = {{planes[0], planes[1], planes[2], ints[0], outliers}, ints[1], ints[2] != 0};
    hone::cpu::HONE_ISA_NAMESPACE::runLayer<Codes>(x, operand, y, epilogue);
  }
};

template <typename Codes> struct QuantizedExpertsWithOutliers : OutlierPlanes<3> {
  static void runLayer(const hone_tensor &x, const hone_tensor *planes, const int64_t *ints, const hone_tensor &y,
                       const Epilogue &epilogue) {
    QuantizedExperts<Codes>::runWith(x, planes + kOutlierPlanes, Outliers(planes), ints, y, epilogue);
  }
};

} // namespace

void expertHiddenU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<QuantizedExperts<U8Codes>>(operands, ints);
}

void expertSumU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<QuantizedExperts<U8Codes>>(operands, ints);
}

void expertHiddenU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<QuantizedExperts<U4Codes>>(operands, ints);
}

void expertSumU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<QuantizedExperts<U4Codes>>(operands, ints);
}

void expertHiddenU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<QuantizedExperts<U3Codes>>(operands, ints);
}

void expertSumU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<QuantizedExperts<U3Codes>>(operands, ints);
}

void expertHiddenU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<QuantizedExperts<U2Codes>>(operands, ints);
}

void expertSumU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<QuantizedExperts<U2Codes>>(operands, ints);
}

void expertHiddenOutliersU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<QuantizedExpertsWithOutliers<U8Codes>>(operands, ints);
}

void expertSumOutliersU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<QuantizedExpertsWithOutliers<U8Codes>>(operands, ints);
}

void expertHiddenOutliersU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<QuantizedExpertsWithOutliers<U4Codes>>(operands, ints);
}

void expertSumOutliersU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<QuantizedExpertsWithOutliers<U4Codes>>(operands, ints);
}

void expertHiddenOutliersU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<QuantizedExpertsWithOutliers<U3Codes>>(operands, ints);
}

void expertSumOutliersU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<QuantizedExpertsWithOutliers<U3Codes>>(operands, ints);
}

void expertHiddenOutliersU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<QuantizedExpertsWithOutliers<U2Codes>>(operands, ints);
}

void expertSumOutliersU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<QuantizedExpertsWithOutliers<U2Codes>>(operands, ints);
}

void packedLinearU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantized<U8Codes>(operands, ints);
}

void packedLinearU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantized<U4Codes>(operands, ints);
}

void packedLinearU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantized<U3Codes>(operands, ints);
}

void packedLinearU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantized<U2Codes>(operands, ints);
}

void packedLinearOutliersU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runWithOutliers<U8Codes>(operands, ints);
}

void packedLinearOutliersU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runWithOutliers<U4Codes>(operands, ints);
}

void packedLinearOutliersU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runWithOutliers<U3Codes>(operands, ints);
}

void packedLinearOutliersU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runWithOutliers<U2Codes>(operands, ints);
}

void packedMlpU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantizedMlp<U8Codes>(operands, ints);
}

void packedMlpU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantizedMlp<U4Codes>(operands, ints);
}

void packedMlpU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantizedMlp<U3Codes>(operands, ints);
}

void packedMlpU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantizedMlp<U2Codes>(operands, ints);
}

void packedMlpOutliersU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantizedMlp<U8Codes, /*HAS_OUTLIERS=*/true>(operands, ints);
}

void packedMlpOutliersU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantizedMlp<U4Codes, /*HAS_OUTLIERS=*/true>(operands, ints);
}

void packedMlpOutliersU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantizedMlp<U3Codes, /*HAS_OUTLIERS=*/true>(operands, ints);
}

void packedMlpOutliersU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runQuantizedMlp<U2Codes, /*HAS_OUTLIERS=*/true>(operands, ints);
}

} // namespace hone::cpu::HONE_ISA_NAMESPACE
