// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A launch of a kernel: what all of its blocks share, and how they are run.

#pragma once

#include "ptx/memory.h"
#include "ptx/program.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace hone::emulation {

/// How a kernel can end before its time.
struct Fault : std::runtime_error {
  enum class Kind : uint8_t {
    IllegalAddress,
    MisalignedAddress,
    IllegalInstruction,
    Assertion,
    Trap,
    Deadlock,
    Timeout
  };
  Fault(Kind kind, const std::string &what) : std::runtime_error(what), kind(kind) {}
  Kind kind;
};

/// Windows of generic addresses, apart from device memory and from everything that the host has.
constexpr uint64_t kSharedWindow = uint64_t{0x0100'0000} << 32;
constexpr uint64_t kLocalWindow = uint64_t{0x0200'0000} << 32;
constexpr uint64_t kParamWindow = uint64_t{0x0300'0000} << 32;
constexpr uint64_t kWindowBytes = uint64_t{1} << 32;

/// Addresses of shared memory of a block of the cluster have its rank + 1 from this bit on.
constexpr unsigned kRankBit = 24;

struct Launch {
  const Kernel *kernel = nullptr;
  DeviceMemory *memory = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamicShared = 0;
  uint32_t multiprocessors = 1;
  bool cooperative = false; // all blocks are resident at once
  std::vector<std::byte> parameters;

  uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  uint32_t sharedBytes() const { return kernel->staticShared + dynamicShared; }
};

/// Registers of a thread where a kernel has as many as fit, which is what those have that change their number.
uint32_t registersAtLaunch(const Launch &launch);

/// Runs all blocks of a launch; returns the number of instructions that its warps executed. Throws Fault, whose message says the
/// kernel, the instruction, the block and the thread.
uint64_t execute(const Launch &launch);

} // namespace hone::emulation
