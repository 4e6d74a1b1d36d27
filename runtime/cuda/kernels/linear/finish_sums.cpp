// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launch of finish_sums.

#include "finish_sums.h"
#include "../fatbin_index.h"
#include "../kernel_device.h"

#include <algorithm>

namespace hone::cuda {

void finishSums(KernelDevice &device, const FinishSumsArguments &args) {
  FinishSumsArguments copy = args;
  void *pointers[] = {&copy};
  device.launch({kFinishSumsFatbin, "finish_sums"},
                {{static_cast<uint32_t>(divideUp(args.linear.outputs, kFinishThreads)),
                  static_cast<uint32_t>(std::min(args.linear.rows, kMostBlocksAlongY)), 1},
                 {kFinishThreads, 1, 1},
                 0},
                pointers);
}

} // namespace hone::cuda
