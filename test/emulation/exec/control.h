// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handlers of control that the decoder itself emits.

#pragma once

#include "ptx/program.h"

namespace hone::emulation {

void branchLanes(Warp &warp, const Inst &inst, uint32_t mask);
/// Jumps to list[index], by the index in operand 0.
void branchByTable(Warp &warp, const Inst &inst, uint32_t mask);
void exitLanes(Warp &warp, const Inst &inst, uint32_t mask);
/// The end of a launch by an assertion of the kernel.
void failAssertion(Warp &warp, const Inst &inst, uint32_t mask);

} // namespace hone::emulation
