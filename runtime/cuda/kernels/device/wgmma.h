// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device code for sm_90a: wgmma. A warpgroup (four warps, the first a multiple of four) computes D += A · B with
// A[64][16] and B[16][columns] of 16 bits and f32 accumulators. Warp w has rows 16 w to 16 w + 15. With g = lane / 4
// and t = lane % 4 a lane holds
//
//   d[4 i + 2 h + j]   D[16 w + g + 8 h][8 i + 2 t + j]
//   a[0] … a[3]        as in mma.h, of the warp's rows
//
// wgmma is asynchronous: from wgmmaFence() until wgmmaWaitGroup() the registers of D and A may not be accessed, and
// operands in shared memory may not be written. Accumulators are operands of fence and wait, so that the compiler
// moves no access across them.

#ifndef HONE_RUNTIME_CUDA_KERNELS_DEVICE_WGMMA_H
#define HONE_RUNTIME_CUDA_KERNELS_DEVICE_WGMMA_H

#include <stdint.h>

namespace hone::cuda {

/// The shared-memory descriptor of a matrix: rows of 128 bytes with the 128-byte swizzle (16-byte chunk i of row r at
/// i ^ (r % 8)), or of 64 bytes with the 64-byte swizzle (at i ^ (r / 2 % 4)), from a multiple of eight rows on.
/// `address` is that of its first element. K-major operands have rows of A or columns of B as rows. For an N-major B
/// rows are inputs, and every 64 columns are another such matrix, `leading` bytes further.
template <int RowBytes = 128> __device__ inline uint64_t makeSmemDescriptor(uint32_t address, uint32_t leading = 16) {
  static_assert(RowBytes == 128 || RowBytes == 64);
  constexpr uint64_t kEightRows = 8 * RowBytes, kSwizzle = uint64_t{RowBytes == 128 ? 1 : 2} << 62;
  return kSwizzle | (kEightRows >> 4) << 32 | uint64_t{leading >> 4} << 16 | (address >> 4 & 0x3fff);
}

#define HONE_ACCUMULATORS_8(d, i)                                                                                      \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),          \
      "+f"(d[i + 7])
#define HONE_ACCUMULATORS_32(d, i)                                                                                     \
  HONE_ACCUMULATORS_8(d, i), HONE_ACCUMULATORS_8(d, i + 8), HONE_ACCUMULATORS_8(d, i + 16),                            \
      HONE_ACCUMULATORS_8(d, i + 24)
#define HONE_ACCUMULATORS_64(d) HONE_ACCUMULATORS_32(d, 0), HONE_ACCUMULATORS_32(d, 32)
#define HONE_ACCUMULATORS_128(d) HONE_ACCUMULATORS_64(d), HONE_ACCUMULATORS_32(d, 64), HONE_ACCUMULATORS_32(d, 96)

#define HONE_OPERANDS_32                                                                                               \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "     \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define HONE_OPERANDS_64                                                                                               \
  HONE_OPERANDS_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
                   "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

#define HONE_OPERANDS_128                                                                                              \
  HONE_OPERANDS_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
                   "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, " \
                   "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, "  \
                   "%118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define HONE_WGMMA(columns, type) "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {"

/// `instruction` is a macro of the type of A and B.
#define HONE_WGMMA_OF_TYPE(instruction)                                                                                \
  if constexpr (IsHalf)                                                                                                \
    instruction("f16");                                                                                                \
  else                                                                                                                 \
    instruction("bf16")

/// D = A · B, or D += A · B with `accumulates`, of 128 columns; A and B lie in shared memory, K-major.
template <bool IsHalf> __device__ inline void wgmma(float (&d)[64], uint64_t a, uint64_t b, bool accumulates) {
#define HONE_SMEM_WGMMA(type)                                                                                          \
  asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %66, 0; " HONE_WGMMA("128", type) HONE_OPERANDS_64                \
               "}, %64, %65, adds, 1, 1, 0, 0; }"                                                                      \
               : HONE_ACCUMULATORS_64(d)                                                                               \
               : "l"(a), "l"(b), "r"(static_cast<int>(accumulates)))
  HONE_WGMMA_OF_TYPE(HONE_SMEM_WGMMA);
#undef HONE_SMEM_WGMMA
}

/// D += A · B of 256 columns; A and B lie in shared memory, K-major.
template <bool IsHalf> __device__ inline void wgmma(float (&d)[128], uint64_t a, uint64_t b) {
#define HONE_SMEM_WGMMA(type)                                                                                          \
  asm volatile(HONE_WGMMA("256", type) HONE_OPERANDS_128 "}, %128, %129, 1, 1, 1, 0, 0;"                               \
               : HONE_ACCUMULATORS_128(d)                                                                              \
               : "l"(a), "l"(b))
  HONE_WGMMA_OF_TYPE(HONE_SMEM_WGMMA);
#undef HONE_SMEM_WGMMA
}

