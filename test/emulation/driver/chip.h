// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chips that are emulated, and what programs ask about them.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone::emulation {

struct Chip {
  int architecture; // 90 for sm_90
  const char *name;
  int multiprocessors;
  int threadsPerMultiprocessor;
  int blocksPerMultiprocessor;
  int sharedPerMultiprocessor; // bytes
  int sharedPerBlock;          // bytes, where a kernel asks for more than the first 48 KiB
  int cacheBytes;              // of the second level
  int busBits;
};

/// The architecture that "sm_90" names, or 0 for a chip that is not emulated.
int chipNamed(std::string_view name);
const Chip &chipOf(int architecture);

/// The value of a CUdevice_attribute of the chip; none for what the emulation does not know.
std::optional<int> attributeOf(const Chip &chip, int attribute, int device);

/// Bytes of shared memory that a block has without asking for more.
constexpr int kPlainSharedBytes = 48 * 1024;

} // namespace hone::emulation
