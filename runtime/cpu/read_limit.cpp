// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that do nothing but read.

#include "cpu/read_limit.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <immintrin.h>
#include <sys/mman.h>

namespace hone::cpu {
namespace {

/// Sums `memory` by `streams` pieces at a time, prefetching what comes next ahead of time.
__attribute__((target("avx2"))) uint64_t sum(std::span<const uint8_t> memory, int streams) {
  constexpr size_t line = 64, ahead = 1024;
  size_t piece = memory.size() / static_cast<size_t>(streams) / line * line;
  __m256i sums[4] = {};
  for (size_t at = 0; at < piece; at += line)
    for (int stream = 0; stream < streams; ++stream) {
      const uint8_t *from = memory.data() + static_cast<size_t>(stream) * piece + at;
      _mm_prefetch(reinterpret_cast<const char *>(from + ahead), _MM_HINT_T0);
      __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
      __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + 32));
      sums[stream] = _mm256_add_epi64(sums[stream], _mm256_add_epi64(first, second));
    }
  __m256i total = _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  return static_cast<uint64_t>(_mm256_extract_epi64(total, 0) + _mm256_extract_epi64(total, 3));
}

double readOnce(std::span<const uint8_t> memory, int threads, int streams, double (*seconds)(int)) {
  double start = seconds(threads);
  uint64_t total = 0;
#pragma omp parallel for reduction(+ : total) num_threads(threads)
  for (int thread = 0; thread < threads; ++thread) {
    size_t part = memory.size() / static_cast<size_t>(threads);
    total += sum(memory.subspan(static_cast<size_t>(thread) * part, part), streams);
  }
  __asm__ volatile("" : "+r"(total)); // the sum is wanted, so that the reads are not removed
  return static_cast<double>(memory.size()) / (seconds(threads) - start);
}

} // namespace

MeasuredMemory::MeasuredMemory(size_t size, bool hugePages) {
  void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return;
  memory = static_cast<uint8_t *>(mapped);
  bytes = size;
  madvise(memory, bytes, hugePages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  uint64_t state = 0;
  for (size_t i = 0; i + sizeof state <= bytes; i += sizeof state) {
    uint64_t word = nextOperand(state);
    std::memcpy(memory + i, &word, sizeof word);
  }
}

MeasuredMemory::~MeasuredMemory() {
  if (memory)
    munmap(memory, bytes);
}

double readBandwidth(std::span<const uint8_t> memory, int threads, double (*seconds)(int threads)) {
  return std::max(readOnce(memory, threads, 1, seconds), readOnce(memory, threads, 4, seconds));
}

double wallSeconds(int) {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace hone::cpu
