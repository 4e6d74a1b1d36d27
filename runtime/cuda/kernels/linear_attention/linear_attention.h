// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear attention: arguments and the launch plan. Columns of a state do not depend on each other, so warps divide the
// values: a warp holds all rows of eight columns in registers, 32 bytes of a row, from the first token to the last.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_ATTENTION_LINEAR_ATTENTION_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_ATTENTION_LINEAR_ATTENTION_H

#include "../row_view.h"
#include "hone/kernels/limits.h"

namespace hone::cuda {

/// A tensor [B, T, …] as rows, with the strides of sequences, tokens and, where it has four axes, heads, in elements.
struct TokenRows {
  RowView rows;
  int64_t strides[3];
};

struct LinearAttentionArguments {
  TokenRows query, key, value, out;
  TokenRows decay, beta;  // absent without data
  MatrixView state, next; // absent without data; next may be state
  int64_t tokens, heads;  // KV heads
  int64_t slices;         // of a state, each eight columns
  int32_t group;          // query heads of a KV head
  int32_t keySize, valueSize;
  float scale;
};

constexpr int32_t kSliceColumns = 8;
constexpr int32_t kMostSliceWarps = 4; // of a block: 32 columns, a cache line of each row

struct LinearAttentionPlan {
  int32_t keyRoom; // of the kernel: 64, 128 or 256
  int32_t warps;   // of a block, a slice each
  int64_t slices;  // of a state
  int64_t blocks;  // for all states; a block has slices of one state
};

/// Blocks are as large as leaves three quarters of the SMs one: warps of a block stage tokens for each other.
HONE_HOST_DEVICE constexpr LinearAttentionPlan planLinearAttention(int64_t states, int64_t keySize, int64_t valueSize,
                                                                   int32_t multiprocessors) {
  LinearAttentionPlan plan = {64, kMostSliceWarps, divideUp(valueSize, kSliceColumns), 0};
  while (plan.keyRoom < keySize)
    plan.keyRoom *= 2;
  auto blocksOf = [&](int32_t warps) { return states * divideUp(plan.slices, warps); };
  while (plan.warps > 1 && (plan.warps / 2 >= plan.slices || 4 * blocksOf(plan.warps) < 3 * int64_t{multiprocessors}))
    plan.warps /= 2;
  plan.blocks = blocksOf(plan.warps);
  return plan;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_ATTENTION_LINEAR_ATTENTION_H
