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
    if (address >> kRankBit != 0) {
      std::vector<std::byte> &shared = warp.block.peer(static_cast<uint32_t>(address >> kRankBit) - 1).shared;
      if (uint64_t at = address & ((1u << kRankBit) - 1); within(at, bytes, shared.size()))
        return shared.data() + at;
    }
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

namespace {

// Lanes that lie farther apart are checked one by one.
constexpr uint64_t kNear = 16384;

Space spaceOf(const DeviceMemory &memory, uint64_t address) {
  if (memory.owns(address))
    return Space::Global;
  if (address - kSharedWindow < kWindowBytes)
    return Space::Shared;
  if (address - kLocalWindow < kWindowBytes)
    return Space::Local;
  return address - kParamWindow < kWindowBytes ? Space::Param : Space::Generic;
}

/// What generic addresses of a space have more than its own.
uint64_t windowOf(Space space) {
  return space == Space::Shared ? kSharedWindow : space == Space::Local ? kLocalWindow : 0;
}

struct Span {
  uint64_t least;
  uint64_t most;
  uint64_t bits; // of all addresses
};

Span spanOf(const uint64_t *addresses) {
  // No address has its highest bit set that is one; compared as signed numbers, such a one is the least.
  int64_t least = static_cast<int64_t>(addresses[0]);
  int64_t most = least;
  uint64_t bits = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    auto address = static_cast<int64_t>(addresses[lane]);
    least = address < least ? address : least;
    most = address > most ? address : most;
    bits |= addresses[lane];
  }
  return {static_cast<uint64_t>(least), static_cast<uint64_t>(most), bits};
}

bool holdsLanes(const DeviceMemory &memory, Span span, uint64_t bytes, const uint64_t *addresses) {
  if (span.most - span.least < kNear)
    return memory.holds(span.least, span.most - span.least + bytes);
  bool all = true;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    all &= memory.holds(addresses[lane], bytes);
  return all;
}

/// Checks all lanes together, with addresses of their space; false where one of them may be wrong.
bool resolveTogether(Warp &warp, Space space, Span span, uint64_t bytes, uint64_t *addresses, uint64_t &origin) {
  const Launch &launch = warp.block.launch;
  auto beginning = [](const std::byte *data) { return reinterpret_cast<uint64_t>(data); };
  switch (space) {
  case Space::Global:
    origin = beginning(launch.memory->bytes(0));
    return holdsLanes(*launch.memory, span, bytes, addresses);
  case Space::Shared:
    origin = beginning(warp.block.shared.data());
    return within(span.most, bytes, warp.block.shared.size());
  case Space::Local: {
    uint64_t size = launch.kernel->localBytes;
    origin = beginning(warp.local);
    if (!within(span.most, bytes, size))
      return false;
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      addresses[lane] += lane * size;
    return true;
  }
  default:
    return false;
  }
}

} // namespace

uint64_t resolveLanes(Warp &warp, const Inst &inst, uint32_t mask, unsigned at, uint64_t bytes, uint64_t *addresses) {
  addressesOf(warp, inst, mask, at, addresses);
  // Lanes that do not take part are where the first one is.
  for (uint32_t rest = ~mask; rest != 0; rest &= rest - 1)
    addresses[firstLane(rest)] = addresses[firstLane(mask)];
  Span span = spanOf(addresses);
  Space space = inst.space;
  bool together = (span.bits & (bytes - 1)) == 0 && static_cast<int64_t>(span.least) >= 0;
  if (together && space == Space::Generic) {
    const DeviceMemory &memory = *warp.block.launch.memory;
    space = spaceOf(memory, span.least);
    together = space == spaceOf(memory, span.most);
    uint64_t window = together ? windowOf(space) : 0;
    span.least -= window, span.most -= window;
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      addresses[lane] -= window;
  }
  uint64_t origin = 0;
  if (together && resolveTogether(warp, space, span, bytes, addresses, origin))
    return origin;
  // One by one: who is wrong says so.
  addressesOf(warp, inst, mask, at, addresses);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    addresses[lane] = reinterpret_cast<uint64_t>(locate(warp, inst.space, lane, addresses[lane], bytes));
  }
  return 0;
}

void locateLanes(Warp &warp, const Inst &inst, uint32_t mask, unsigned at, uint64_t bytes, std::byte **places) {
  uint64_t addresses[kLanes];
  uint64_t origin = resolveLanes(warp, inst, mask, at, bytes, addresses);
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    places[lane] = reinterpret_cast<std::byte *>(origin + addresses[lane]);
}

} // namespace hone::emulation
