// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How fast this machine reads memory: what decoding is measured against.

#ifndef HONE_RUNTIME_CPU_READ_LIMIT_H
#define HONE_RUNTIME_CPU_READ_LIMIT_H

#include "hone/io/split_mix.h"

#include <cstdint>
#include <span>

namespace hone::cpu {

/// The next eight bytes of operands for measurements, whose bits change as those of weights do. As floats of any format
/// none is subnormal, infinite or not a number. `state` is any number at first.
inline uint64_t nextOperand(uint64_t &state) {
  return (io::splitMix(state += io::kSplitMixStep) & 0x81ff81ff81ff81ff) | 0x3c003c003c003c00;
}

/// Memory for measurements, mapped for its lifetime and written once, so that it is there.
class MeasuredMemory {
public:
  /// `hugePages` prefetches pages of 2 MiB, as the read limit should be taken with. all() is empty where there is no
  /// memory.
  MeasuredMemory(size_t bytes, bool hugePages);
  ~MeasuredMemory();
  MeasuredMemory(const MeasuredMemory &) = delete;
  MeasuredMemory &operator=(const MeasuredMemory &) = delete;

  std::span<uint8_t> all() const { return {memory, bytes}; }

private:
  uint8_t *memory = nullptr;
  size_t bytes = 0;
};

/// Bytes that are more than any cache holds.
constexpr size_t kBeyondCaches = size_t{512} << 20;

/// Sums the memory with `threads` threads, and gives bytes a second of the clock `seconds`: the best of one and four
/// streams a thread.
double readBandwidth(std::span<const uint8_t> memory, int threads, double (*seconds)(int threads));

/// Seconds of wall time, from any beginning.
double wallSeconds(int threads = 0);

} // namespace hone::cpu

#endif // HONE_RUNTIME_CPU_READ_LIMIT_H
