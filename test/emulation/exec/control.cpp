// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Branches, ends of threads, fences.

#include "exec/control.h"

#include "exec/families.h"
#include "exec/warpgroup.h"

#include <array>
#include <atomic>

namespace hone::emulation {

void branchLanes(Warp &warp, const Inst &inst, uint32_t mask) { warp.branch(mask, inst.target); }

void branchByTable(Warp &warp, const Inst &inst, uint32_t mask) {
  std::array<uint32_t, kLanes> targets{};
  const uint32_t *index = warp.at<uint32_t>(inst.op[0]);
  eachLane(mask, [&](uint32_t lane) {
    if (index[lane] >= inst.count)
      throw Fault(Fault::Kind::IllegalInstruction, "an index past the end of a branch table");
    targets[lane] = inst.list[index[lane]];
  });
  warp.branchTo(mask, targets.data());
}

void exitLanes(Warp &warp, const Inst &inst, uint32_t mask) { warp.exit(mask); }

void failAssertion(Warp &warp, const Inst &inst, uint32_t mask) {
  throw Fault(Fault::Kind::Assertion, "an assertion does not hold");
}

namespace {

void trap(Warp &warp, const Inst &inst, uint32_t mask) { throw Fault(Fault::Kind::Trap, "a trap"); }

void fence(Warp &warp, const Inst &inst, uint32_t mask) { std::atomic_thread_fence(std::memory_order_seq_cst); }

void pause(Warp &warp, const Inst &inst, uint32_t mask) { warp.pause(); }

} // namespace

void decodeBranch(Decoder &decoder, Statement &statement) {
  statement.take("uni");
  statement.expectOperands(1);
  decoder.branch(statement.operands[0].name);
}

void decodeBranchByTable(Decoder &decoder, Statement &statement) {
  statement.take("idx");
  statement.take("uni");
  statement.expectOperands(2);
  decoder.branchTable(statement.operands[1].name, decoder.source(statement.operands[0], Type::U32));
}

void decodeCall(Decoder &decoder, Statement &statement) {
  statement.take("uni");
  decoder.call(statement);
}

void decodeReturn(Decoder &decoder, Statement &statement) {
  statement.take("uni");
  decoder.leave();
}

void decodeExit(Decoder &decoder, Statement &statement) { decoder.emit(exitLanes).control = true; }

void decodeTrap(Decoder &decoder, Statement &statement) { decoder.emit(trap); }

void decodeFence(Decoder &decoder, Statement &statement) {
  // Every order that a fence can ask for is one that a full fence gives.
  statement.takeOneOf({"proxy"});
  while (statement.takeOneOf({"sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys", "gl", "alias",
                              "async", "async::generic", "mbarrier_init", "tensormap::generic",
                              "sync_restrict::shared::cta", "sync_restrict::shared::cluster", "global", "shared::cta",
                              "shared::cluster"}) >= 0)
    continue;
  decoder.emit(fence);
}

void decodePause(Decoder &decoder, Statement &statement) {
  // Programs may not depend on what these do, but on others going on meanwhile.
  while (statement.takeOneOf({"u32", "wait", "launch_dependents", "mask"}) >= 0)
    continue;
  decoder.emit(pause);
}

namespace {

/// Gives registers of each thread back or takes more. Inst::width: 1 for more.
void setRegisterCount(Warp &warp, const Inst &inst, uint32_t mask) {
  beginForGroup(warp, mask);
  auto count = static_cast<uint32_t>(inst.immediate);
  if (inst.width != 0 ? count < warp.registers : count > warp.registers)
    throw Fault(Fault::Kind::IllegalInstruction,
                "a warp that has " + std::to_string(warp.registers) + " registers a thread before setmaxnreg");
  warp.registers = count;
}

} // namespace

void decodeRegisterCount(Decoder &decoder, Statement &statement) {
  decoder.requireTarget(90, true);
  int direction = statement.takeOneOf({"dec", "inc"});
  statement.take("sync");
  statement.take("aligned");
  statement.take("u32");
  statement.expectOperands(1);
  uint64_t count = statement.operands[0].bits;
  bool known = statement.operands[0].kind == Operand::Kind::Integer && count >= 24 && count <= 256 && count % 8 == 0;
  if (direction < 0 || !known)
    statement.refuse("expected 24, 32, ... or 256 registers");
  Inst &inst = decoder.emit(setRegisterCount);
  inst.width = static_cast<uint8_t>(direction);
  inst.immediate = static_cast<int64_t>(count);
}

} // namespace hone::emulation
