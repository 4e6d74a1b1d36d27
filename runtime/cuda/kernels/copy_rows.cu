// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of any strides and type to dense zero-padded rows, for kernels that read 16 bytes at a time.

#include "copy_rows.h"
#include "device/elements.h"

extern "C" __global__ void __launch_bounds__(256)
    copy_rows(const __grid_constant__ hone::cuda::CopyRowsArguments args) {
  using namespace hone::cuda;
  int64_t column = int64_t{256} * blockIdx.x + threadIdx.x;
  if (column >= args.stride)
    return;
  for (int64_t row = blockIdx.y; row < args.rows; row += gridDim.y) {
    float value = 0;
    if (column < args.from.count)
      value = loadElement(args.from.data, args.from.offset(row) + column * args.from.inner, args.from.dtype);
    storeElement(args.to, row * args.stride + column, args.type, value);
  }
}

/// The same of rows whose neighbours are elements of a column, by tiles in shared memory.
extern "C" __global__ void __launch_bounds__(256)
    copy_columns(const __grid_constant__ hone::cuda::CopyRowsArguments args) {
  using namespace hone::cuda;
  __shared__ float tile[kTransposedTile][kTransposedTile + 1];
  int lane = threadIdx.x % kTransposedTile, warp = threadIdx.x / kTransposedTile;
  int64_t left = int64_t{kTransposedTile} * blockIdx.x, step = int64_t{kTransposedTile} * gridDim.y;
  for (int64_t top = int64_t{kTransposedTile} * blockIdx.y; top < args.rows; top += step) {
    for (int i = warp; i < kTransposedTile; i += kTransposingWarps) {
      bool exists = top + lane < args.rows && left + i < args.from.count;
      tile[i][lane] =
          exists ? loadElement(args.from.data, top + lane + (left + i) * args.from.inner, args.from.dtype) : 0;
    }
    __syncthreads();
    for (int i = warp; i < kTransposedTile; i += kTransposingWarps)
      if (top + i < args.rows && left + lane < args.stride)
        storeElement(args.to, (top + i) * args.stride + left + lane, args.type, tile[lane][i]);
    __syncthreads();
  }
}
