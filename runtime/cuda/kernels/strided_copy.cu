// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between two views of any type, a thread for each element.

#include "strided_copy.h"

namespace hone::cuda {
namespace {

template <typename Element> __device__ void copyElement(const StridedCopy &copy) {
  unsigned rest = blockIdx.x * kCopyThreads + threadIdx.x;
  if (rest >= copy.count)
    return;
  int64_t to = 0, from = 0;
#pragma unroll
  for (int axis = kCopyRank - 1; axis >= 0; --axis) { // unrolled, so that parameters are read in place
    if (axis >= copy.rank)
      continue;
    unsigned outer = rest / copy.sizes[axis], index = rest - outer * copy.sizes[axis];
    to += index * copy.toStrides[axis];
    from += index * copy.fromStrides[axis];
    rest = outer;
  }
  static_cast<Element *>(copy.to)[to] = static_cast<const Element *>(copy.from)[from];
}

} // namespace

extern "C" __global__ void strided_copy_1(StridedCopy copy) { copyElement<uint8_t>(copy); }
extern "C" __global__ void strided_copy_2(StridedCopy copy) { copyElement<uint16_t>(copy); }
extern "C" __global__ void strided_copy_4(StridedCopy copy) { copyElement<uint32_t>(copy); }
extern "C" __global__ void strided_copy_8(StridedCopy copy) { copyElement<uint2>(copy); }
extern "C" __global__ void strided_copy_16(StridedCopy copy) { copyElement<uint4>(copy); }

} // namespace hone::cuda
