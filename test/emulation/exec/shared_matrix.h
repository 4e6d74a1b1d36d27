// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices in shared memory as descriptors of wgmma say it, of 16 inputs (the dimension that is summed over) of 16 bits, or, beside
// a sparse A, 32.
//
// Memory is units of 16 bytes, 8 numbers. A swizzle is 1, 2, 4 or 8 units wide (none, 32, 64, 128 bytes). With lines for rows of A and
// columns of B, and offsets L (leading) and S (stride), the unit of
//
//   line n, inputs 8 c to 8 c + 7, where inputs lie side by side, is at   (n % 8) w + (n / 8) S + c,   without swizzle (n % 8) + (n / 8) S + c L
//   lines 8 u to 8 u + 7, input k, where lines lie side by side, is at    (u % w) + (u / w) L + (k % 8) w + (k / 8) S,
//                                                                         without swizzle u S + (k % 8) + (k / 8) L
//
// (PTX ISA, "Shared Memory Matrix Layout" and "Strides" of wgmma). In the address that this gives, the lowest bits of the unit's number,
// as many as a swizzle of that width has, are xor-ed with those from the eighth unit on.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hone::emulation {

constexpr uint32_t kUnitBytes = 16;
constexpr uint32_t kInputs = 16;
constexpr uint32_t kMostInputs = 32;
constexpr uint32_t kMostLines = 256;

/// Where the unit at an address of shared memory lies, with a swizzle of `width` units: 1, 2, 4 or 8.
inline uint32_t swizzled(uint32_t address, uint32_t width) { return address ^ ((address >> 7 & (width - 1)) << 4); }

class SharedMatrix {
public:
  /// Throws Fault for a descriptor that the emulation does not have.
  SharedMatrix(uint64_t descriptor, bool linesSideBySide);

  /// Numbers of `lines` lines, a multiple of eight, from line `first` on: to[input][line]. Throws Fault where one lies outside.
  template <class T>
  void read(const std::vector<std::byte> &shared, uint32_t first, uint32_t lines, uint32_t inputs,
            float (*to)[kMostLines]) const;

private:
  uint32_t unitOfInputs(uint32_t line, uint32_t chunk) const;
  uint32_t unitOfLines(uint32_t chunk, uint32_t input) const;

  uint32_t start, leading, stride, width;
  bool linesSideBySide;
};

} // namespace hone::emulation
