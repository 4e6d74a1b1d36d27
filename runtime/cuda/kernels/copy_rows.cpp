// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch of copy_rows.

#include "copy_rows.h"
#include "fatbin_index.h"
#include "kernel_device.h"

#include <algorithm>

namespace hone::cuda {

RowView copyRows(KernelDevice &device, const RowView &from, int64_t rows, int32_t type) {
  CopyRowsArguments args = {from, nullptr, rows, roundUp(from.count, 8), type};
  args.to = static_cast<char *>(device.acquire(static_cast<uint64_t>(rows * args.stride * bytesOf(type))));
  void *pointers[] = {&args};
  bool isTransposed = isColumnMajor(from);
  int64_t columns = isTransposed ? kTransposedTile : 256, height = isTransposed ? kTransposedTile : 1;
  device.launch({kCopyRowsFatbin, isTransposed ? "copy_columns" : "copy_rows"},
                {{static_cast<uint32_t>(divideUp(args.stride, columns)),
                  static_cast<uint32_t>(std::min<int64_t>(divideUp(rows, height), kMaxGridY)), 1},
                 {256, 1, 1},
                 0},
                pointers);
  return {args.to, type, 1, args.stride, 1, {1, rows}, {0, 0, args.stride}};
}

} // namespace hone::cuda
