// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels of many rows on sm_90a share: how many blocks there are, and sums of warpgroups on their way to y, pieces of 64 rows by 64
// outputs in shared memory.

#ifndef HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SUMS_H
#define HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SUMS_H

#include "../host_device.h"

namespace hone::cuda {

constexpr int32_t kPieceSide = 64, kPieceBytes = kPieceSide * kPieceSide * 4;

/// Place of sum (row, output). Lanes that write at once have four rows that follow each other, with pairs of outputs, or four that are
/// two apart, with eight outputs each: in different banks.
HONE_HOST_DEVICE constexpr int32_t piecePlace(int32_t row, int32_t output) {
  return row * kPieceSide + (output ^ ((row & 2) | ((row ^ row >> 2) & 1)) << 3);
}

/// Whether two blocks of a cluster have tiles beside each other, of `tiles` along that side, and read what both need once: not where
/// an odd one out would be more than a sixteenth.
HONE_HOST_DEVICE constexpr bool arePaired(int64_t tiles) { return tiles % 2 == 0 || tiles > 16; }

/// One for each multiprocessor, which take tile after tile, but no more than tiles; of pairs an even number.
HONE_HOST_DEVICE constexpr uint32_t blocksToLaunch(int64_t tiles, bool isPaired, int32_t multiprocessors) {
  int64_t blocks = tiles < multiprocessors ? tiles : multiprocessors;
  return static_cast<uint32_t>(!isPaired ? blocks : blocks > 1 ? blocks / 2 * 2 : 2);
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SUMS_H
