// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device kernels: the contract between generated host code and what it calls. Each enqueues on the call's stream.
//
// All take strided operands whose data lie in device memory, inputs before outputs; an output overlaps no input
// unless the kernel says it may. "Absent" is a tensor with no elements, or of rank 0. Elements are f32, f16 or bf16
// where no type is given, also within one call, and accumulation is in f32. Kernels report no errors: the compiler
// has checked shapes. Leading axes of x are those of y, of factor and of residual; at most three of them may be
// non-contiguous.

#ifndef HONE_RUNTIME_CUDA_KERNELS_KERNELS_H
#define HONE_RUNTIME_CUDA_KERNELS_KERNELS_H

#include "hone/runtime/program.h"

namespace hone::cuda {

/// cuda.linear.f32, .f16, .bf16: x[..., K], weight[N, K'] of the kernel's type, K' ≥ K and zeros after column K,
/// bias[N] or absent, factor[..., N] or absent, residual[..., N] or absent → y[..., N]; ints {activation}. A weight
/// whose rows are not aligned multiples of 16 bytes is copied in each call.
///   y = act(x · Wᵀ + bias) · factor + residual
///   activation: 0 none, 1 relu, 2 silu x · σ(x), 3 gelu x · Φ(x), 4 gelu by tanh (Hendrycks and Gimpel, 2016)
/// y overlaps neither x, factor nor residual. A gated MLP is two calls: act(x · Gᵀ) is the factor of x · Uᵀ. With
/// weights of bf16, x of bf16 is multiplied unconverted, and x of f32 or f16 is split into hi and lo terms of bf16,
/// which have sixteen bits of mantissa; an infinite x then gives NaN.
void linearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void linearF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void linearBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.linear.affine8, .affine4, .affine3, .affine2: x[..., K], weight, scales and zeros or absent: the planes of a
/// #hone.affine of so many bits that is not transposed, bias, factor, residual as above → y[..., N]; ints
/// {activation, group, signed}. Rows of the weight begin at multiples of 4 bytes, and K is a multiple of eight; the
/// group size is 0 or a power of two from 32 on.
///   W[n, k] = scales[n, k / group] · (q[n, k] - zeros[n, k / group])
/// x is multiplied as with weights of bf16: quantized values are exact in bf16, and scales apply to the sums of a
/// group in f32.
void linearAffine8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void linearAffine4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void linearAffine3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void linearAffine2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.linear.outliers.affine8 and so on: the same with starts, columns and outliers of #hone.dense_sparse between x
/// and weight.
void linearOutliersAffine8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void linearOutliersAffine4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void linearOutliersAffine3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void linearOutliersAffine2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.sparse_linear.f32, .f16, .bf16, .affine8, .affine4: the same by 2:4 weights: x[..., K], values and indices of
/// a 2:4 #hone.nm of floats, bias, factor, residual → y[..., N]; of quantized values with scales, zeros or absent
/// after indices. K is a multiple of 32.
void sparseLinearF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearAffine8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void sparseLinearAffine4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.expert_groups: ids[..., T] i32 or i64 → groups[E + 1 + rows · T] i32, dense; ints {E}, at most 8192. Choice t
/// of row r is pair r · T + t. groups[e] is how many pairs chose an expert before e, and the pairs follow from
/// groups[E + 1] on, by expert and in their order. Pairs with an id outside of [0, E) are left out.
void expertGroups(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.expert_hidden.f32, .f16, .bf16: x[..., K], groups as above, up, a weight of [E · U, K] of the kernel's type,
/// up_bias[E, U] or absent, gate, one of [E · I, K] or absent, gate_bias[E, I] or absent → hidden[..., T, I]; ints
/// {activation, fused, E}. For each pair that groups has, with the number e of its expert:
///   hidden = act(up · x + up_bias[e]) with rows e · U … of up, where there is neither gate nor fused
///   hidden = act(gate · x + gate_bias[e]) · (up · x + up_bias[e]) with a gate
///   fused: U is 2 I. With 1 the first I rows of an expert are its gate and the others its up, with 2 even rows are its
///   gate
/// The others are not written. Weights are rows that begin at multiples of 16 bytes, K and I are at least 1, and
/// products are those of cuda.linear. Where experts have more than 32 rows on average, weights that have to be
/// converted are so for all experts in turn.
void expertHiddenF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.expert_sum.f32, .f16, .bf16: hidden[..., T, I], ids[..., T] i32 or i64, weights[..., T], groups of the ids,
/// down, a weight of [E · N, I] of the kernel's type, down_bias[E, N] or absent → y[..., N]; ints {E}.
///   y = sum over t, in its order, of weights[t] · (down · hidden[t] + down_bias[e])
///   with rows e · N … of down, for e = ids[t]
/// An id outside of [0, E) adds nothing.
void expertSumF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumF16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumBf16(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.expert_hidden.affine8, .affine4, .affine3, .affine2 and cuda.expert_sum of the same: with the weight, scales
/// and zeros of cuda.linear.affine8 and so on in place of each weight; ints {…, group, signed}.
void expertHiddenAffine8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenAffine4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenAffine3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertHiddenAffine2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumAffine8(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumAffine4(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumAffine3(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void expertSumAffine2(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.attention.f32: query[B, Hq, Sq, D], key[B, Hk, Sk, D], value[B, Hk, Sk, Dv], bias[B|1, Hq|1, Sq|1, Sk|1|T] or
/// absent, alibi[Hq] f32 or absent, sinks[Hq] f32 or absent, key_begin[B] i64 or absent, key_end[B] i64 or absent,
/// prefix[B] i64 or absent → out[B, Hq, Sq, Dv]; ints {causal, window, tail}, floats {scale, softcap}: window -1 and
/// softcap 0 are none. Dv is at most 512. With tail 1 the bias is that of the last T keys, and other keys have none:
/// a tree of draft tokens sees all earlier keys, and by a bias of 0 and -inf its ancestors.
///
/// GQA: query head h reads KV head h / (Hq / Hk). Query i is at position p = Sk - Sq + i, key j at position j.
///   logit = cap(scale · query · key) + alibi[h] · (j - p) + bias,  cap(l) = softcap · tanh(l / softcap)
///   key j is visible iff key_begin[b] <= j < key_end[b], and where causal j <= p or j < prefix[b], and where windowed
///   j > p - window
///   out = sum of exp(logit) · value / (exp(sinks[h]) + sum of exp(logit)), over the visible keys
/// A query that sees no key, or only keys with a logit of -inf, gives 0. Where query, key and value are of one 16-bit
/// type, probabilities are rounded to it. Other heads of up to 128 elements are split into hi and lo terms of bf16,
/// and larger ones are multiplied in f32.
void attentionF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.rms_norm.f32: x[..., N], weight[N] or absent → y[..., N]; ints {unit_offset}, floats {epsilon}. y may be x.
/// y = x / sqrt(mean(x²) + epsilon) · weight, or · (1 + weight) with unit_offset (Zhang and Sennrich, 2019).
void rmsNormF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.layer_norm.f32: x[..., N], weight[N] or absent, bias[N] or absent → y[..., N]; floats {epsilon}. y may be x.
/// y = (x - mean) / sqrt(variance + epsilon) · weight + bias (Ba et al., 2016).
void layerNormF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.add_rms_norm.f32: x[..., N], r[..., N], weight[N] or absent → sum[..., N], y[..., N]; ints and floats of
/// cuda.rms_norm.f32. cuda.add_layer_norm.f32: x[..., N], r[..., N], weight[N] or absent, bias[N] or absent →
/// sum[..., N], y[..., N]; floats {epsilon}. sum = x + r, which may be x or r, and y is the norm of the rounded sum.
void addRmsNormF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);
void addLayerNormF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.softmax.f32: x[..., N] → y[..., N], over the last axis. y may be x. A row of -inf alone gives NaN, as the
/// formula does.
void softmaxF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.rope.f32: x[B, H, S, D], cos[B|1, S, R/2], sin[B|1, S, R/2] → y[B, H, S, D]; ints {interleaved}. y may be x.
/// The first R ≤ D elements rotate, the rest is copied. Pair i is (x[i], x[i + R/2]), or (x[2i], x[2i+1]) where
/// interleaved: (a, b) → (a·cos - b·sin, b·cos + a·sin) (Su et al., 2021).
void ropeF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.append.f32: key[B, H, S, D], value[B, H, S, Dv] → key'[B, H, S, D], value'[B, H, S, Dv]: both are copied and
/// converted to the element types of the results.
void appendF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.rope_append.f32: query[B, Hq, S, D], key[B, Hk, S, D], value[B, Hk, S, Dv], cos[B|1, S, R/2], sin[B|1, S,
/// R/2] → query'[B, Hq, S, D], key'[B, Hk, S, D], value'[B, Hk, S, Dv]; ints {interleaved}. query' and key' are
/// rotated as cuda.rope.f32 does and may be query and key, value' is copied; all are converted to the element types
/// of the results.
void ropeAppendF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.embedding.f32: ids[...] i32 or i64, table[V, N] → y[..., N]: row id of the table, from its end where id is
/// negative. An id outside of -V … V - 1 gives NaN.
void embeddingF32(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

/// cuda.embedding.affine: ids[...], values[V, bytes], scales[V, groups], zeros[V, bytes] or absent, which are dense
/// planes of a #hone.affine that is not transposed → y[..., N]; ints {bits, group, signed}. As cuda.embedding.f32.
void embeddingAffine(hone_call *, const hone_tensor *operands, const int64_t *ints, const double *floats);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_KERNELS_H
