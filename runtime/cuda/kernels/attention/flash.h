// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FlashAttention on tensor cores: tiles of rows and keys, and the layout of shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_ATTENTION_FLASH_H
#define HONE_RUNTIME_CUDA_KERNELS_ATTENTION_FLASH_H

#include "attention_arguments.h"

namespace hone::cuda {

constexpr int32_t kFlashWarps = 4, kFlashKeys = 64; // of a block, and of a tile

constexpr int64_t kMostFlashRows = int64_t{1} << 30; // of a sequence and KV head

/// The head size that the kernel is compiled for, zero-padded: 64 or 128; 0 where the head is larger.
HONE_HOST_DEVICE constexpr int32_t flashSize(int32_t size, int32_t valueSize) {
  int32_t larger = size > valueSize ? size : valueSize;
  return larger <= 64 ? 64 : larger <= 128 ? 128 : 0;
}

/// Rows of a block are 16 for each of `rowWarps` warps: with four, each warp has its rows and all keys; with one, all
/// warps have the same rows, and each has a quarter of the keys of a tile.
///
/// A row is a query of one of the heads that share a KV head (GQA), those of one query first, so that keys are read
/// once for all.
struct FlashPlan {
  int32_t size, rowWarps;
  int64_t rows, tiles; // rows of a sequence and KV head, and blocks for them
};

HONE_HOST_DEVICE constexpr FlashPlan planFlash(int32_t size, int32_t valueSize, int64_t queries,
                                               int64_t headsPerKvHead) {
  FlashPlan plan = {flashSize(size, valueSize), 4, queries * headsPerKvHead, 0};
  if (plan.rows <= 16)
    plan.rowWarps = 1;
  plan.tiles = divideUp(plan.rows, 16 * plan.rowWarps);
  return plan;
}

/// Split-KV. Blocks whose warps divide the keys, as in decoding, are bound by the latency of their tiles, one after another, so
/// splits have one tile.
HONE_HOST_DEVICE constexpr int32_t flashSplits(const FlashPlan &plan, int64_t heads, int64_t keys,
                                               int32_t multiprocessors) {
  constexpr int32_t kResidents = 3; // blocks of an SM by their shared memory
  return kvSplits(plan.tiles * heads, keys, multiprocessors, kResidents,
                  plan.rowWarps == 1 ? kFlashKeys : kLeastSplitKeys);
}

/// Bytes of a tile of keys or of values.
HONE_HOST_DEVICE constexpr int32_t flashTileBytes(int32_t size, int32_t planes) {
  return kFlashKeys * size * 2 * planes;
}

/// Pipeline stages. Keys and values that are converted to two planes are not prefetched.
HONE_HOST_DEVICE constexpr int32_t flashStages(int32_t planes) { return planes == 1 ? 2 : 1; }

HONE_HOST_DEVICE constexpr int32_t flashQueryBytes(int32_t size, int32_t rowWarps, int32_t planes) {
  return 16 * rowWarps * size * 2 * planes;
}

/// Queries and tiles; the merge reuses the memory for the sums of 16 rows of each warp, their running maxima and sums
/// of exponentials.
HONE_HOST_DEVICE constexpr int32_t flashSharedBytes(int32_t size, int32_t rowWarps, int32_t cachePlanes,
                                                    int32_t queryPlanes) {
  int32_t operands =
      flashQueryBytes(size, rowWarps, queryPlanes) + 2 * flashStages(cachePlanes) * flashTileBytes(size, cachePlanes);
  int32_t sums = kFlashWarps * 16 * (size + 2) * 4;
  return operands > sums ? operands : sums;
}

/// Byte offset of 16-byte chunk `part` of row `row`, of rows of `size` elements. Chunks are swizzled from row to row,
/// so that the eight rows that ldmatrix reads have no bank conflicts.
HONE_HOST_DEVICE constexpr int32_t flashByte(int32_t size, int32_t row, int32_t part) {
  return row * size * 2 + (part ^ (row & 7)) * 16;
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_ATTENTION_FLASH_H
