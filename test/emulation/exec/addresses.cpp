// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Spaces, windows and what lanes may touch.

#include "exec/addresses.h"

#include "ptx/block.h"

#include <cstdio>

namespace hone::emulation {
namespace {

std::string hexadecimal(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

[[noreturn]] void refuse(Warp &warp, Space space, uint32_t lane, uint64_t address, uint64_t bytes) {
  constexpr const char *kSpaces[] = {"generic", "global", "shared", "local", "parameter"};
  std::string what = "an access to " + std::to_string(bytes) + " bytes of " + kSpaces[static_cast<size_t>(space)] +
                     " memory at " + hexadecimal(address) + " by lane " + std::to_string(lane);
  const Launch &launch = warp.block.launch;
  if (space == Space::Shared)
    what += ", where the block has " + std::to_string(launch.sharedBytes()) + " bytes";
  // What lies just below tells whose end was crossed.
  if (space == Space::Global)
    for (uint64_t back = 1; back <= 4096; back *= 2)
      if (auto near = launch.memory->find(address - back)) {
        what += ", which is " + std::to_string(address - near->first) + " bytes into an allocation of " +
                std::to_string(near->second);
        break;
      }
  throw Fault(Fault::Kind::IllegalAddress, what);
}

bool within(uint64_t at, uint64_t bytes, uint64_t size) { return at <= size && bytes <= size - at; }

} // namespace

void addressesOf(Warp &warp, const Inst &inst, uint32_t mask, unsigned at, uint64_t *addresses) {
  auto offset = static_cast<uint64_t>(inst.immediate);
  if (inst.narrowBase) {
    const auto *base = warp.at<uint32_t>(inst.op[at]);
    eachLane(mask, [=](uint32_t lane) { addresses[lane] = static_cast<uint32_t>(base[lane] + offset); });
  } else {
    const auto *base = warp.at<uint64_t>(inst.op[at]);
    eachLane(mask, [=](uint32_t lane) { addresses[lane] = base[lane] + offset; });
  }
}

std::byte *locate(Warp &warp, Space space, uint32_t lane, uint64_t address, uint64_t bytes) {
  const Launch &launch = warp.block.launch;
  if ((address & (bytes - 1)) != 0)
    throw Fault(Fault::Kind::MisalignedAddress, "an access to " + std::to_string(bytes) + " bytes at " +
                                                    hexadecimal(address) + " by lane " + std::to_string(lane));
  switch (space) {
  case Space::Generic:
    if (launch.memory->owns(address))
      return locate(warp, Space::Global, lane, address, bytes);
    if (address - kSharedWindow < kWindowBytes)
      return locate(warp, Space::Shared, lane, address - kSharedWindow, bytes);
    if (address - kLocalWindow < kWindowBytes)
      return locate(warp, Space::Local, lane, address - kLocalWindow, bytes);
    if (address - kParamWindow < kWindowBytes)
      return locate(warp, Space::Param, lane, address, bytes);
    break;
  case Space::Global:
    if (launch.memory->holds(address, bytes))
      return launch.memory->bytes(address);
    break;
  case Space::Shared:
    if (within(address, bytes, warp.block.shared.size()))
      return warp.block.shared.data() + address;
    break;
  case Space::Local: {
    uint32_t size = launch.kernel->localBytes;
    if (within(address, bytes, size))
      return warp.local + uint64_t{lane} * size + address;
    break;
  }
  case Space::Param:
    if (within(address - kParamWindow, bytes, launch.parameters.size()))
      return const_cast<std::byte *>(launch.parameters.data()) + (address - kParamWindow);
    break;
  }
  refuse(warp, space, lane, address, bytes);
}

std::byte *locateBytes(Warp &warp, uint32_t lane, uint64_t address, uint64_t bytes) {
  const DeviceMemory &memory = *warp.block.launch.memory;
  if (!memory.holds(address, bytes))
    refuse(warp, Space::Global, lane, address, bytes);
  return memory.bytes(address);
}

void locateLanes(Warp &warp, const Inst &inst, uint32_t mask, unsigned at, uint64_t bytes, std::byte **places) {
  uint64_t addresses[kLanes];
  addressesOf(warp, inst, mask, at, addresses);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    places[lane] = locate(warp, inst.space, lane, addresses[lane], bytes);
  }
}

} // namespace hone::emulation
