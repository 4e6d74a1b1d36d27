// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch plan of linear attention, on the host.

#include "cuda/kernels/linear_attention/linear_attention.h"

#include <gtest/gtest.h>

namespace hone::cuda {
namespace {

/// Every column of every state belongs to one warp, keys fit into the kernel's room, and blocks are as large as leaves
/// most SMs one.
TEST(LinearAttentionPlanTest, CoversStates) {
  for (int64_t states : {1, 3, 32, 4096})
    for (int64_t keySize : {0, 1, 64, 65, 128, 192, 256})
      for (int64_t valueSize : {1, 8, 9, 64, 128, 256})
        for (int32_t multiprocessors : {1, 108, 132}) {
          LinearAttentionPlan plan = planLinearAttention(states, keySize, valueSize, multiprocessors);
          EXPECT_GE(plan.keyRoom, keySize);
          EXPECT_TRUE(plan.keyRoom == 64 || plan.keyRoom / 2 < keySize);
          EXPECT_LE(plan.keyRoom, kernels::kMostLinearAttentionKeys);
          EXPECT_GE(plan.slices * kSliceColumns, valueSize);
          EXPECT_LT((plan.slices - 1) * kSliceColumns, valueSize);
          EXPECT_GE(plan.blocks * plan.warps, states * plan.slices);
          EXPECT_EQ(plan.blocks % states, 0) << "a block has slices of two states";
          EXPECT_LE((plan.blocks / states - 1) * plan.warps, plan.slices - 1) << "a block has no slice";
          EXPECT_TRUE(plan.warps == 1 || 4 * plan.blocks >= 3 * multiprocessors);
        }
  // A step of 32 heads of 128 by 128: 128 blocks of four warps, all at once on an H200.
  EXPECT_EQ(planLinearAttention(32, 128, 128, 132).warps, kMostSliceWarps);
}

} // namespace
} // namespace hone::cuda
