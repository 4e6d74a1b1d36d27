// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clusters of blocks: addresses in the shared memory of another block, and the barrier of all of them.

#include "exec/families.h"
#include "ptx/block.h"

#include <algorithm>

namespace hone::emulation {
namespace {

// Operands: op[0] the result, op[1] an address of shared memory, op[2] the rank of the block that has it.
void map(Warp &warp, const Inst &inst, uint32_t mask) {
  auto *to = warp.at<uint32_t>(inst.op[0]);
  const auto *addresses = warp.at<uint32_t>(inst.op[1]);
  const auto *ranks = warp.at<uint32_t>(inst.op[2]);
  for (; mask != 0; mask &= mask - 1) {
    uint32_t lane = firstLane(mask);
    if (ranks[lane] >= warp.block.cluster.size())
      throw Fault(Fault::Kind::IllegalInstruction, "a block of a cluster that has fewer");
    to[lane] = (addresses[lane] & ((1u << kRankBit) - 1)) | (ranks[lane] + 1) << kRankBit;
  }
}

void expectAll(const Warp &warp, uint32_t mask) {
  if (mask != warp.alive)
    throw Fault(Fault::Kind::IllegalInstruction, "a barrier of a cluster that not all lanes have come to");
}

void arrive(Warp &warp, const Inst &, uint32_t mask) {
  expectAll(warp, mask);
  ++warp.clusterArrivals;
}

/// Goes on once every warp of the cluster has arrived as often as this one; until then the instruction is executed again.
void wait(Warp &warp, const Inst &, uint32_t mask) {
  if (mask != 0) {
    expectAll(warp, mask);
    if (!std::ranges::all_of(warp.block.cluster,
                             [&](const Block *block) { return block->isAtCluster(warp.clusterArrivals); })) {
      warp.pauseForCluster();
      return;
    }
  }
  warp.advance();
}

} // namespace

void decodeMapToBlock(Decoder &decoder, Statement &statement) {
  decoder.requireTarget(90, false);
  if (!statement.take("shared::cluster") || statement.type() != Type::U32)
    statement.refuse("the emulation has addresses of 32 bits of shared memory here");
  statement.expectOperands(3);
  Inst &inst = decoder.emit(map);
  inst.op[0] = decoder.destination(statement.operands[0], Type::U32);
  inst.op[1] = decoder.source(statement.operands[1], Type::U32);
  inst.op[2] = decoder.source(statement.operands[2], Type::U32);
}

void decodeClusterBarrier(Decoder &decoder, Statement &statement) {
  decoder.requireTarget(90, false);
  int kind = statement.takeOneOf({"arrive", "wait"});
  while (statement.takeOneOf({"release", "relaxed", "acquire", "aligned"}) >= 0)
    continue;
  statement.expectOperands(0);
  if (kind < 0)
    statement.refuse("the emulation does not have this barrier of clusters");
  if (kind == 0)
    decoder.emit(arrive);
  else
    decoder.emit(wait).control = true;
}

} // namespace hone::emulation
