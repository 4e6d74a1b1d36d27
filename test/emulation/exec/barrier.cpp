// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers of a block and of a warp.

#include "exec/families.h"
#include "ptx/block.h"

namespace hone::emulation {
namespace {

// Operands of an instruction of a barrier: its number, how many threads, where the reduction goes, the predicate.
enum : uint32_t { kNumber, kThreads, kResult, kPredicate };

uint32_t numberOf(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t number = warp.at<uint32_t>(inst.op[kNumber])[firstLane(mask)];
  if (number >= kNumBarriers)
    throw Fault(Fault::Kind::IllegalInstruction, "a barrier with a number above 15");
  return number;
}

void sync(Warp &warp, const Inst &inst, uint32_t mask) {
  if (mask == 0) {
    warp.advance();
    return;
  }
  uint32_t number = numberOf(warp, inst, mask);
  Block::Barrier &barrier = warp.block.barrier(number);
  barrier.expected = warp.at<uint32_t>(inst.op[kThreads])[firstLane(mask)];
  warp.waitAtBarrier(mask, number);
}

void arrive(Warp &warp, const Inst &inst, uint32_t mask) {
  uint32_t number = numberOf(warp, inst, mask);
  Block::Barrier &barrier = warp.block.barrier(number);
  barrier.expected = warp.at<uint32_t>(inst.op[kThreads])[firstLane(mask)];
  barrier.arrivedOnly += kLanes;
  warp.block.update(number);
}

void reduce(Warp &warp, const Inst &inst, uint32_t mask) {
  if (mask == 0) {
    warp.advance();
    return;
  }
  uint32_t number = numberOf(warp, inst, mask);
  Block::Barrier &barrier = warp.block.barrier(number);
  barrier.expected = warp.at<uint32_t>(inst.op[kThreads])[firstLane(mask)];
  barrier.reduction = static_cast<Block::Reduction>(inst.width);
  uint32_t holds = (warp.maskAt(inst.op[kPredicate]) ^ static_cast<uint32_t>(inst.immediate)) & mask;
  barrier.holds += static_cast<uint32_t>(std::popcount(holds));
  barrier.threads += static_cast<uint32_t>(std::popcount(mask));
  barrier.results.push_back({&warp, inst.op[kResult], mask});
  warp.waitAtBarrier(mask, number);
}

void syncWarp(Warp &warp, const Inst &inst, uint32_t mask) {
  if (mask == 0 || warp.gather(warp.at<uint32_t>(inst.op[0])[firstLane(mask)], mask))
    warp.advance();
}

void decodeWarp(Decoder &decoder, Statement &statement) {
  statement.take("sync");
  statement.expectOperands(1);
  Inst &inst = decoder.emit(syncWarp);
  inst.control = true;
  inst.op[0] = decoder.source(statement.operands[0], Type::U32);
}

void decodeReduction(Decoder &decoder, Statement &statement) {
  int kind = statement.takeOneOf({"popc", "and", "or"});
  std::optional<Type> type = statement.takeType();
  if (kind < 0 || !type)
    statement.refuse("a reduction of another kind");
  statement.expectOperands(3, 4);
  bool counted = statement.operands.size() == 4;
  Inst &inst = decoder.emit(reduce);
  inst.control = true;
  inst.width = static_cast<uint8_t>(static_cast<int>(Block::Reduction::Count) + kind);
  inst.op[kResult] = decoder.destination(statement.operands[0], kind == 0 ? Type::U32 : Type::Pred);
  inst.op[kNumber] = decoder.source(statement.operands[1], Type::U32);
  inst.op[kThreads] = counted ? decoder.source(statement.operands[2], Type::U32) : decoder.constant(0, 4);
  uint32_t flip = 0;
  inst.op[kPredicate] = decoder.predicate(statement.operands[counted ? 3 : 2], flip);
  inst.immediate = flip;
}

} // namespace

void decodeBarrier(Decoder &decoder, Statement &statement) {
  if (statement.take("warp")) {
    decodeWarp(decoder, statement);
    return;
  }
  if (statement.take("cluster")) {
    decodeClusterBarrier(decoder, statement);
    return;
  }
  statement.take("cta");
  statement.take("aligned");
  int kind = statement.takeOneOf({"sync", "arrive", "red"});
  if (kind < 0)
    statement.refuse("a barrier of another kind");
  if (kind == 2) {
    decodeReduction(decoder, statement);
    return;
  }
  statement.expectOperands(1, 2);
  Inst &inst = decoder.emit(kind == 0 ? sync : arrive);
  inst.control = kind == 0;
  inst.op[kNumber] = decoder.source(statement.operands[0], Type::U32);
  bool counted = statement.operands.size() == 2;
  inst.op[kThreads] = counted ? decoder.source(statement.operands[1], Type::U32) : decoder.constant(0, 4);
}

} // namespace hone::emulation
