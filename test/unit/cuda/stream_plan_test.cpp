// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of persistent GEMV, on the host.

#include "cuda/kernels/linear/stream.h"

#include "gtest/gtest.h"

namespace hone::cuda {
namespace {

/// Sums follow from the K-slices, which do not depend on the number of rows; where one block an SM fills the device, two of a
/// launch do not fit on an SM.
TEST(StreamPlanTest, FitsAndKeepsSlices) {
  for (int32_t sharedBytes : {99 << 10, 163 << 10, 227 << 10})
    for (int32_t multiprocessors : {1, 84, 132})
      for (int32_t tiles : {1, 56, 304, 1792})
        for (int64_t inputs : {8, 896, 4096, 14336, 32800})
          for (int32_t planes : {1, 2}) {
            StreamPlan one = planStream(1, tiles, inputs, planes, multiprocessors, sharedBytes);
            for (int64_t rows = 1; rows <= kStreamRows; ++rows) {
              StreamPlan plan = planStream(rows, tiles, inputs, planes, multiprocessors, sharedBytes);
              EXPECT_EQ(plan.slices, one.slices);
              EXPECT_EQ(plan.blocks, one.blocks);
              EXPECT_LE(plan.blocks, tiles);
              EXPECT_LE(plan.sharedBytes, sharedBytes) << rows << " rows of " << inputs;
              auto chunks = static_cast<int32_t>(divideUp(inputs, kPartInputs));
              StreamLayout layout = {plan.holdsX ? planes : 0, chunks, static_cast<int32_t>(rows), plan.slices};
              EXPECT_GE(plan.sharedBytes, layout.bytes(plan.depth));
              if (plan.slices == 16 && tiles > multiprocessors)
                EXPECT_GT(2 * plan.sharedBytes, sharedBytes);
            }
          }
}

} // namespace
} // namespace hone::cuda
