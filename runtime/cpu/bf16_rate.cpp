// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/bf16_rate.h"

#include <algorithm>
#include <cstdint>
#include <immintrin.h>

namespace hone::cpu {
namespace {

/// Independent sums, more than an instruction's latency times its throughput; steps of them a turn; turns, of which the
/// fastest counts: interrupts only make others slower.
constexpr int kSums = 12, kSteps = 64, kTurns = 16;

/// Ticks of the time-stamp counter for a step with VDPBF16PS, or with FMA: twelve instructions, of twice as many
/// products in the former.
template <bool IS_BF16> __attribute__((target("avx512f,avx512bf16"))) uint64_t measureTicks() {
  __m512 sums[kSums] = {}, x = {}, weight = {};
  __asm__ volatile("" : "+v"(x), "+v"(weight)); // not constants
  uint64_t least = UINT64_MAX;
  for (int turn = 0; turn < kTurns; ++turn) {
    uint64_t start = __rdtsc();
    for (int step = 0; step < kSteps; ++step)
#pragma clang loop unroll(full)
      for (int i = 0; i < kSums; ++i) {
        if constexpr (IS_BF16)
          sums[i] = _mm512_dpbf16_ps(sums[i], (__m512bh)x, (__m512bh)weight);
        else
          sums[i] = _mm512_fmadd_ps(x, weight, sums[i]);
        __asm__ volatile("" : "+v"(sums[i])); // all are computed, in this order
      }
    least = std::min<uint64_t>(least, __rdtsc() - start);
  }
  return least;
}

} // namespace

bool hasFastBf16Products() {
  static const bool isFast = measureTicks</*IS_BF16=*/true>() < 2 * measureTicks</*IS_BF16=*/false>();
  return isFast;
}

} // namespace hone::cpu
