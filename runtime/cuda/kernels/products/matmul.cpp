// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of products of several matrices.

#include "matmul.h"

#include "../entry.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

#include <algorithm>

namespace hone::cuda {
namespace {

Matrices matricesOf(const hone_tensor &tensor) {
  Matrices matrices = {static_cast<char *>(tensor.data),
                       tensor.dtype,
                       tensor.strides[tensor.rank - 2],
                       tensor.strides[tensor.rank - 1],
                       {}};
  for (int32_t axis = tensor.rank - 2; axis-- > 0;)
    matrices.strides[tensor.rank - 3 - axis] = tensor.sizes[axis] == 1 ? 0 : tensor.strides[axis];
  return matrices;
}

void run(hone_call *call, const kernels::Call<kernels::Matmul, kernels::NoWeight> &product) {
  const auto &[a, b, c] = product.operands;
  MatmulArguments args = {matricesOf(a),
                          matricesOf(b),
                          matricesOf(c),
                          c.sizes[c.rank - 2],
                          a.sizes[a.rank - 1],
                          c.sizes[c.rank - 1],
                          1,
                          {},
                          product.ints.accumulates != 0};
  std::fill_n(args.sizes, kLeadingAxes, 1);
  for (int32_t axis = c.rank - 2; axis-- > 0;) {
    args.sizes[c.rank - 3 - axis] = c.sizes[axis];
    args.matrices *= c.sizes[axis];
  }
  if (args.rows == 0 || args.columns == 0 || args.matrices == 0)
    return;
  void *pointers[] = {&args};
  kernelDevice(call).launch({kMatmulFatbin, "matmul"},
                            {{static_cast<uint32_t>(divideUp(args.columns, kProductTile)),
                              static_cast<uint32_t>(std::min(divideUp(args.rows, kProductTile), kMaxGridY)),
                              static_cast<uint32_t>(std::min(args.matrices, kMaxGridY))},
                             {kProductThreads, 1, 1},
                             0},
                            pointers);
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/matmul.def"
#undef HONE_KERNEL

} // namespace hone::cuda
