// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch of reduce_epilogue.

#include "reduce_epilogue.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

#include <algorithm>

namespace hone::cuda {

void reduceEpilogue(KernelDevice &device, const ReduceEpilogueArguments &args) {
  ReduceEpilogueArguments copy = args;
  void *pointers[] = {&copy};
  device.launch({kReduceEpilogueFatbin, "reduce_epilogue"},
                {{static_cast<uint32_t>(divideUp(args.linear.outputs, kReduceThreads)),
                  static_cast<uint32_t>(std::min(args.linear.rows, kMaxGridY)), 1},
                 {kReduceThreads, 1, 1},
                 0},
                pointers);
}

} // namespace hone::cuda
