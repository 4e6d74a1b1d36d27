// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of experts; kernels.h says what holds for all kernels.

#include "hone/runtime/program.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

/// hone.expert_hidden.f32, .f16, .bf16: x[..., K] f32, ids[..., T] i32 or i64, up, a packed weight of [E · U, K] of the
/// kernel's type, up_bias[E, U] or absent, gate, one of [E · I, K] or absent, gate_bias[E, I] or absent → hidden[...,
/// T, I]; ints {activation, fused, E}. I is at least 1. For e = ids[t]:
///   hidden[t] = act(up · x + up_bias[e]) with rows e · U … of up, where there is neither gate nor fused
///   hidden[t] = act(gate · x + gate_bias[e]) · (up · x + up_bias[e]) with a gate
///   fused: U is 2 I. Of an expert's rows, with 1 the first I are its gate and the others its up, with 2 those of even number
/// An id outside of [0, E) gives 0. Weights of experts that no row chose are not read. hidden overlaps no input.
void expertHiddenF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.expert_sum.f32, .f16, .bf16: hidden[..., T, I] f32, ids[..., T], weights[..., T] f32, down, a packed weight of
/// [E · N, I] of the kernel's type, down_bias[E, N] or absent → y[..., N]; ints {E}.
///   y = sum over t, in its order, of weights[t] · (down · hidden[t] + down_bias[e]) with rows e · N … of down, for e = ids[t]
/// An id outside of [0, E) adds nothing. y overlaps no input.
void expertSumF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.expert_hidden.u8, .u4, .u3, .u2 and hone.expert_sum.u8, .u4, .u3, .u2: the same with weight, scales and zeros
/// of hone.packed_linear of that format in place of each weight, and ints {…, group, bits, at_least}.
void expertHiddenU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.expert_hidden.outliers.u8, .u4, .u3, .u2 and hone.expert_sum.outliers.u8, .u4, .u3, .u2: the same with starts,
/// columns and outliers of hone.packed_linear.outliers before each weight. gate may have another number of slots than
/// up.
void expertHiddenOutliersU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenOutliersU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenOutliersU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenOutliersU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumOutliersU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumOutliersU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumOutliersU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumOutliersU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.sparse_expert_hidden.f32, .f16, .bf16 and hone.sparse_expert_sum.f32, .f16, .bf16: hone.expert_hidden and
/// hone.expert_sum with values and indices of hone.sparse_linear of that type in place of each weight.
void sparseExpertHiddenF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseExpertHiddenF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseExpertHiddenBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseExpertSumF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseExpertSumF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseExpertSumBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.sparse_expert_hidden.u8, .u4 and hone.sparse_expert_sum.u8, .u4: the same with values, indices, scales and
/// zeros of hone.sparse_linear of that format, and ints {…, group, bits, at_least}.
void sparseExpertHiddenU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseExpertHiddenU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseExpertSumU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseExpertSumU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

} // namespace hone::cpu::HONE_ISA_NAMESPACE
