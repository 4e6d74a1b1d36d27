// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions that are for the four warps of a warpgroup. Each warp does its part when it comes to one; that all of them came is
// checked when the block ends (Block::checkGroups).

#pragma once

#include "exec/fragments.h"
#include "ptx/block.h"

namespace hone::emulation {

/// Every such instruction begins so.
inline void beginForGroup(Warp &warp, uint32_t mask) {
  expectWholeWarp(mask);
  uint32_t end = (warp.index / kWarpsOfGroup + 1) * kWarpsOfGroup;
  if (end * kLanes > warp.block.launch.threads())
    throw Fault(Fault::Kind::IllegalInstruction, "an instruction of a warpgroup in fewer than four warps");
  warp.groupTrace = (warp.groupTrace ^ (warp.pc + 1)) * 0x9e3779b97f4a7c15u;
}

} // namespace hone::emulation
