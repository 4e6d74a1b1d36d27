// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rotary position embedding: a warp rotates a row, each lane a pair at a time.

#include "../device/numbers.h"
#include "rope.h"

extern "C" __global__ void __launch_bounds__(128) rope(const __grid_constant__ hone::cuda::RopeArguments args) {
  using namespace hone::cuda;
  int64_t row = int64_t{4} * blockIdx.x + threadIdx.x / 32;
  if (row >= args.rows)
    return;
  int64_t position = row % args.positions, sequence = args.tables == 1 ? 0 : row / (args.positions * args.heads);
  int64_t from = args.x.offset(row), to = args.y.offset(row), table = sequence * args.positions + position;
  int64_t cosine = args.cosine.offset(table), sine = args.sine.offset(table), half = args.cosine.count;
  for (int64_t i = threadIdx.x % 32; i < half; i += 32) {
    int64_t first = args.interleaved ? 2 * i : i, second = args.interleaved ? 2 * i + 1 : i + half;
    float a = loadNumber(args.x.data, from + first * args.x.inner, args.x.dtype);
    float b = loadNumber(args.x.data, from + second * args.x.inner, args.x.dtype);
    float c = loadNumber(args.cosine.data, cosine + i * args.cosine.inner, args.cosine.dtype);
    float s = loadNumber(args.sine.data, sine + i * args.sine.inner, args.sine.dtype);
    storeNumber(args.y.data, to + first * args.y.inner, args.y.dtype, a * c - b * s);
    storeNumber(args.y.data, to + second * args.y.inner, args.y.dtype, b * c + a * s);
  }
  for (int64_t i = 2 * half + threadIdx.x % 32; i < args.x.count; i += 32)
    storeNumber(args.y.data, to + i * args.y.inner, args.y.dtype,
                loadNumber(args.x.data, from + i * args.x.inner, args.x.dtype));
}
