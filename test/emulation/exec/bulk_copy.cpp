// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bulk copies of runs of bytes. Those that a barrier in memory counts are done when somebody tests that barrier, those in groups when
// the thread waits for them.

#include "exec/addresses.h"
#include "exec/async.h"
#include "exec/families.h"
#include "exec/mbarrier.h"
#include "ptx/block.h"

namespace hone::emulation {

void Block::performBulkCopies(const std::byte *barrier) {
  auto isDue = [&](const BulkCopy &copy) { return copy.barrier == barrier; };
  for (const BulkCopy &copy : bulkCopies) {
    if (!isDue(copy))
      continue;
    copy.perform();
    Mbarrier state = Mbarrier::load(copy.barrier);
    state.expect(-static_cast<int64_t>(copy.bytes));
    state.store(copy.barrier);
  }
  std::erase_if(bulkCopies, isDue);
}

namespace {

constexpr uint64_t kAlignment = 16;

uint32_t checkedSize(uint32_t bytes) {
  if (bytes % kAlignment != 0)
    throw Fault(Fault::Kind::MisalignedAddress, "a bulk copy of " + std::to_string(bytes) + " bytes");
  return bytes;
}

/// Bytes of one side of a copy; the first 16 say whether the address is right.
std::byte *locateRun(Warp &warp, Space space, uint32_t lane, uint64_t address, uint32_t bytes) {
  std::byte *begin = locate(warp, space, lane, address, kAlignment);
  locate(warp, space, lane, address + bytes - kAlignment, kAlignment);
  return space == Space::Global ? locateBytes(warp, lane, address, bytes) : begin;
}

// Operands: op[0] the destination, op[1] the source, op[2] the size, op[3] the barrier; all addresses are registers without offset.
void toShared(Warp &warp, const Inst &inst, uint32_t mask) {
  uint64_t to[kLanes];
  uint64_t from[kLanes];
  uint64_t barriers[kLanes];
  const uint32_t *offsets = inst.list;
  auto read = [&](unsigned at, uint64_t *addresses) {
    Inst one = inst;
    one.narrowBase = (inst.width >> at & 1) != 0;
    one.immediate = offsets[at];
    addressesOf(warp, one, mask, at, addresses);
  };
  read(0, to);
  read(1, from);
  read(3, barriers);
  const auto *sizes = warp.at<uint32_t>(inst.op[2]);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    uint32_t bytes = checkedSize(sizes[lane]);
    if (bytes == 0)
      continue;
    std::byte *barrier = locate(warp, Space::Shared, lane, barriers[lane], sizeof(uint64_t));
    std::byte *target = locateRun(warp, Space::Shared, lane, to[lane], bytes);
    const std::byte *source = locateRun(warp, Space::Global, lane, from[lane], bytes);
    warp.block.bulkCopies.push_back({barrier, bytes, [=] { std::memcpy(target, source, bytes); }});
  }
}

} // namespace

void decodeBulkCopy(Decoder &decoder, Statement &statement) {
  if (statement.take("tensor")) {
    decodeTensorCopy(decoder, statement);
    return;
  }
  while (!statement.takePrefixed("L2::").empty())
    continue;
  bool toSharedMemory = statement.takeOneOf({"shared::cluster", "shared::cta"}) >= 0 && statement.take("global") &&
                        statement.take("mbarrier::complete_tx::bytes");
  if (!toSharedMemory)
    statement.refuse("the emulation does not have this bulk copy");
  statement.expectOperands(4, 5); // the fifth is a cache policy
  Inst parts[4];
  std::vector<uint32_t> offsets;
  uint8_t narrow = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (i != 2)
      decoder.address(parts[i], statement.operands[i], i == 1 ? Space::Global : Space::Shared, i);
    offsets.push_back(static_cast<uint32_t>(parts[i].immediate));
    narrow |= static_cast<uint8_t>(parts[i].narrowBase ? 1 << i : 0);
  }
  Inst &inst = decoder.emit(toShared);
  for (unsigned i = 0; i < 4; ++i)
    inst.op[i] = i == 2 ? decoder.source(statement.operands[2], Type::B32) : parts[i].op[i];
  inst.width = narrow;
  inst.list = decoder.list(std::move(offsets));
}

} // namespace hone::emulation
