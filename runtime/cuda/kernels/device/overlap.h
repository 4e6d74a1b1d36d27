// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: programmatic dependent launch. A kernel of a fatbin that fatbins.def marks may begin while the one before
// it still runs, and prefetch what no kernel writes. Every thread that reads or writes anything else waits first, and
// every block waits before it ends, so that the kernel after it needs to wait for this one alone.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_OVERLAP_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_OVERLAP_H

namespace hone::cuda {

/// Waits until the kernels before this one have ended, and sees what they wrote. Chips before sm_90 begin a kernel then.
__device__ inline void waitForPrevious() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next kernel begin where there is room for it, once all blocks have come here.
__device__ inline void letNextBegin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Both, for kernels that prefetch nothing.
__device__ inline void enterInOrder() {
  letNextBegin();
  waitForPrevious();
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_OVERLAP_H
