// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plan of attention for many queries on sm_90a: which blocks have which queries, in which order, and shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_HOPPER_FLASH_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_HOPPER_FLASH_H

#include "../tensor_map.h"
#include "attention_arguments.h"

namespace hone::cuda {

constexpr int32_t kHopperRows = 128, kHopperKeys = 128; // queries of a block, and keys of a tile
constexpr int32_t kHopperStages = 2;                    // tiles of keys and of values in shared memory
constexpr int32_t kHopperConsumers = 2;                 // warpgroups with 64 of the queries each
constexpr int32_t kHopperThreads = 128 * (kHopperConsumers + 1);

/// One block has a tile of queries of one head. Heads are divided into sections whose keys and values stay in the second-level cache;
/// blocks of a section have the last queries of all of its heads first, which see the most keys, so that the short ones
/// fill the gaps at the end.
struct HopperPlan {
  int32_t tiles;        // of the queries of a head
  int32_t heads;        // of all sequences
  int32_t sectionHeads; // of a section; the last may have fewer

  HONE_HOST_DEVICE constexpr int64_t blocks() const { return int64_t{tiles} * heads; }
};

/// The tile and the head of a block.
struct HopperUnit {
  int32_t tile, head;
};

HONE_HOST_DEVICE constexpr HopperUnit unitOf(const HopperPlan &plan, uint32_t block) {
  uint32_t ofSection = static_cast<uint32_t>(plan.sectionHeads) * static_cast<uint32_t>(plan.tiles);
  uint32_t section = block / ofSection, rest = block % ofSection;
  int32_t first = static_cast<int32_t>(section) * plan.sectionHeads;
  int32_t left = plan.heads - first;
  auto heads = static_cast<uint32_t>(left < plan.sectionHeads ? left : plan.sectionHeads);
  return {plan.tiles - 1 - static_cast<int32_t>(rest / heads), first + static_cast<int32_t>(rest % heads)};
}

/// Keys and values of a section are at most 32 MiB, of the 50 MiB of an H100's cache, and at least those of one key head.
HONE_HOST_DEVICE constexpr HopperPlan planHopper(int64_t heads, int64_t headsOfKey, int64_t queries, int64_t keys,
                                                 int32_t size) {
  constexpr int64_t kCacheBytes = int64_t{32} << 20;
  int64_t keyHeads = kCacheBytes / (keys * size * 2 * 2);
  int64_t section = (keyHeads < 1 ? 1 : keyHeads) * headsOfKey;
  return {static_cast<int32_t>(divideUp(queries, kHopperRows)), static_cast<int32_t>(heads),
          static_cast<int32_t>(section < heads ? section : heads)};
}

/// Whole tiles of keys, from tile `first` on, that some query of a block sees.
struct HopperTiles {
  int32_t first, count;
};

HONE_HOST_DEVICE constexpr HopperTiles tilesOf(const KeyRange &keys) {
  if (keys.end <= keys.begin)
    return {0, 0};
  auto first = static_cast<int32_t>(keys.begin / kHopperKeys);
  return {first, static_cast<int32_t>(divideUp(keys.end, kHopperKeys)) - first};
}

/// Whether a tile has keys that not all queries see, the first of which sees none from `firstEnd` on and the last none before `lastBegin`.
HONE_HOST_DEVICE constexpr bool needsMask(int32_t tile, int64_t lastBegin, int64_t firstEnd) {
  int64_t begin = int64_t{tile} * kHopperKeys;
  return begin < lastBegin || begin + kHopperKeys > firstEnd;
}

/// Where things lie in shared memory: queries, tiles of keys, tiles of values, barriers. A matrix of `size` numbers a row is matrices of
/// 64, one behind the other.
struct HopperLayout {
  int32_t queries, keys, values, barriers, bytes;
};

HONE_HOST_DEVICE constexpr int32_t hopperQueryBytes(int32_t size) { return kHopperRows * size * 2; }
HONE_HOST_DEVICE constexpr int32_t hopperTileBytes(int32_t size) { return kHopperKeys * size * 2; }
HONE_HOST_DEVICE constexpr HopperLayout hopperLayout(int32_t size) {
  constexpr int32_t kBarriers = 1 + 4 * kHopperStages;
  int32_t keys = hopperQueryBytes(size), values = keys + kHopperStages * hopperTileBytes(size);
  int32_t barriers = values + kHopperStages * hopperTileBytes(size);
  return {0, keys, values, barriers, barriers + 8 * kBarriers};
}

struct HopperArguments {
  AttentionArguments attention;
  HopperPlan plan;
};

struct DeviceLimits;
class KernelDevice;

/// Whether the kernel has this problem: queries, keys and values of the same 16 bits with heads of 64 or 128 numbers, at least 64
/// queries, no bias and no alibi, and enough blocks without dividing the keys.
bool fitsHopper(const DeviceLimits &limits, const AttentionArguments &args);
void runHopper(KernelDevice &device, const AttentionArguments &args);

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_HOPPER_FLASH_H
