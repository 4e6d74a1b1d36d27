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
