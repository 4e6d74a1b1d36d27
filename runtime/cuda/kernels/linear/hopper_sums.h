// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of warpgroups on their way to y: pieces of 64 rows by 64 outputs in shared memory.

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

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_LINEAR_HOPPER_SUMS_H
