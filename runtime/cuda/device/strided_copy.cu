// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between two views, a thread for each element.

#include "cuda/device/strided_copy.h"

#define KERNEL extern "C" __attribute__((global)) void

using namespace hone::rt::cuda;

template <typename Element> static __attribute__((device)) void copyElement(const StridedCopy &copy) {
  unsigned rest = __nvvm_read_ptx_sreg_ctaid_x() * kCopyThreads + __nvvm_read_ptx_sreg_tid_x();
  if (rest >= copy.count)
    return;
  long long to = 0, from = 0;
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

typedef unsigned Quad __attribute__((vector_size(16)));

KERNEL hone_strided_copy_1(StridedCopy copy) { copyElement<unsigned char>(copy); }
KERNEL hone_strided_copy_2(StridedCopy copy) { copyElement<unsigned short>(copy); }
KERNEL hone_strided_copy_4(StridedCopy copy) { copyElement<unsigned>(copy); }
KERNEL hone_strided_copy_8(StridedCopy copy) { copyElement<unsigned long long>(copy); }
KERNEL hone_strided_copy_16(StridedCopy copy) { copyElement<Quad>(copy); }
