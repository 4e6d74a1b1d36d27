// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layers with packed 2:4 weights of 8 and 4 bits. GEMV gathers the activations that it multiplies,
// on ISAs with dot products of bytes; otherwise weights become dense, a slice at a time, in the cache.

#include "../expert_kernels.h"
#include "../kernels.h"

#include "experts.h"
#include "gemm_mlp.h"
#include "quantized_kernel.h"
#include "sparse_quantized_block.h"
#include "sparse_quantized_tiles.h"
#include "sparse_quantized_weight.h"
#include "tile_quantized.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {
namespace {

template <typename Kernel, typename Weight>
void runPacked(const hone_tensor &x, const Weight &weight, int64_t bits, const hone_tensor &y,
               const Epilogue &epilogue) {
  Kernel kernel(x, weight, countRows(y), bits);
  PackedLayer<Kernel>(kernel, y, epilogue).run();
}

#ifdef __AMX_TILE__
template <typename Codes> using SparseQuantizedEngine = TileEngine<SparseQuantizedTiles<Codes>>;
#endif

/// `isLeast`: more of x may be kept than `bits`.
template <typename Codes>
void runLayer(const hone_tensor &x, const SparseQuantizedWeight<Codes> &weight, int64_t bits, bool isLeast,
              const hone_tensor &y, const Epilogue &epilogue) {
#ifdef __AVX512VNNI__
  if (countRows(y) <= SparseQuantizedKernel<Codes>::mostRows(bits))
    return runPacked<SparseQuantizedKernel<Codes>>(x, weight, bits, y, epilogue);
#endif
#ifdef __AMX_TILE__
  if (bits == 8 && isLeast) {
    SparseQuantizedEngine<Codes> engine(SparseQuantizedTiles<Codes>(weight), countRows(y));
    return GemmLayer<SparseQuantizedEngine<Codes>>(x, engine, y, epilogue).run();
  }
  runPacked<TileQuantizedKernel<UnpackedCodes<Codes>, SparseQuantizedWeight<Codes>>>(x, weight, bits, y, epilogue);
#else
  (void)isLeast;
  runPacked<QuantizedKernel<UnpackedCodes<Codes>, SparseQuantizedWeight<Codes>>>(x, weight, bits, y, epilogue);
#endif
}

/// Operands and attributes as kernels.h lists them.
template <typename Codes> void runSparse(const hone_tensor *operands, const int64_t *ints) {
  hone_tensor x = withRowAxis(operands[0]), y = withRowAxis(operands[8]);
  hone_tensor factor = withRowAxis(operands[6]), residual = withRowAxis(operands[7]);
  if (!isAbsent(y))
    runLayer<Codes>(x, {operands + 1, ints[1]}, ints[2], ints[3] != 0, y,
                    {vectorOf(operands[5]), factor, residual, ints[0]});
}

/// Operands and attributes as kernels.h lists them.
template <typename Codes> void runSparseMlp(const hone_tensor *operands, const int64_t *ints) {
  MlpCall call(operands, ints, /*planes=*/4);
  int64_t group = ints[2], bits = ints[3];
  bool isLeast = ints[4] != 0;
  auto withEngines = [&](const auto &body) {
#ifdef __AMX_TILE__
    int64_t rows = countRows(call.y);
    if (rows > SparseQuantizedKernel<Codes>::mostRows(bits) && bits == 8 && isLeast)
      body([&](const hone_tensor *planes) {
        return SparseQuantizedEngine<Codes>(SparseQuantizedTiles<Codes>({planes, group}), rows);
      });
#else
    (void)body;
#endif
  };
  runMlpCall(call, withEngines,
             [&](const hone_tensor &from, const hone_tensor *planes, const hone_tensor &to, const Epilogue &epilogue) {
               runLayer<Codes>(from, {planes, group}, bits, isLeast, to, epilogue);
             });
}

/// Kept codes for layers of experts; ints are {group, bits, at_least}.
template <typename Codes> struct SparseQuantizedExperts : PanelPlanes<4> {
  static void runLayer(const hone_tensor &x, const hone_tensor *planes, const int64_t *ints, const hone_tensor &y,
                       const Epilogue &epilogue) {
    hone::cpu::HONE_ISA_NAMESPACE::runLayer<Codes>(x, {planes, ints[0]}, ints[1], ints[2] != 0, y, epilogue);
  }
};

} // namespace

void sparseLinearU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparse<SparseU8>(operands, ints);
}

void sparseLinearU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparse<SparseU4>(operands, ints);
}

void sparseMlpU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparseMlp<SparseU8>(operands, ints);
}

void sparseMlpU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runSparseMlp<SparseU4>(operands, ints);
}

void sparseExpertHiddenU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<SparseQuantizedExperts<SparseU8>>(operands, ints);
}

void sparseExpertSumU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<SparseQuantizedExperts<SparseU8>>(operands, ints);
}

void sparseExpertHiddenU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertHidden<SparseQuantizedExperts<SparseU4>>(operands, ints);
}

void sparseExpertSumU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *) {
  runExpertSum<SparseQuantizedExperts<SparseU4>>(operands, ints);
}

} // namespace hone::cpu::HONE_ISA_NAMESPACE
