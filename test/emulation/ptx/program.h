// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoded kernels: what warps execute.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hone::emulation {

class Warp;
struct Inst;

/// Executes an instruction for the lanes of a mask, which is never empty but for instructions of control.
using Handler = void (*)(Warp &, const Inst &, uint32_t mask);

/// State spaces of addresses. Constants and parameters lie in windows of their own.
enum class Space : uint8_t { Generic, Global, Shared, Local, Param };

/// An instruction. Operands are slots: offsets in bytes into a warp's frame, where a value of the 32 lanes lies.
struct Inst {
  Handler run = nullptr;
  std::array<uint32_t, 6> op{};   // result first, then sources
  uint32_t guard = 0;             // slot of the mask of lanes that execute it
  uint32_t flip = 0;              // all ones where the guard is negated
  int64_t immediate = 0;          // offset of an address, or what the handler says
  const uint32_t *list = nullptr; // more slots or branch targets
  uint32_t target = 0;            // of a branch; elsewhere what the handler says
  uint16_t count = 0;             // how many `list` has
  Space space = Space::Generic;
  uint8_t width = 0;       // what the handler says: bytes of a register, kind of an operation
  bool narrowBase = false; // the address register has 32 bits
  bool control = false;    // moves the program counter itself
};

/// A slot whose lanes have the same value in every warp.
struct Constant {
  uint32_t slot;
  uint32_t bytes;
  std::array<uint64_t, 2> bits;
};

/// Slots that every frame begins with: special registers, 32 lanes of 32 bits each.
enum Special : uint32_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNumWarps,
  kSmId,
  kNumSms,
  kGridId,
  kMaskEq,
  kMaskLe,
  kMaskLt,
  kMaskGe,
  kMaskGt,
  kClusterX,
  kNumClustersX,
  kClusterRank,
  kClusterBlocks,
  kDynamicShared,
  kTotalShared,
  kZero,
  kOne,
  kAlways,
  kNumSpecials,
};
constexpr uint32_t kLanes = 32;
constexpr uint32_t kAllLanes = ~0u;
constexpr uint32_t specialSlot(Special special) { return special * kLanes * 4; }

struct Parameter {
  uint32_t offset;
  uint32_t bytes;
};

struct Kernel {
  std::string name;
  std::vector<Inst> code;
  std::vector<std::string_view> texts; // of each instruction, in the module's text
  std::vector<Constant> constants;
  std::deque<std::vector<uint32_t>> lists; // what Inst::list points at
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t frameBytes = specialSlot(kNumSpecials);
  uint32_t localBytes = 0;
  uint32_t staticShared = 0;
  uint32_t maxThreads = 1024;
  std::array<uint32_t, 3> requiredThreads{}; // 0: any
  uint32_t cluster = 1;                      // blocks along x
};

} // namespace hone::emulation
