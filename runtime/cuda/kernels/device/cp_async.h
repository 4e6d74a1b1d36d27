// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: cp.async copies from global to shared memory, a multistage pipeline of them, and ldmatrix.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_CP_ASYNC_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_CP_ASYNC_H

#include <stdint.h>

namespace hone::cuda {

__device__ inline uint32_t sharedAddress(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// 16 bytes; zero-filled, without a read, where `exists` is false.
__device__ inline void cpAsync16(uint32_t to, const void *from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0) : "memory");
}

/// 4 bytes.
__device__ inline void cpAsync4(uint32_t to, const void *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

/// Ends a commit group.
__device__ inline void cpAsyncCommitGroup() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most the latest `Groups` commit groups of this thread are pending.
template <int Groups> __device__ inline void cpAsyncWaitGroup() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

/// Runs `steps` steps of a pipeline whose loads are Stages - 1 steps ahead: fetch(step, stage, exists) issues those
/// of a step, one commit group even where the step does not exist, and multiply(stage, step) consumes them. All
/// stages are free afterwards.
template <int Stages, class Fetch, class Multiply>
__device__ inline void runPipeline(int32_t steps, const Fetch &fetch, const Multiply &multiply) {
#pragma unroll
  for (int stage = 0; stage < Stages - 1; ++stage)
    fetch(stage, stage, stage < steps);
  for (int step = 0; step < steps; ++step) {
    cpAsyncWaitGroup<Stages - 2>();
    __syncthreads();
    int next = step + Stages - 1;
    fetch(next, next % Stages, next < steps);
    multiply(step % Stages, step);
  }
  cpAsyncWaitGroup<0>();
  __syncthreads();
}

/// Four 8 × 8 matrices of 16-bit elements: lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void ldmatrixX4(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// The same with each matrix transposed.
__device__ inline void ldmatrixX4Transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_CP_ASYNC_H
