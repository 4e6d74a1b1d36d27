// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of one ISA: HONE_ISA_NAMESPACE is that ISA's namespace. What is said here is the contract between
// generated code and kernels.
//
// All take strided operands, inputs before outputs; an output overlaps no input unless the kernel says it may. "Absent"
// is a tensor with no elements, or of rank 0. Kernels run in OpenMP threads and do not fail: the compiler has checked
// shapes.
//
// A kernel's source includes no header of the C++ library. Templates and inline functions have one body in the whole
// program, and the linker might pick one compiled for a higher ISA than the machine's.

#include "hone/runtime/program.h"

namespace hone::cpu::HONE_ISA_NAMESPACE {

/// hone.matmul.f32: a[..., M, K], b[..., K, N] → c[..., M, N]. Ranks are at least 2. Leading axes of a and b are
/// aligned from the right with those of c, and repeated where they are absent or of size 1. c = a · b.
void matmulF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.linear.f32: x[..., K], weight[K, N] or [N, K], bias[N] or absent → y[..., N]; ints {transposed}: 1 for a weight
/// [N, K]. y = x · weight + bias.
void linearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.packed_linear.f32, .f16, .bf16: x[..., K] f32, weight as packing/pack_linear.h packs it {panels, steps, 16,
/// elements} of the kernel's type, bias[N] or absent, factor[..., N] or absent, residual[..., N] or absent → y[..., N];
/// ints {activation}.
///   y = act(x · Wᵀ + bias) · factor + residual; all but the weight f32
///   activation: 0 none, 1 relu, 2 silu x · σ(x), 3 gelu x · Φ(x), 4 gelu by tanh (Hendrycks and Gimpel, 2016)
/// y overlaps neither x, factor nor residual. A gated MLP is two calls: act(x · Gᵀ) is the factor of x · Uᵀ. Weights
/// are multiplied as they are, sums are f32. bf16 rounds x to bf16 on ISAs with dot products of bf16. On ISAs with
/// tiles of bf16, f32 and f16 with large M are multiplied as sums of bf16 (linear/split_floats.h): sums err no more
/// than those in f32 do, but infinite elements, and those above 3.39e38, give NaN.
void packedLinearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedLinearF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedLinearBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.packed_mlp.f32, .f16, .bf16: x[..., K] f32, gate or absent, up and down as packed weights of [I, K], [I, K] and
/// [N, I] of the kernel's type, each followed by its bias, [I], [I] and [N] or absent, and residual[..., N] or absent →
/// y[..., N]; ints {activation, I}.
///   hidden = act(x · Gateᵀ + gate_bias) · (x · Upᵀ + up_bias), or act(x · Upᵀ + up_bias) without a gate
///   y = hidden · Downᵀ + down_bias + residual, as calls of hone.packed_linear of that type
/// The order of operands is x, gate, gate_bias, up, up_bias, down, down_bias, residual, y. y overlaps no input.
void packedMlpF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.packed_linear.u8, .u4, .u3, .u2: x[..., K] f32, weight {panels, lines, 16, 4} u8, scales {panels, groups, 16}
/// f16 or f32, zeros {panels, groups, 16} u8 or absent (128 of u8, 8 of u4, 4 of u3, 2 of u2), bias, factor, residual
/// as above → y[..., N]; ints {activation, group, bits, at_least}: group 32, 64 or 128 inputs share a scale, 0 for one
/// scale an output; bits 8 or 16.
///   W[n, k] = scales[n, k / group] · (q[n, k] - zeros[n, k / group])
/// x is rounded to integers of `bits` bits under one scale a row and group (largest magnitude / 127, or / 32767),
/// products are summed as integers within a group. Where weights have no groups, x has one scale a row and 512 inputs
/// with 8 bits, one a row and 128 inputs with 16. 16 bits err less than half precision would: use them where
/// activations are meant to stay as they are. With at_least 1 and bits 8, GEMMs may be products of bf16 instead, on
/// ISAs with tiles of it: W and x are rounded to bf16, each by a 256th of itself at most, which on the whole errs less
/// than x in 8 bits under the scale of its group. Not of u8 without groups and outliers, which tiles of bytes multiply
/// faster.
void packedLinearU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedLinearU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedLinearU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedLinearU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.packed_linear.outliers.u8, .u4, .u3, .u2: hone.packed_linear of that format with three operands between x and
/// the weight: starts[panels + 1] i32, columns[slots, 16] u16 and outliers[slots, 16] f16, slots at least 1. Those of
/// row n are number n % 16 of slots starts[n / 16] … starts[n / 16 + 1] - 1, by ascending column; those of rows after
/// the last do not count.
///   W[n, k] = the outlier where there is one; its quantized value is the zero point of its group, else as above
/// Outliers are multiplied with x as it is, or as bf16 where both sides are; ISAs without dot products of bytes
/// multiply f32 there.
void packedLinearOutliersU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedLinearOutliersU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedLinearOutliersU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedLinearOutliersU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.packed_mlp.u8, .u4, .u3, .u2: hone.packed_mlp.f32 with weight, scales and zeros of hone.packed_linear of that
/// format, or three absent operands, in place of each weight; ints {activation, I, group, bits, at_least}.
void packedMlpU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.packed_mlp.outliers.u8, .u4, .u3, .u2: the same with starts, columns and outliers of
/// hone.packed_linear.outliers before each weight. The layers may have other numbers of slots than each other.
void packedMlpOutliersU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpOutliersU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpOutliersU3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void packedMlpOutliersU2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.sparse_linear.f32, .f16, .bf16: hone.packed_linear of that type for a weight of which two of every four inputs
/// are kept: x[..., K] f32, values and indices as packing/pack_sparse.h packs them, of the kernel's type and {panels,
/// inputs / 32, 16, 4} u8, bias[N] or absent, factor[..., N] or absent, residual[..., N] or absent → y[..., N]; ints
/// {activation}.
///   y = act(x · Wᵀ + bias) · factor + residual, as hone.packed_linear says it
void sparseLinearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.sparse_linear.u8, .u4: hone.packed_linear.u8 and .u4 likewise: x, values, indices, scales, zeros or absent,
/// bias, factor, residual → y, and ints {activation, group, bits, at_least}. What is not kept is 0 whatever the zero
/// point. Weights of u8 have no zeros: q - zero has to be a signed byte.
void sparseLinearU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.sparse_mlp.f32, .f16, .bf16, .u8, .u4: hone.packed_mlp of that type with values and indices of
/// hone.sparse_linear, and scales and zeros of u8 and u4, in place of each weight.
void sparseMlpF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseMlpF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseMlpBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseMlpU8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseMlpU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.attention.f32: query[B, Hq, Sq, D], key[B, Hk, Sk, D], value[B, Hk, Sk, Dv], bias[B|1, Hq|1, Sq|1, Sk|1] or
/// absent, alibi[Hq] or absent, sinks[Hq] or absent, key_begin[B] i64 or absent, key_end[B] i64 or absent, prefix[B]
/// i64 or absent → out[B, Hq, Sq, Dv]; ints {causal, window}, floats {scale, softcap}: window -1 and softcap 0 are
/// none.
///
/// Query head h reads key head h / (Hq / Hk). Query i is at position p = Sk - Sq + i, key j at position j.
///   logit = cap(scale · query · key) + alibi[h] · (j - p) + bias,  cap(l) = softcap · tanh(l / softcap)
///   key j is visible iff key_begin[b] <= j < key_end[b], and where causal j <= p or j < prefix[b], and where windowed
///   j > p - window
///   out = sum of exp(logit) · value / (exp(sinks[h]) + sum of exp(logit)), over the visible keys
/// A query that sees no key, or only keys with a logit of -inf, gives 0.
void attentionF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.attention.pairs.f32: hone.attention.f32, where queries, keys, weights and values may be rounded to bf16 before
/// they are multiplied. ISAs with tiles of bf16 do that for GEMM (large M).
void attentionPairsF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.attention.f16, .bf16: hone.attention.f32 with key and value of that type; everything else is f32. On ISAs with
/// tiles of bf16, queries and weights are sums of two bf16, which is sixteen bits of mantissa.
void attentionF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void attentionBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.write_keys.f32, .f16, .bf16 and hone.write_values.f32, .f16, .bf16: fresh[B, H, S, D] f32 → cache[B, H,
/// capacity, width] of the type; ints {first}. Positions first … first + S - 1 of the cache become `fresh`, rounded to
/// the nearest and of two to the even one, as BlockedKeyLayout and BlockedValueLayout of
/// include/hone/cpu/packing/cache_blocks.h have them; nothing else is written but what fills a position up, with zeros. The
/// runtime calls them, no program does.
void writeKeysF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void writeKeysF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void writeKeysBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void writeValuesF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void writeValuesF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void writeValuesBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.attention.blocks.f32, .f16, .bf16: the same with key as BlockedKeyLayout and value as BlockedValueLayout of
/// include/hone/cpu/packing/cache_blocks.h have them, of the type. Their sizes are those of the numbers; positions lie
/// strides[2] apart on average, and memory reaches to the end of a block of 64 positions, where it is finite. Where
/// there are dot products of bf16, .bf16 rounds queries and weights to bf16.
void attentionBlocksF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void attentionBlocksF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void attentionBlocksBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.attention.blocks.i8, .u4: the same with key as QuantizedKeyLayout and value as QuantizedValueLayout of
/// include/hone/cpu/packing/quantized_blocks.h have them, of 8 and of 4 bits. Strides count bytes. Queries, and weights of
/// the keys that are taken at once, are rounded to integers of 16 bits under one step each; products are integers.
void attentionBlocksI8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void attentionBlocksU4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.rms_norm.f32: x[..., N], weight[N] or absent → y[..., N]; ints {unit_offset}, floats {epsilon}. y may be x.
/// y = x / sqrt(mean(x²) + epsilon) · weight, or · (1 + weight) with unit_offset (Zhang and Sennrich, 2019).
void rmsNormF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.layer_norm.f32: x[..., N], weight[N] or absent, bias[N] or absent → y[..., N]; floats {epsilon}. y may be x.
/// y = (x - mean) / sqrt(variance + epsilon) · weight + bias (Ba et al., 2016).
void layerNormF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.softmax.f32: x[..., N] → y[..., N], over the last axis. y may be x. A row of -inf alone gives NaN, as the
/// formula does.
void softmaxF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// hone.rope.f32: x[B, H, S, D], cos[B|1, S, R/2], sin[B|1, S, R/2] → y[B, H, S, D]; ints {interleaved}. y may be x.
/// The first R ≤ D elements rotate, the rest is copied. Pair i is (x[i], x[i + R/2]), or (x[2i], x[2i+1]) where
/// interleaved: (a, b) → (a·cos - b·sin, b·cos + a·sin) (Su et al., 2021).
void ropeF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

} // namespace hone::cpu::HONE_ISA_NAMESPACE
