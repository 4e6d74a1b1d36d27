// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies from global to shared memory that go on while the thread does: they are done when it waits for them, and not before, so that
// a wait that is missing shows.

#include "exec/addresses.h"
#include "exec/async.h"
#include "exec/families.h"
#include "ptx/block.h"

#include <algorithm>

namespace hone::emulation {
namespace {

void perform(const PendingCopy &copy) {
  std::memcpy(copy.to, copy.from, copy.taken);
  std::memset(copy.to + copy.taken, 0, copy.bytes - copy.taken);
}

/// Does the copies of the lanes of a mask for which `due` holds, in their order.
template <class Due> void performWhere(Warp &warp, uint32_t mask, Due due) {
  auto isDue = [&](const PendingCopy &copy) { return (mask >> copy.lane & 1) != 0 && due(copy); };
  for (const PendingCopy &copy : warp.copies)
    if (isDue(copy))
      perform(copy);
  std::erase_if(warp.copies, isDue);
}

// Operands: op[0] the shared address, op[1] the global one; op[2] how many bytes are read, op[3] the predicate of those that read none.
// Inst::width is the size, Inst::immediate the offset of the destination, Inst::target that of the source.
void copy(Warp &warp, const Inst &inst, uint32_t mask) {
  std::byte *to[kLanes];
  locateLanes(warp, inst, mask, 0, inst.width, to);
  Inst source = inst;
  source.space = Space::Global;
  source.immediate = static_cast<int32_t>(inst.target);
  source.narrowBase = false;
  uint64_t addresses[kLanes];
  addressesOf(warp, source, mask, 1, addresses);
  const auto *taken = warp.at<uint32_t>(inst.op[2]);
  uint32_t ignored = warp.maskAt(inst.op[3]) ^ inst.op[4];
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    uint32_t bytes = (ignored >> lane & 1) != 0 ? 0 : std::min<uint32_t>(taken[lane], inst.width);
    // What is not read may lie anywhere. Fewer bytes than the size need no alignment of their own.
    const std::byte *from = to[lane];
    if (bytes == inst.width)
      from = locate(warp, Space::Global, lane, addresses[lane], bytes);
    else if (bytes != 0)
      from = locateBytes(warp, lane, addresses[lane], bytes);
    warp.copies.push_back({lane, warp.committedCopies[lane], to[lane], from, inst.width, bytes});
  }
}

void commit(Warp &warp, const Inst &inst, uint32_t mask) {
  for (; mask != 0; mask &= mask - 1)
    ++warp.committedCopies[firstLane(mask)];
}

/// Waits until at most Inst::immediate of the groups that a thread has committed are under way.
void waitForGroups(Warp &warp, const Inst &inst, uint32_t mask) {
  performWhere(warp, mask, [&](const PendingCopy &copy) {
    return copy.group + static_cast<uint64_t>(inst.immediate) < warp.committedCopies[copy.lane];
  });
}

} // namespace

void waitForCopies(Warp &warp, const Inst &inst, uint32_t mask) {
  performWhere(warp, mask, [](const PendingCopy &) { return true; });
}

namespace {

void decodeCopy(Decoder &decoder, Statement &statement) {
  while (!statement.takePrefixed("L2::").empty())
    continue;
  statement.takeOneOf({"ca", "cg"});
  if (statement.takeOneOf({"shared", "shared::cta"}) < 0 || !statement.take("global"))
    statement.refuse("the emulation does not have this copy");
  statement.expectOperands(3, 5);
  const std::vector<Operand> &operands = statement.operands;
  uint64_t bytes = operands[2].bits;
  if (operands[2].kind != Operand::Kind::Integer || (bytes != 4 && bytes != 8 && bytes != 16))
    statement.refuse("the emulation does not have copies of this size");
  Inst source;
  decoder.address(source, operands[1], Space::Global, 1);
  Inst &inst = decoder.emit(copy);
  decoder.address(inst, operands[0], Space::Shared, 0);
  if (source.narrowBase || source.immediate != static_cast<int32_t>(source.immediate))
    statement.refuse("an address of another form");
  inst.op[1] = source.op[1];
  inst.target = static_cast<uint32_t>(source.immediate);
  inst.width = static_cast<uint8_t>(bytes);
  inst.op[2] = decoder.constant(bytes, 4);
  inst.op[3] = decoder.constant(0, 4);
  inst.op[4] = 0;
  // The fourth operand is how much is read, or a predicate that says that nothing is; a fifth is a cache policy.
  if (operands.size() == 3)
    return;
  if (decoder.isPredicate(operands[3]))
    inst.op[3] = decoder.predicate(operands[3], inst.op[4]);
  else if (decoder.bytesOfRegister(operands[3]) != 8)
    inst.op[2] = decoder.source(operands[3], Type::B32);
}

} // namespace

void decodeAsyncCopy(Decoder &decoder, Statement &statement) {
  statement.take("async");
  if (statement.take("commit_group")) {
    decoder.emit(commit);
  } else if (statement.take("wait_group")) {
    statement.expectOperands(1);
    decoder.emit(waitForGroups).immediate = static_cast<int64_t>(statement.operands[0].bits);
  } else if (statement.take("wait_all")) {
    decoder.emit(waitForCopies);
  } else if (statement.take("mbarrier")) {
    decodeCopyArrival(decoder, statement);
  } else if (statement.take("bulk")) {
    decodeBulkCopy(decoder, statement);
  } else {
    decodeCopy(decoder, statement);
  }
}

} // namespace hone::emulation
