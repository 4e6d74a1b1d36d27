// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers that are objects in shared memory: a phase ends when as many threads have arrived, and as many bytes have come, as were
// expected.

#include "exec/mbarrier.h"
#include "exec/addresses.h"
#include "exec/async.h"
#include "exec/families.h"
#include "ptx/block.h"

namespace hone::emulation {
namespace {

constexpr uint64_t kCountMask = (uint64_t{1} << 20) - 1;
constexpr uint64_t kBytesBias = uint64_t{1} << 21; // bytes may come before they are expected

} // namespace

Mbarrier Mbarrier::load(const std::byte *place) {
  uint64_t bits;
  std::memcpy(&bits, place, sizeof bits);
  Mbarrier barrier;
  barrier.pending = static_cast<uint32_t>(bits & kCountMask);
  barrier.expected = static_cast<uint32_t>(bits >> 20 & kCountMask);
  barrier.bytes = static_cast<int64_t>(bits >> 40 & (2 * kBytesBias - 1)) - static_cast<int64_t>(kBytesBias);
  barrier.phase = static_cast<uint32_t>(bits >> 63);
  return barrier;
}

uint64_t Mbarrier::bits() const {
  return pending | uint64_t{expected} << 20 | static_cast<uint64_t>(bytes + static_cast<int64_t>(kBytesBias)) << 40 |
         uint64_t{phase} << 63;
}

void Mbarrier::store(std::byte *place) {
  if (pending == 0 && bytes == 0) {
    phase ^= 1;
    pending = expected;
  }
  uint64_t word = bits();
  std::memcpy(place, &word, sizeof word);
}

void Mbarrier::arrive(uint32_t count) {
  if (count > pending)
    throw Fault(Fault::Kind::IllegalInstruction, "more threads arrive at a barrier in memory than it expects");
  pending -= count;
}

void Mbarrier::expect(int64_t count) {
  bytes += count;
  if (bytes >= static_cast<int64_t>(kBytesBias) || bytes < -static_cast<int64_t>(kBytesBias))
    throw Fault(Fault::Kind::IllegalInstruction, "more bytes at a barrier in memory than it can count");
}

namespace {

enum class Operation : uint8_t { Initialize, Invalidate, Arrive, ArriveAndExpect, ArriveAndDrop, Expect, Complete };

// Operands: op[0] the token (0 for none), op[1] the address, op[2] a count of threads or bytes.
void change(Warp &warp, const Inst &inst, uint32_t mask) {
  std::byte *places[kLanes];
  locateLanes(warp, inst, mask, 1, sizeof(uint64_t), places);
  const auto *counts = warp.at<uint32_t>(inst.op[2]);
  auto *tokens = inst.op[0] == 0 ? nullptr : warp.at<uint64_t>(inst.op[0]);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    uint32_t count = counts[lane];
    Mbarrier barrier = Mbarrier::load(places[lane]);
    uint64_t token = barrier.bits();
    switch (static_cast<Operation>(inst.width)) {
    case Operation::Initialize:
      barrier = {count, count, 0, 0};
      break;
    case Operation::Invalidate:
      barrier = {};
      break;
    case Operation::Arrive:
      barrier.arrive(count);
      break;
    case Operation::ArriveAndExpect:
      barrier.expect(count), barrier.arrive(1);
      break;
    case Operation::ArriveAndDrop:
      barrier.expected -= count, barrier.arrive(count);
      break;
    case Operation::Expect:
      barrier.expect(count);
      break;
    case Operation::Complete:
      barrier.expect(-static_cast<int64_t>(count));
      break;
    }
    barrier.store(places[lane]);
    if (tokens != nullptr)
      tokens[lane] = token;
  }
}

// Operands: op[0] the predicate, op[1] the address, op[2] the token or the parity. Inst::width: 1 for a parity.
void test(Warp &warp, const Inst &inst, uint32_t mask) {
  std::byte *places[kLanes];
  locateLanes(warp, inst, mask, 1, sizeof(uint64_t), places);
  uint32_t result = 0;
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    uint32_t lane = firstLane(lanes);
    warp.block.performBulkCopies(places[lane]);
    uint32_t phase = inst.width != 0 ? warp.at<uint32_t>(inst.op[2])[lane] & 1
                                     : static_cast<uint32_t>(warp.at<uint64_t>(inst.op[2])[lane] >> 63);
    result |= static_cast<uint32_t>(Mbarrier::load(places[lane]).phase != phase) << lane;
  }
  warp.setMask(inst.op[0], mask, result);
  // Who waits in a loop lets others go on.
  if (result != mask)
    warp.pauseForCluster();
}

