// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host side of pooled keys.

#include "pool_keys.h"
#include "../entry.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

namespace hone::cuda {
namespace {

void run(hone_call *call, const kernels::Call<kernels::PoolKeys, kernels::NoWeight> &pool) {
  const hone_tensor &keys = pool.operands.keys, &pooled = pool.operands.pooled;
  if (isAbsent(pooled))
    return;
  PoolKeysArguments args = {};
  args.keys = matricesOf(keys);
  args.pooled = rowsOf(pooled);
  args.keyBegin = kernels::viewIntegers<1>(pool.operands.keyBegin);
  args.heads = pooled.sizes[1];
  args.positions = keys.sizes[2];
  args.fresh = pooled.sizes[2];
  args.size = static_cast<int32_t>(keys.sizes[3]);
  args.width = static_cast<int32_t>(pooled.sizes[3]);
  args.blockSize = static_cast<int32_t>(pool.ints.size);
  args.tiles = divideUp(args.fresh * args.width, kPoolElements);
  void *pointers[] = {&args};
  kernelDevice(call).launch(
      {kPoolKeysFatbin, "pool_keys"},
      {{static_cast<uint32_t>(pooled.sizes[0] * args.heads * args.tiles), 1, 1}, {kPoolElements * kPoolWarps, 1, 1}, 0},
      pointers);
}

} // namespace

#define HONE_KERNEL HONE_DEFINE_KERNEL
#include "hone/kernels/cuda/pool_keys.def"
#undef HONE_KERNEL

} // namespace hone::cuda
