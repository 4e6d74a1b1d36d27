// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From addresses of the lanes to bytes of the process.

#pragma once

#include "ptx/warp.h"

namespace hone::emulation {

/// The address of each lane of the mask, in the space of the instruction, from operand `at` and the offset.
void addressesOf(Warp &warp, const Inst &inst, uint32_t mask, unsigned at, uint64_t *addresses);

/// Where `bytes` bytes at an address of a lane lie; throws Fault where the lane may not touch them or where the address is no multiple of
/// their number (a power of two).
std::byte *locate(Warp &warp, Space space, uint32_t lane, uint64_t address, uint64_t bytes);

/// The same for bytes of global memory, of any number and at any address.
std::byte *locateBytes(Warp &warp, uint32_t lane, uint64_t address, uint64_t bytes);

/// Both of it for the lanes of a mask: afterwards `origin + addresses[lane]` is where a lane's bytes lie. Lanes that touch one allocation, or
/// memory of their block, are checked together.
uint64_t resolveLanes(Warp &warp, const Inst &inst, uint32_t mask, unsigned at, uint64_t bytes, uint64_t *addresses);

/// The same, with a pointer for each lane.
void locateLanes(Warp &warp, const Inst &inst, uint32_t mask, unsigned at, uint64_t bytes, std::byte **places);

} // namespace hone::emulation