/// D += A · B of 256 columns with a 2:4 sparse A[64][32] (sparse_metadata.h) and B[32][256], both in shared memory,
/// K-major. The metadata are words of lanes 0 and 1 of each four, or with Selector 1 of lanes 2 and 3, and stay in
/// their registers until the wait.
template <bool IsHalf, int Selector>
__device__ inline void wgmmaSparse(float (&d)[128], uint64_t a, uint64_t b, uint32_t metadata) {
#define HONE_SPARSE_WGMMA(type)                                                                                        \
  asm volatile("wgmma.mma_async.sp.sync.aligned.m64n256k32.f32." type "." type " {" HONE_OPERANDS_128                  \
               "}, %128, %129, %130, %131, 1, 1, 1, 0, 0;"                                                             \
               : HONE_ACCUMULATORS_128(d)                                                                              \
               : "l"(a), "l"(b), "r"(metadata), "n"(Selector))
  HONE_WGMMA_OF_TYPE(HONE_SPARSE_WGMMA);
#undef HONE_SPARSE_WGMMA
}

#define HONE_REGISTER_WGMMA(columns, type, names, sums, operands)                                                      \
  asm volatile(HONE_WGMMA(columns, type) names "}, " operands ", 1, 1, 1, 1;"                                          \
               : sums                                                                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define HONE_REGISTER_WGMMA_128(type)                                                                                  \
  HONE_REGISTER_WGMMA("128", type, HONE_OPERANDS_64, HONE_ACCUMULATORS_64(d), "{%64, %65, %66, %67}, %68")
#define HONE_REGISTER_WGMMA_64(type)                                                                                   \
  HONE_REGISTER_WGMMA("64", type, HONE_OPERANDS_32, HONE_ACCUMULATORS_32(d, 0), "{%32, %33, %34, %35}, %36")

/// D += A · B of 64 or 128 columns with A in registers and an N-major B.
template <bool IsHalf> __device__ inline void wgmma(float (&d)[64], const uint32_t (&a)[4], uint64_t b) {
  HONE_WGMMA_OF_TYPE(HONE_REGISTER_WGMMA_128);
}
template <bool IsHalf> __device__ inline void wgmma(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  HONE_WGMMA_OF_TYPE(HONE_REGISTER_WGMMA_64);
}
#undef HONE_REGISTER_WGMMA_64
#undef HONE_REGISTER_WGMMA_128
#undef HONE_REGISTER_WGMMA

/// wgmma.fence: orders accesses of these accumulators before the wgmma that follow.
__device__ inline void wgmmaFence(float (&d)[32]) {
  asm volatile("wgmma.fence.sync.aligned;" : HONE_ACCUMULATORS_32(d, 0)::"memory");
}
__device__ inline void wgmmaFence(float (&d)[64]) {
  asm volatile("wgmma.fence.sync.aligned;" : HONE_ACCUMULATORS_64(d)::"memory");
}
__device__ inline void wgmmaFence(float (&d)[128]) {
  asm volatile("wgmma.fence.sync.aligned;" : HONE_ACCUMULATORS_128(d)::"memory");
}

/// Keeps the compiler from moving writes of operand registers past this point; stands before the fence.
__device__ inline void fenceOperand(uint32_t (&a)[4]) {
  asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])::"memory");
}
__device__ inline void fenceOperand(uint32_t &metadata) { asm volatile("" : "+r"(metadata)::"memory"); }
__device__ inline void fenceOperand(float (&d)[64]) { asm volatile("" : HONE_ACCUMULATORS_64(d)::"memory"); }

/// Ends a commit group.
__device__ inline void wgmmaCommitGroup() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until at most the latest `Groups` commit groups are pending; afterwards these accumulators are those of
/// completed groups.
template <int Groups> __device__ inline void wgmmaWaitGroup(float (&d)[32]) {
  asm volatile("wgmma.wait_group.sync.aligned %32;" : HONE_ACCUMULATORS_32(d, 0) : "n"(Groups) : "memory");
}
template <int Groups> __device__ inline void wgmmaWaitGroup(float (&d)[64]) {
  asm volatile("wgmma.wait_group.sync.aligned %64;" : HONE_ACCUMULATORS_64(d) : "n"(Groups) : "memory");
}
template <int Groups> __device__ inline void wgmmaWaitGroup(float (&d)[128]) {
  asm volatile("wgmma.wait_group.sync.aligned %128;" : HONE_ACCUMULATORS_128(d) : "n"(Groups) : "memory");
}

#undef HONE_WGMMA_OF_TYPE
#undef HONE_WGMMA
#undef HONE_OPERANDS_128
#undef HONE_OPERANDS_64
#undef HONE_OPERANDS_32
#undef HONE_ACCUMULATORS_128
#undef HONE_ACCUMULATORS_64
#undef HONE_ACCUMULATORS_32
#undef HONE_ACCUMULATORS_8

/// setmaxnreg: the register count of a thread from here on. Every warpgroup executes it once.
template <int Count> __device__ inline void setmaxnregDec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count> __device__ inline void setmaxnregInc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

} // namespace hone::cuda

#endif // HONE_RUNTIME_CUDA_KERNELS_DEVICE_WGMMA_H
