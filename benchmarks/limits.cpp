// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that do one thing as fast as the machine can.

#include "limits.h"

#include "cpu/cpu_features.h"
#include "cpu/kernel_table.h"
#include "cpu/read_limit.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <immintrin.h>

namespace hone::bench {
namespace {

constexpr int kChains = 16; // independent sums, more than any latency times throughput
constexpr int64_t kTurns = 1 << 18;

/// Keeps the compiler from changing what a loop does.
template <typename Value> inline void keep(Value &value) { __asm__ volatile("" : "+v"(value)); }

template <typename Loop> double rate(double operationsPerTurn, Loop loop) {
  double start = seconds(1);
  loop();
  return operationsPerTurn * kTurns / (seconds(1) - start);
}

__attribute__((target("avx2,fma"))) double fmaAvx2() {
  __m256 sums[kChains] = {}, one = _mm256_set1_ps(1);
  return rate(kChains * 16, [&]() __attribute__((target("avx2,fma"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma clang loop unroll(full)
      for (__m256 &sum : sums) {
        sum = _mm256_fmadd_ps(one, one, sum);
        keep(sum);
      }
  });
}

__attribute__((target("avx512f"))) double fmaAvx512() {
  __m512 sums[kChains] = {}, one = _mm512_set1_ps(1);
  return rate(kChains * 32, [&]() __attribute__((target("avx512f"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma clang loop unroll(full)
      for (__m512 &sum : sums) {
        sum = _mm512_fmadd_ps(one, one, sum);
        keep(sum);
      }
  });
}

__attribute__((target("avx512f,avx512bf16"))) double dotBf16() {
  __m512 sums[kChains] = {};
  __m512bh one = (__m512bh)_mm512_set1_epi32(0x3f803f80);
  return rate(kChains * 64, [&]() __attribute__((target("avx512f,avx512bf16"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma clang loop unroll(full)
      for (__m512 &sum : sums) {
        sum = _mm512_dpbf16_ps(sum, one, one);
        keep(sum);
      }
  });
}

__attribute__((target("avx512f,avx512vnni"))) double dotVnni() {
  __m512i sums[kChains] = {}, one = _mm512_set1_epi32(0x01010101);
  return rate(kChains * 128, [&]() __attribute__((target("avx512f,avx512vnni"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma clang loop unroll(full)
      for (__m512i &sum : sums) {
        sum = _mm512_dpbusd_epi32(sum, one, one);
        keep(sum);
      }
  });
}

/// Four tiles of 16 x 16 sums by tiles of 32 inputs.
__attribute__((target("amx-tile,amx-bf16"))) double tileBf16() {
  struct {
    uint8_t palette = 1, startRow = 0, reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shape;
  _tile_loadconfig(&shape);
  double result = rate(4 * 2.0 * 16 * 16 * 32, []() __attribute__((target("amx-tile,amx-bf16"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn) {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  });
  _tile_release();
  return result;
}

bool hasFeature(const char *name) { return *cpu::cpuHasFeature(name); }

bool hasLevel(cpu::Level level) {
  return std::ranges::find(cpu::supportedLevels(), level) != cpu::supportedLevels().end();
}

} // namespace

double seconds(int threads) {
  if (threads != 1)
    return cpu::wallSeconds();
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double readBandwidth(std::span<const uint8_t> memory, int threads) {
  return cpu::readBandwidth(memory, threads, seconds);
}

double peakF32() { return hasFeature("avx512f") ? std::max(fmaAvx2(), fmaAvx512()) : fmaAvx2(); }

double peakBf16() {
  double vectors = hasFeature("avx512bf16") ? dotBf16() : 0;
  return hasLevel(cpu::Level::Amx) ? std::max(vectors, tileBf16()) : vectors;
}

double peakVnni() { return hasFeature("avx512vnni") ? dotVnni() : 0; }

} // namespace hone::bench
