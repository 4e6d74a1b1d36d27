// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of one level whose weights have zeros in a pattern; kernels.h says what holds for all kernels. They are apart from it
// because every other kernel would be compiled again with each of them.

#ifndef HONE_RUNTIME_CPU_KERNELS_SPARSE_KERNELS_H
#define HONE_RUNTIME_CPU_KERNELS_SPARSE_KERNELS_H

#include "hone/runtime/program.h"

namespace hone::cpu::HONE_LEVEL_NAMESPACE {

/// hone.sparse_linear.f32, .f16, .bf16: hone.packed_linear of that type for a weight of which two of every four inputs are kept:
/// x[..., K] f32, values and indices as packing/pack_sparse.h packs them, of the kernel's type and {panels, inputs / 32, 16, 4}
/// u8, bias[N] or absent, factor[..., N] or absent, residual[..., N] or absent → y[..., N]; ints {activation}.
///   y = act(x · Wᵀ + bias) · factor + residual, as hone.packed_linear says it
void sparseLinearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.sparse_linear.u8, .u4: hone.packed_linear.u8 and .u4 likewise: x, values, indices, scales, zeros or absent, bias, factor,
/// residual → y, and ints {activation, group, bits, at_least}. What is not kept is 0 whatever the zero point. Weights of u8 have no
/// zeros: level - zero has to be a signed byte.
void sparseLinearU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

} // namespace hone::cpu::HONE_LEVEL_NAMESPACE

#endif // HONE_RUNTIME_CPU_KERNELS_SPARSE_KERNELS_H
