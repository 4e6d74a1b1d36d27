// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading of matrices by their descriptors.

#include "exec/shared_matrix.h"

#include "exec/numbers.h"
#include "ptx/launch.h"

#include <cstring>

namespace hone::emulation {
namespace {

constexpr uint32_t kPerUnit = 8;

/// A field of 14 bits that counts units of 16 bytes.
uint32_t bytesAt(uint64_t descriptor, unsigned bit) {
  return static_cast<uint32_t>(descriptor >> bit & 0x3fff) * kUnitBytes;
}

template <class T>
std::array<T, kPerUnit> unitAt(const std::vector<std::byte> &shared, uint32_t address, uint32_t width) {
  address = swizzled(address, width);
  if (address + kUnitBytes > shared.size())
    throw Fault(Fault::Kind::IllegalAddress, "a matrix at byte " + std::to_string(address) +
                                                 " of shared memory, where the block has " +
                                                 std::to_string(shared.size()) + " bytes");
  std::array<T, kPerUnit> numbers;
  std::memcpy(numbers.data(), shared.data() + address, kUnitBytes);
  return numbers;
}

} // namespace

SharedMatrix::SharedMatrix(uint64_t descriptor, bool linesSideBySide)
    : start(bytesAt(descriptor, 0)), leading(bytesAt(descriptor, 16)), stride(bytesAt(descriptor, 32)),
      linesSideBySide(linesSideBySide) {
  constexpr std::array<uint32_t, 4> kWidths{1, 8, 4, 2};
  width = kWidths[descriptor >> 62];
  if ((descriptor >> 49 & 7) != 0)
    throw Fault(Fault::Kind::IllegalInstruction, "a descriptor of a matrix with a base offset");
}

uint32_t SharedMatrix::unitOfInputs(uint32_t line, uint32_t chunk) const {
  uint32_t next = width == 1 ? leading : kUnitBytes;
  return start + line % 8 * width * kUnitBytes + line / 8 * stride + chunk * next;
}

uint32_t SharedMatrix::unitOfLines(uint32_t chunk, uint32_t input) const {
  uint32_t row = input % 8 * width * kUnitBytes;
  if (width == 1)
    return start + chunk * stride + row + input / 8 * leading;
  return start + chunk % width * kUnitBytes + chunk / width * leading + row + input / 8 * stride;
}

template <class T>
void SharedMatrix::read(const std::vector<std::byte> &shared, uint32_t first, uint32_t lines, uint32_t inputs,
                        float (*to)[kMostLines]) const {
  if (linesSideBySide) {
    for (uint32_t input = 0; input < inputs; ++input)
      for (uint32_t line = 0; line < lines; line += kPerUnit) {
        std::array<T, kPerUnit> unit = unitAt<T>(shared, unitOfLines((first + line) / kPerUnit, input), width);
        for (uint32_t i = 0; i < kPerUnit; ++i)
          to[input][line + i] = widen(unit[i]);
      }
    return;
  }
  if (width == 2 && inputs > kInputs)
    throw Fault(Fault::Kind::IllegalInstruction, "a matrix of 32 inputs side by side with a swizzle of 32 bytes");
  for (uint32_t line = 0; line < lines; ++line)
    for (uint32_t chunk = 0; chunk < inputs / kPerUnit; ++chunk) {
      std::array<T, kPerUnit> unit = unitAt<T>(shared, unitOfInputs(first + line, chunk), width);
      for (uint32_t i = 0; i < kPerUnit; ++i)
        to[chunk * kPerUnit + i][line] = widen(unit[i]);
    }
}

template void SharedMatrix::read<Half>(const std::vector<std::byte> &, uint32_t, uint32_t, uint32_t,
                                       float (*)[kMostLines]) const;
template void SharedMatrix::read<BFloat>(const std::vector<std::byte> &, uint32_t, uint32_t, uint32_t,
                                         float (*)[kMostLines]) const;

} // namespace hone::emulation
