// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of one query a sequence on sm_90 (decoding): which problems it takes, and the layout of shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_HOPPER_DECODE_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_HOPPER_DECODE_H

#include "flash.h"

namespace hone::cuda {

constexpr int32_t kDecodeBlocks = 8, kDecodeWarps = 4; // of a cluster, and of a block
constexpr int32_t kDecodeKeys = 16;                    // of a tile
constexpr int32_t kDecodeStages = 3;                   // tiles of a warp in flight
constexpr int32_t kDecodeRows = 16;                    // query heads that share a KV head at most

/// Queries in two planes, and the tiles of each warp; afterwards sums [warps][rows][size] with (running maximum, sum of
/// exponentials) [warps][rows], and those of the block.
HONE_HOST_DEVICE constexpr int32_t decodeQueryBytes(int32_t size) { return 2 * kDecodeRows * size * 2; }
HONE_HOST_DEVICE constexpr int32_t decodeTileBytes(int32_t size) { return kDecodeKeys * size * 2; }
HONE_HOST_DEVICE constexpr int32_t decodeSharedBytes(int32_t size) {
  return decodeQueryBytes(size) + kDecodeWarps * kDecodeStages * 2 * decodeTileBytes(size);
}
static_assert((kDecodeWarps + 1) * kDecodeRows * (128 + 2) * 4 <= decodeSharedBytes(128));
static_assert((kDecodeWarps + 1) * kDecodeRows * (64 + 2) * 4 <= decodeSharedBytes(64));

/// `attention` has as many keys less as the state had positions when the call began.
struct DecodeArguments {
  AttentionArguments attention;
  const int64_t *stateLength;
};

/// Whether the clusters of so many heads are better than split-KV, which fills the device and pays for a merge: over
/// long caches they are as long as they occupy the SMs.
HONE_HOST_DEVICE constexpr bool suitsDecodeClusters(int64_t heads, int64_t keys, int32_t multiprocessors) {
  return keys <= 4096 || heads * kDecodeBlocks >= multiprocessors;
}

struct DeviceLimits;
class KernelDevice;

bool fitsHopperDecode(const DeviceLimits &limits, const AttentionArguments &args);
void runHopperDecode(KernelDevice &device, const AttentionArguments &args);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_HOPPER_DECODE_H
