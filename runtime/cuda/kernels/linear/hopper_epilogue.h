// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What GEMMs on sm_90a share: the number of persistent blocks and their clusters, and tiles of 64 rows by 64 outputs
// that stage accumulators in shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_EPILOGUE_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_EPILOGUE_H

#include "../host_device.h"

namespace hone::cuda {

constexpr int32_t kStagingSide = 64, kStagingBytes = kStagingSide * kStagingSide * 4;

/// Index of (row, output) in a staging tile, swizzled. Lanes that write at once have four consecutive rows with pairs
/// of outputs, or four rows two apart with eight outputs each: no bank conflicts.
HONE_HOST_DEVICE constexpr int32_t stagingIndex(int32_t row, int32_t output) {
  return row * kStagingSide + (output ^ ((row & 2) | ((row ^ row >> 2) & 1)) << 3);
}

/// Whether blocks form clusters of two that multicast what both need, of `tiles` tiles along that side: not where an
/// odd tile out wastes more than a sixteenth.
HONE_HOST_DEVICE constexpr bool usesClusters(int64_t tiles) { return tiles % 2 == 0 || tiles > 16; }

/// Blocks of a persistent launch: one an SM, but no more than tiles; with clusters an even number.
HONE_HOST_DEVICE constexpr uint32_t persistentBlocks(int64_t tiles, bool isClustered, int32_t multiprocessors) {
  int64_t blocks = tiles < multiprocessors ? tiles : multiprocessors;
  return static_cast<uint32_t>(!isClustered ? blocks : blocks > 1 ? blocks / 2 * 2 : 2);
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_EPILOGUE_H
