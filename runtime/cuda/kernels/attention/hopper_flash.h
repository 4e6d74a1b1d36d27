// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefill attention on sm_90a: which blocks have which queries, in which order, and the layout of shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_HOPPER_FLASH_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_HOPPER_FLASH_H

#include "../tensor_map.h"
#include "attention_arguments.h"

namespace hone::cuda {

constexpr int32_t kHopperFlashQueries = 128, kHopperFlashKeys = 128; // queries of a block, and keys of a tile
constexpr int32_t kHopperFlashStages = 2;                            // tiles of keys and of values in shared memory
constexpr int32_t kHopperFlashConsumers = 2;                         // warpgroups, with 64 queries each
constexpr int32_t kHopperFlashThreads = 128 * (kHopperFlashConsumers + 1);

/// A block has a tile of queries of one head. Heads are divided into sections whose keys and values stay in L2.
/// Blocks of a section start with the last queries of all its heads, which see the most keys, so that the short ones
/// fill the tail.
struct HopperFlashPlan {
  int32_t tiles;        // of the queries of a head
  int32_t heads;        // of all sequences
  int32_t sectionHeads; // of a section; the last may have fewer

  HONE_HOST_DEVICE constexpr int64_t blocks() const { return int64_t{tiles} * heads; }
};

/// The tile and the head of a block.
struct HopperFlashTile {
  int32_t tile, head;
};

HONE_HOST_DEVICE constexpr HopperFlashTile flashTileOf(const HopperFlashPlan &plan, uint32_t block) {
  uint32_t ofSection = static_cast<uint32_t>(plan.sectionHeads) * static_cast<uint32_t>(plan.tiles);
  uint32_t section = block / ofSection, rest = block % ofSection;
  int32_t first = static_cast<int32_t>(section) * plan.sectionHeads;
  int32_t left = plan.heads - first;
  auto heads = static_cast<uint32_t>(left < plan.sectionHeads ? left : plan.sectionHeads);
  return {plan.tiles - 1 - static_cast<int32_t>(rest / heads), first + static_cast<int32_t>(rest % heads)};
}

/// Keys and values of a section are at most 32 MiB of the 50 MiB of an H100's L2, and at least those of one KV head.
HONE_HOST_DEVICE constexpr HopperFlashPlan planHopperFlash(int64_t heads, int64_t headsPerKvHead, int64_t queries,
                                                           int64_t keys, int32_t size) {
  constexpr int64_t kCacheBytes = int64_t{32} << 20;
  int64_t kvHeads = kCacheBytes / (keys * size * 2 * 2);
  int64_t section = (kvHeads < 1 ? 1 : kvHeads) * headsPerKvHead;
  return {static_cast<int32_t>(divideUp(queries, kHopperFlashQueries)), static_cast<int32_t>(heads),
          static_cast<int32_t>(section < heads ? section : heads)};
}

/// The tiles of keys, from `first` on, that some query of a block sees.
struct KeyTiles {
  int32_t first, count;
};

HONE_HOST_DEVICE constexpr KeyTiles keyTilesOf(const KeyInterval &keys) {
  if (keys.end <= keys.begin)
    return {0, 0};
  auto first = static_cast<int32_t>(keys.begin / kHopperFlashKeys);
  return {first, static_cast<int32_t>(divideUp(keys.end, kHopperFlashKeys)) - first};
}

/// Whether a tile has keys that some query does not see. The first query sees none from `firstEnd` on, the last none
/// before `lastBegin`.
HONE_HOST_DEVICE constexpr bool needsMask(int32_t tile, int64_t lastBegin, int64_t firstEnd) {
  int64_t begin = int64_t{tile} * kHopperFlashKeys;
  return begin < lastBegin || begin + kHopperFlashKeys > firstEnd;
}

/// The layout of shared memory: queries, tiles of keys, tiles of values, mbarriers. A matrix of `size` columns is
/// stored as consecutive matrices of 64 columns, the width of a swizzle.
struct HopperFlashLayout {
  int32_t queries, keys, values, barriers, bytes;
};

HONE_HOST_DEVICE constexpr int32_t hopperFlashQueryBytes(int32_t size) { return kHopperFlashQueries * size * 2; }
HONE_HOST_DEVICE constexpr int32_t hopperFlashTileBytes(int32_t size) { return kHopperFlashKeys * size * 2; }
HONE_HOST_DEVICE constexpr HopperFlashLayout hopperFlashLayout(int32_t size) {
  constexpr int32_t kBarriers = 1 + 4 * kHopperFlashStages;
  int32_t keys = hopperFlashQueryBytes(size), values = keys + kHopperFlashStages * hopperFlashTileBytes(size);
  int32_t barriers = values + kHopperFlashStages * hopperFlashTileBytes(size);
  return {0, keys, values, barriers, barriers + 8 * kBarriers};
}

struct HopperFlashArguments {
  AttentionArguments attention;
  HopperFlashPlan plan;
};

struct DeviceLimits;
class KernelDevice;

/// Whether the kernel supports the problem: queries, keys and values of one 16-bit type with heads of 64 or 128
/// elements, at least 64 queries, no bias and no ALiBi, and enough blocks without split-KV.
bool fitsHopperFlash(const DeviceLimits &limits, const AttentionArguments &args);
void runHopperFlash(KernelDevice &device, const AttentionArguments &args);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_HOPPER_FLASH_H
