//===- split_mix.h - numbers without a pattern ---------------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SplitMix64 (Steele, Lea and Flood 2014): number n of a seed is splitMix(seed + n * kSplitMixStep), n from 1 on.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_IO_SPLIT_MIX_H
#define HONE_IO_SPLIT_MIX_H

#include <cstdint>

namespace hone::io {

constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15;

constexpr uint64_t splitMix(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

} // namespace hone::io

#endif // HONE_IO_SPLIT_MIX_H