// All copies that the threads have begun are done; then they arrive.
void arriveAfterCopies(Warp &warp, const Inst &inst, uint32_t mask) {
  waitForCopies(warp, inst, mask);
  std::byte *places[kLanes];
  locateLanes(warp, inst, mask, 1, sizeof(uint64_t), places);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    Mbarrier barrier = Mbarrier::load(places[lane]);
    // Without .noinc the arrival is one that was not expected.
    if (inst.width == 0)
      ++barrier.pending;
    barrier.arrive(1);
    barrier.store(places[lane]);
  }
}

Space takeSpace(Statement &statement) {
  while (statement.takeOneOf({"release", "acquire", "relaxed", "cta", "cluster", "b64"}) >= 0)
    continue;
  return statement.takeOneOf({"shared", "shared::cta", "shared::cluster"}) >= 0 ? Space::Shared : Space::Generic;
}

Operation takeOperation(Statement &statement) {
  bool expects = statement.take("expect_tx");
  switch (statement.takeOneOf({"init", "inval", "arrive", "arrive_drop", "complete_tx"})) {
  case 0:
    return Operation::Initialize;
  case 1:
    return Operation::Invalidate;
  case 2:
    return expects ? Operation::ArriveAndExpect : Operation::Arrive;
  case 3:
    return Operation::ArriveAndDrop;
  case 4:
    return Operation::Complete;
  default:
    break;
  }
  if (!expects)
    statement.refuse("the emulation does not have this operation of barriers");
  return Operation::Expect;
}

void decodeTestOfBarrier(Decoder &decoder, Statement &statement) {
  bool parity = statement.take("parity");
  Space space = takeSpace(statement);
  statement.expectOperands(3, 4); // the fourth is how long to wait
  Inst &inst = decoder.emit(test);
  inst.width = parity ? 1 : 0;
  decoder.address(inst, statement.operands[1], space, 1);
  inst.op[0] = decoder.destination(statement.operands[0], Type::Pred);
  inst.op[2] = decoder.source(statement.operands[2], parity ? Type::B32 : Type::B64);
}

} // namespace

void decodeMbarrier(Decoder &decoder, Statement &statement) {
  if (statement.takeOneOf({"test_wait", "try_wait"}) >= 0) {
    decodeTestOfBarrier(decoder, statement);
    return;
  }
  Operation operation = takeOperation(statement);
  Space space = takeSpace(statement);
  bool arrives = operation == Operation::Arrive || operation == Operation::ArriveAndExpect ||
                 operation == Operation::ArriveAndDrop;
  const std::vector<Operand> &operands = statement.operands;
  size_t first = arrives && !operands.empty() && operands[0].kind != Operand::Kind::Address ? 1 : 0;
  statement.expectOperands(first + 1, first + 2);
  Inst &inst = decoder.emit(change);
  inst.width = static_cast<uint8_t>(operation);
  decoder.address(inst, operands[first], space, 1);
  inst.op[0] = first == 1 && operands[0].kind != Operand::Kind::Sink ? decoder.destination(operands[0], Type::B64) : 0;
  bool counted = operands.size() == first + 2;
  inst.op[2] = counted ? decoder.source(operands[first + 1], Type::B32) : decoder.constant(1, 4);
}

void decodeCopyArrival(Decoder &decoder, Statement &statement) {
  statement.take("arrive");
  bool expected = statement.take("noinc");
  Space space = takeSpace(statement);
  statement.expectOperands(1);
  Inst &inst = decoder.emit(arriveAfterCopies);
  inst.width = expected ? 1 : 0;
  decoder.address(inst, statement.operands[0], space, 1);
}

} // namespace hone::emulation
