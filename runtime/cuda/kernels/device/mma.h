// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code: mma.sync and mma.sp. With g = lane / 4 and t = lane % 4 a lane holds
//
//   a[0] A[g][2t, 2t+1]   a[1] A[g+8][2t, 2t+1]   a[2] A[g][2t+8, 2t+9]   a[3] A[g+8][2t+8, 2t+9]
//   b[0] B[2t, 2t+1][g]   b[1] B[2t+8, 2t+9][g]
//   c[0] C[g][2t]   c[1] C[g][2t+1]   c[2] C[g+8][2t]   c[3] C[g+8][2t+1]
//
// of A[16][16], B[16][8] and C[16][8] (PTX ISA, mma.m16n8k16).

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_MMA_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_MMA_H

#include <stdint.h>

namespace hone::cuda {

/// C += A · B in bf16 with f32 accumulators.
__device__ inline void mmaBf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// C += A · B in f16 with f32 accumulators.
__device__ inline void mmaF16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// C += A · B with a 2:4 sparse A[16][32], whose kept elements are held as A[16][16] is, and B[32][8]: b[i] B[8i +
/// 2t, 8i + 2t + 1][g]. `indices` is the metadata, of lanes 0 and 1 of each four with Selector 0, of lanes 2 and 3
/// with 1 (linear/sparse_metadata.h; PTX ISA, mma.sp.m16n8k32).
template <bool IsHalf, int Selector>
__device__ inline void mmaSparse(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[4], uint32_t indices) {
  if constexpr (IsHalf)
    asm("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %13;"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(indices),
          "n"(Selector));
  else
    asm("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %13;"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(indices),
          "n"(Selector));
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_MMA_H
