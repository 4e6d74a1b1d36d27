// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: copies from memory to shared memory that go on while a warp computes, and matrices from there into registers.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_ASYNC_COPY_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_ASYNC_COPY_H

#include <stdint.h>

namespace hone::cuda {

__device__ inline uint32_t sharedAddress(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// 16 bytes; zeros where `exists` is false, and nothing is read.
__device__ inline void copyAsync(uint32_t to, const void *from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

/// 4 bytes.
__device__ inline void copyWordAsync(uint32_t to, const void *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

/// Ends a group of copies.
__device__ inline void commitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most `Groups` of the latest groups of this thread are on their way.
template <int Groups> __device__ inline void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

/// A block's way through `steps` steps, whose copies are Stages - 1 steps ahead: fetch(step, stage, exists) begins those of a step, one
/// group also where there is none, multiply(stage, step) uses them. In the end stages are free for something else.
template <int Stages, class Fetch, class Multiply>
__device__ inline void stepThroughStages(int32_t steps, const Fetch &fetch, const Multiply &multiply) {
#pragma unroll
  for (int stage = 0; stage < Stages - 1; ++stage)
    fetch(stage, stage, stage < steps);
  for (int step = 0; step < steps; ++step) {
    waitForCopies<Stages - 2>();
    __syncthreads();
    int next = step + Stages - 1;
    fetch(next, next % Stages, next < steps);
    multiply(step % Stages, step);
  }
  waitForCopies<0>();
  __syncthreads();
}

/// Four matrices of 8 × 8 numbers of 16 bits: lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void loadMatrices(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// The same, each matrix transposed.
__device__ inline void loadMatricesTransposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_ASYNC_COPY_H
