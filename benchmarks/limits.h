// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this machine can do at most: the limits that ratios of kernels are given against.

#ifndef HONE_BENCHMARKS_LIMITS_H
#define HONE_BENCHMARKS_LIMITS_H

#include <cstdint>
#include <span>

namespace hone::bench {

/// Processor time of this thread where one thread works, so that other jobs of the machine count less; else wall time.
double seconds(int threads);

/// Sums the memory with `threads` threads, and gives bytes a second: the best of one and four streams a thread.
double readBandwidth(std::span<const uint8_t> memory, int threads);

/// Adds as the update of AdamW does, which reads four arrays and writes three of them, with `threads` threads, a quarter
/// of the memory an array; gives the bytes a second of wall time that are read and written.
double updateBandwidth(std::span<uint8_t> memory, int threads);

/// What multiplies and adds: f32 by fused multiply-add of 256 bits, or of 512 where the CPU has them; bf16 by dot products of
/// vectors, or by tiles; bytes by VNNI of 256 bits or of 512.
enum class Arithmetic { F32Avx2, F32, Bf16Vectors, Bf16Tiles, AvxVnni, Vnni };

/// Multiplications and additions a second of `threads` threads at once, from registers; 0 where the CPU has no such
/// instructions.
double peak(Arithmetic arithmetic, int threads);

/// As Bf16Tiles of `peak`, with tiles loaded from the L1 cache as every product of matrices has to: four loads for four
/// products.
double loadedTiles(int threads);

} // namespace hone::bench

#endif // HONE_BENCHMARKS_LIMITS_H
