// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch plan of the selection of blocks, and where elements of pooled keys are, on the host.

#include "cuda/kernels/attention/pool_keys.h"
#include "cuda/kernels/attention/select_blocks.h"

#include <gtest/gtest.h>

namespace hone::cuda {
namespace {

/// The rows of block n + 1 are those of a mean of block n, each element of which is in one of them.
TEST(PooledElementTest, RowsFollowTheirBlock) {
  for (int64_t size : {1, 16, 64})
    for (int64_t keySize : {1, 20, 64, 130})
      for (int64_t block : {0, 1, 7}) {
        int64_t width = divideUp(keySize, size), next = 0;
        for (int64_t position = block * size; position < (block + 1) * size; ++position)
          for (int64_t column = 0; column < width; ++column) {
            PooledElement pooled = pooledElement(position, column, size, width, 5);
            EXPECT_EQ(pooled.element, next++);
            EXPECT_EQ(pooled.end, block * size);
            EXPECT_EQ(pooled.begin, std::max<int64_t>((block - 1) * size, 5));
          }
        EXPECT_GE(next, keySize);
      }
}

/// Memory has room for every block, of a thread block or of the device within its limit, and a small batch occupies all SMs.
TEST(SelectionPlanTest, FitsAndFills) {
  for (int64_t rows : {1, 8, 131, 1000, 1000000})
    for (int64_t group : {1, 4, 64})
      for (int64_t blocks : {0, 1, 63, 128, 129, 2048, 20000})
        for (int64_t size : {1, 128, 512})
          for (int32_t multiprocessors : {1, 108, 132}) {
            SelectionPlan plan = planSelection(rows, group, blocks, size, multiprocessors);
            EXPECT_GE(plan.room, blocks);
            EXPECT_GE(plan.rowsAtOnce, 1);
            EXPECT_LE(plan.rowsAtOnce, rows);
            if (plan.splits == 0) {
              EXPECT_EQ(plan.rowsAtOnce, rows);
              EXPECT_LE(selectionSharedBytes(size, plan.room), 48 * 1024);
              continue;
            }
            EXPECT_LE(scoringSharedBytes(size), 48 * 1024);
            EXPECT_LE(plan.rowsAtOnce * (group + 1) * plan.room * 4, kSelectScratchBytes);
            EXPECT_LE(plan.splits, blocks);
            EXPECT_TRUE(plan.splits * rows >= 2 * multiprocessors || plan.splits * 64 >= blocks);
          }
}

} // namespace
} // namespace hone::cuda
