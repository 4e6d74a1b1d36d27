// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent GEMV: the kernel arguments, the layout of shared memory and the launch plan.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_STREAM_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_STREAM_H

#include "gemv.h"

namespace hone::cuda {

constexpr int32_t kStreamRows = 8; // of x at most: the columns of an operand B

/// The layers of a launch, and their tiles in a row: siblings with 16 outputs a tile, or a gate and an up layer with 8
/// outputs of each.
struct StreamArguments : LinearLayers {
  InputNorm norm; // with x of f32 alone; its weight is f32, in vectors
  int32_t tiles;
  int32_t isGated;
};

/// Shared memory of a block: x, if it is held there, two buffers of partial sums [slices][rows][16], and the rings of
/// weights. The second buffer has the sums of squares [slices][rows] of a norm before. A row of x has a plane of 64 bytes for 32 inputs, and with f32 one of lo terms after each; rows are padded
/// by 64 bytes, so that lanes that read two rows meet no bank conflict.
struct StreamLayout {
  int32_t planes, chunks, rows, slices; // planes: 0 where x is not held

  HONE_HOST_DEVICE constexpr int32_t rowBytes() const {
    return 64 * (static_cast<int32_t>(roundUp(planes * chunks, 2)) + 1);
  }
  HONE_HOST_DEVICE constexpr int32_t sumsAt() const { return planes == 0 ? 0 : rows * rowBytes(); }
  HONE_HOST_DEVICE constexpr int32_t squaresAt() const { return sumsAt() + 4 * sumsOfBuffer(); }
  HONE_HOST_DEVICE constexpr int32_t sumsOfBuffer() const { return slices * rows * 16; }
  HONE_HOST_DEVICE constexpr int32_t ringAt() const { return sumsAt() + 2 * 4 * sumsOfBuffer(); }
  HONE_HOST_DEVICE constexpr int32_t bytes(int32_t depth) const { return ringAt() + slices * depth * 1024; }
};

struct StreamPlan {
  int32_t slices, depth; // depth: chunks in the ring of a warp
  bool holdsX;
  int32_t blocks, sharedBytes;
};

/// `planes`: of x, 2 where it is split. The sums of a row do not depend on the number of rows: they follow from the
/// K-slices alone.
///
/// Sixteen warps with six chunks each keep 96 KiB in flight, and two blocks fit on an SM of an H200, that of the next
/// kernel too. Where a warp would have few chunks of a tile, tiles end often, and two blocks of eight warps do better.
HONE_HOST_DEVICE constexpr StreamPlan planStream(int64_t rows, int32_t tiles, int64_t inputs, int32_t planes,
                                                 int32_t multiprocessors, int32_t sharedBytes) {
  auto chunks = static_cast<int32_t>(divideUp(inputs, kPartInputs));
  bool areShort = chunks < 64 && tiles > multiprocessors;
  StreamPlan plan = {areShort ? 8 : 16, areShort ? 12 : 6, true, 0, 0};
  StreamLayout layout = {planes, chunks, static_cast<int32_t>(rows), plan.slices};
  if (layout.bytes(plan.depth) > sharedBytes)
    plan.depth = 3;
  if (layout.bytes(plan.depth) > sharedBytes) {
    plan.holdsX = false;
    layout.planes = 0;
  }
  plan.sharedBytes = layout.bytes(plan.depth);
  int64_t most = int64_t{multiprocessors} * (areShort ? 2 : 1);
  plan.blocks = static_cast<int32_t>(tiles < most ? tiles : most);
  // Where every SM is to have one block, the next launch must not put two of its own on some of them.
  if (!areShort && tiles > multiprocessors && plan.sharedBytes <= sharedBytes / 2)
    plan.sharedBytes = sharedBytes / 2 + 1;
  return plan;
}

enum class Format;
class KernelDevice;

/// Whether layers like this one run as persistent GEMV.
bool fitsStream(Format format, const LinearArguments &layer);

/// Enqueues `count` layers of one x, of rows that `inputTypeOf` names, of which all but the launch plan is set.
void runStream(KernelDevice &device, Format format, StreamArguments &args, int32_t count);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_STREAM_H
