// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pooled keys of blocks. Elements that follow each other are of the same keys, and lie beside each other in them.

#include "../device/elements.h"
#include "../device/overlap.h"
#include "pool_keys.h"

extern "C" __global__ void __launch_bounds__(hone::cuda::kPoolElements *hone::cuda::kPoolWarps)
    pool_keys(const __grid_constant__ hone::cuda::PoolKeysArguments args) {
  using namespace hone::cuda;
  enterInOrder();
  __shared__ float sums[kPoolWarps][kPoolElements];
  auto tiles = static_cast<uint32_t>(args.tiles), matrix = blockIdx.x / tiles;
  int lane = threadIdx.x % kPoolElements, warp = threadIdx.x / kPoolElements;
  uint32_t number = blockIdx.x % tiles * kPoolElements + lane, row = number / args.width, column = number % args.width;
  int64_t begin = hone::kernels::elementOr(args.keyBegin, matrix / static_cast<uint32_t>(args.heads), 0);
  PooledElement pooled = pooledElement(args.positions - args.fresh + row, column, args.blockSize, args.width, begin);
  bool isThere = row < args.fresh;
  float sum = 0;
  if (isThere && pooled.element < args.size) {
    int64_t offset = args.keys.rows.offset(matrix * args.positions) + pooled.element * args.keys.rows.inner;
    for (int64_t key = pooled.begin + warp; key < pooled.end; key += kPoolWarps)
      sum += loadElement(args.keys.rows.data, offset + key * args.keys.rowStride, args.keys.rows.dtype);
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || !isThere)
    return;
#pragma unroll
  for (int other = 1; other < kPoolWarps; ++other)
    sum += sums[other][lane];
  int64_t count = pooled.end - pooled.begin;
  storeElement(args.pooled.data, args.pooled.offset(matrix * args.fresh + row) + column * args.pooled.inner, HONE_F32,
               count > 1 ? sum / static_cast<float>(count) : sum);
}
