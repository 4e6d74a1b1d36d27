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

/// Multiplications and additions a second of one thread, from registers: f32 fused multiply-add; products of bf16 by the best
/// of vector and tile instructions, 0 where there are none; products of bytes by VNNI, 0 where there is none.
double peakF32();
double peakBf16();
double peakVnni();

} // namespace hone::bench

#endif // HONE_BENCHMARKS_LIMITS_H
