// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of weights with codebooks; kernels.h says what holds for all kernels.

#include "hone/runtime/program.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

/// hone.packed_linear.codebook.u4, .u3: x[..., K] f32, indices {panels, lines, 4, 16} and tables {panels, registers, 4,
/// 16} u8 as packing/pack_codebook.h packs them, bias[N] or absent, factor[..., N] or absent, residual[..., N] or
/// absent → y[..., N]; ints {activation}.
///   y = act(x · Wᵀ + bias) · factor + residual, as hone.packed_linear.bf16 says it, with W[n, k] = codebook[n, index[n, k]]
void packedLinearCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedLinearCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.packed_linear.outliers.codebook.u4, .u3: the same with starts, columns and outliers of
/// hone.packed_linear.outliers between x and the indices. W[n, k] = codebook[n, index[n, k]] plus the outlier where
/// there is one. Outliers are multiplied with x as it is; where weights become bf16 for GEMM (large M), the sums do.
void packedLinearOutliersCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints,
                                    const double *floats);
void packedLinearOutliersCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints,
                                    const double *floats);

/// hone.packed_mlp.codebook.u4, .u3: hone.packed_mlp.bf16 with indices and tables in place of each weight.
void packedMlpCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.packed_mlp.outliers.codebook.u4, .u3: the same with starts, columns and outliers before indices and tables of
/// each weight. The layers may have other numbers of slots than each other.
void packedMlpOutliersCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpOutliersCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.expert_hidden.codebook.u4, .u3 and hone.expert_sum.codebook.u4, .u3: hone.expert_hidden.bf16 and
/// hone.expert_sum.bf16 likewise.
void expertHiddenCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.expert_hidden.outliers.codebook.u4, .u3 and hone.expert_sum.outliers.codebook.u4, .u3: the same with starts,
/// columns and outliers before indices and tables of each weight. gate may have another number of slots than up.
void expertHiddenOutliersCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints,
                                    const double *floats);
void expertHiddenOutliersCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints,
                                    const double *floats);
void expertSumOutliersCodebookU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumOutliersCodebookU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

} // namespace hone::cpu::HONE_ISA_NAMESPACE
