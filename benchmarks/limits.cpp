// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that do one thing as fast as the machine can.

#include "limits.h"

#include "cpu/kernel_table.h"
#include "cpu/read_limit.h"
#include "hone/cpu/cpu_features.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <immintrin.h>

namespace hone::bench {
namespace {

constexpr int kChains = 16;     // independent sums, more than any latency times throughput
constexpr int kAvx2Chains = 10; // as many as sixteen registers hold beside the operands
constexpr int64_t kTurns = 1 << 16;

/// Words whose bits change as those of weights do: equal ones take less power, on which clocks depend.
struct Operand {
  alignas(64) uint64_t words[128];

  const float *floats() const { return reinterpret_cast<const float *>(words); }
};

struct Operands {
  Operand of[32]; // fill most of a L1 cache

  Operands() {
    uint64_t state = 0;
    for (Operand &operand : of)
      for (uint64_t &word : operand.words)
        word = cpu::nextOperand(state);
  }
  const Operand &operator[](int64_t index) const { return of[index]; }
};

const Operands kOperands;

/// Keeps the compiler from changing what a loop does.
template <typename Value> inline void keep(Value &value) { __asm__ volatile("" : "+v"(value)); }

/// A millisecond or less, so that the clock is still what the kernel before left it at: a loop in registers would soon raise it.
template <typename Loop> double rate(double operationsPerTurn, Loop loop) {
  double start = seconds(1);
  loop();
  return operationsPerTurn * kTurns / (seconds(1) - start);
}

__attribute__((target("avx2,fma"))) double fmaAvx2() {
  __m256 sums[kAvx2Chains] = {};
  __m256 x[2], weights[2];
  for (int i = 0; i < 2; ++i) {
    x[i] = _mm256_load_ps(kOperands[i].floats());
    weights[i] = _mm256_load_ps(kOperands[2 + i].floats());
  }
  return rate(kAvx2Chains * 16, [&]() __attribute__((target("avx2,fma"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma clang loop unroll(full)
      for (int chain = 0; chain < kAvx2Chains; ++chain) {
        sums[chain] = _mm256_fmadd_ps(x[chain % 2], weights[chain / 2 % 2], sums[chain]);
        keep(sums[chain]);
      }
  });
}

__attribute__((target("avx512f"))) double fmaAvx512() {
  __m512 sums[kChains] = {};
  __m512 x[4], weights[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm512_load_ps(kOperands[i].floats());
    weights[i] = _mm512_load_ps(kOperands[4 + i].floats());
  }
  return rate(kChains * 32, [&]() __attribute__((target("avx512f"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma clang loop unroll(full)
      for (int chain = 0; chain < kChains; ++chain) {
        sums[chain] = _mm512_fmadd_ps(x[chain % 4], weights[chain / 4], sums[chain]);
        keep(sums[chain]);
      }
  });
}

__attribute__((target("avx512f,avx512bf16"))) double dotBf16() {
  __m512 sums[kChains] = {};
  __m512bh x[4], weights[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = (__m512bh)_mm512_load_ps(kOperands[i].floats());
    weights[i] = (__m512bh)_mm512_load_ps(kOperands[4 + i].floats());
  }
  return rate(kChains * 64, [&]() __attribute__((target("avx512f,avx512bf16"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma clang loop unroll(full)
      for (int chain = 0; chain < kChains; ++chain) {
        sums[chain] = _mm512_dpbf16_ps(sums[chain], x[chain % 4], weights[chain / 4]);
        keep(sums[chain]);
      }
  });
}

__attribute__((target("avx2,avxvnni"))) double dotAvxVnni() {
  __m256i sums[kAvx2Chains] = {};
  __m256i x[2], weights[2];
  for (int i = 0; i < 2; ++i) {
    x[i] = _mm256_load_si256(reinterpret_cast<const __m256i *>(kOperands[i].words));
    weights[i] = _mm256_load_si256(reinterpret_cast<const __m256i *>(kOperands[2 + i].words));
  }
  return rate(kAvx2Chains * 64, [&]() __attribute__((target("avx2,avxvnni"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma clang loop unroll(full)
      for (int chain = 0; chain < kAvx2Chains; ++chain) {
        sums[chain] = _mm256_dpbusd_avx_epi32(sums[chain], x[chain % 2], weights[chain / 2 % 2]);
        keep(sums[chain]);
      }
  });
}

__attribute__((target("avx512f,avx512vnni"))) double dotVnni() {
  __m512i sums[kChains] = {};
  __m512i x[4], weights[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm512_load_si512(kOperands[i].words);
    weights[i] = _mm512_load_si512(kOperands[4 + i].words);
  }
  return rate(kChains * 128, [&]() __attribute__((target("avx512f,avx512vnni"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn)
#pragma clang loop unroll(full)
      for (int chain = 0; chain < kChains; ++chain) {
        sums[chain] = _mm512_dpbusd_epi32(sums[chain], x[chain % 4], weights[chain / 4]);
        keep(sums[chain]);
      }
  });
}

/// Gives the thread tile registers of 16 rows of 64 bytes while it lives.
class FullTiles {
public:
  __attribute__((target("amx-tile"))) FullTiles() {
    struct {
      uint8_t palette = 1, startRow = 0, reserved[14] = {};
      uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shape;
    _tile_loadconfig(&shape);
  }
  __attribute__((target("amx-tile"))) ~FullTiles() { _tile_release(); }
  FullTiles(const FullTiles &) = delete;
  FullTiles &operator=(const FullTiles &) = delete;
};

/// Four tiles of 16 x 16 sums by tiles of 32 inputs.
constexpr double kTileStep = 4 * 2.0 * 16 * 16 * 32;

__attribute__((target("amx-tile,amx-bf16"))) double tileBf16() {
  FullTiles tiles;
  _tile_loadd(4, kOperands[0].words, 64);
  _tile_loadd(5, kOperands[1].words, 64);
  _tile_loadd(6, kOperands[2].words, 64);
  _tile_loadd(7, kOperands[3].words, 64);
  return rate(kTileStep, []() __attribute__((target("amx-tile,amx-bf16"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn) {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  });
}

/// Every step has other tiles than the one before, as in a layer.
__attribute__((target("amx-tile,amx-bf16"))) double tileBf16Loaded() {
  FullTiles tiles;
  return rate(kTileStep, []() __attribute__((target("amx-tile,amx-bf16"))) {
    for (int64_t turn = 0; turn < kTurns; ++turn) {
      int64_t first = turn % 8 * 4;
      _tile_loadd(4, kOperands[first].words, 64);
      _tile_loadd(6, kOperands[first + 1].words, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, kOperands[first + 2].words, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_loadd(7, kOperands[first + 3].words, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  });
}

/// The sum of what threads reach at once.
double together(int threads, double (*loop)()) {
  double total = 0;
#pragma omp parallel for reduction(+ : total) num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread)
    total += loop();
  return total;
}

__attribute__((target("avx2"))) void update(__m256i *parameters, __m256i *first, __m256i *second,
                                            const __m256i *gradients, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    first[i] = _mm256_add_epi32(first[i], gradients[i]);
    second[i] = _mm256_add_epi32(second[i], gradients[i]);
    parameters[i] = _mm256_add_epi32(parameters[i], _mm256_add_epi32(first[i], second[i]));
  }
}

bool hasFeature(const char *name) { return *cpu::cpuHasFeature(name); }

bool hasIsa(cpu::Isa isa) { return std::ranges::find(cpu::supportedIsas(), isa) != cpu::supportedIsas().end(); }

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

double updateBandwidth(std::span<uint8_t> memory, int threads) {
  size_t size = memory.size() / 4 / sizeof(__m256i), part = size / static_cast<size_t>(threads);
  auto *vectors = reinterpret_cast<__m256i *>(memory.data());
  double start = cpu::wallSeconds();
#pragma omp parallel for num_threads(threads)
  for (int thread = 0; thread < threads; ++thread) {
    __m256i *from = vectors + static_cast<size_t>(thread) * part;
    update(from, from + size, from + 2 * size, from + 3 * size, part);
  }
  return static_cast<double>(7 * part * static_cast<size_t>(threads) * sizeof(__m256i)) / (cpu::wallSeconds() - start);
}

double peak(Arithmetic arithmetic, int threads) {
  switch (arithmetic) {
  case Arithmetic::F32Avx2:
    return together(threads, fmaAvx2);
  case Arithmetic::F32:
    return together(threads, hasFeature("avx512f") ? fmaAvx512 : fmaAvx2);
  case Arithmetic::Bf16Vectors:
    return hasFeature("avx512bf16") ? together(threads, dotBf16) : 0;
  case Arithmetic::Bf16Tiles:
    return hasIsa(cpu::Isa::Amx) ? together(threads, tileBf16) : 0;
  case Arithmetic::AvxVnni:
    return hasFeature("avxvnni") ? together(threads, dotAvxVnni) : 0;
  case Arithmetic::Vnni:
    return hasFeature("avx512vnni") ? together(threads, dotVnni) : 0;
  }
  return 0;
}

double loadedTiles(int threads) { return hasIsa(cpu::Isa::Amx) ? together(threads, tileBf16Loaded) : 0; }

} // namespace hone::bench
