// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread does of an operation of linalg: one position, the next elements of a row, or a lane's share of a reduction.

#include "ThreadNest.h"

#include "Combiners.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace hone {

void ThreadNest::build(OpBuilder &b, Location loc, Value position, Value lane) {
  if (plan.width == 1) {
    delinearize(b, loc, plan.parallel, position);
    return plan.byWarp ? buildWarp(b, loc, lane) : buildThread(b, loc);
  }
  Value width = constant(b, loc, plan.width);
  unsigned inner = plan.parallel.back();
  Value steps = arith::DivUIOp::create(b, loc, sizes[inner], width);
  Value step = position;
  if (plan.parallel.size() > 1) {
    step = arith::RemUIOp::create(b, loc, position, steps);
    delinearize(b, loc, ArrayRef(plan.parallel).drop_back(), arith::DivUIOp::create(b, loc, position, steps));
  }
  ivs[inner] = arith::MulIOp::create(b, loc, step, width);
  buildVector(b, loc);
}

void ThreadNest::buildThread(OpBuilder &b, Location loc) {
  if (plan.reductions.empty())
    return store(b, loc, compute(b, loc, loadOutputs(b, loc)));
  SmallVector<Value> accumulators;
  for (OpOperand &output : op.getDpsInitsMutable())
    accumulators.push_back(load(b, loc, output));
  store(b, loc, buildReductions(b, loc, plan.reductions, accumulators));
}

/// All loads come before the first store: LLVM need not know that outputs are no inputs.
void ThreadNest::buildVector(OpBuilder &b, Location loc) {
  unsigned inner = plan.parallel.back();
  Value first = ivs[inner];
  SmallVector<std::pair<OpOperand *, Value>> vectors;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isVectorized(op, operand, inner) || !op.payloadUsesValueFromOperand(&operand))
      continue;
    Value memory = values.lookupOrDefault(operand.get());
    auto elements = cast<MemRefType>(memory.getType()).getElementType();
    auto load =
        vector::LoadOp::create(b, loc, VectorType::get({plan.width}, elements), memory, getIndices(b, loc, operand));
    load.setAlignment(std::min<uint64_t>(plan.width * elements.getIntOrFloatBitWidth() / 8, 16));
    vectors.emplace_back(&operand, load);
  }
  SmallVector<SmallVector<Value>> results(op.getNumDpsInits());
  for (int64_t lane = 0; lane < plan.width; ++lane) {
    ivs[inner] = arith::AddIOp::create(b, loc, first, constant(b, loc, lane));
    loaded.clear();
    for (auto [operand, vector] : vectors)
      loaded[operand] = vector::ExtractOp::create(b, loc, vector, lane);
    for (auto [i, result] : llvm::enumerate(compute(b, loc, loadOutputs(b, loc))))
      results[i].push_back(result);
  }
  ivs[inner] = first;
  for (auto [lanes, output] : llvm::zip_equal(results, op.getDpsInitsMutable())) {
    Type elements = lanes.front().getType();
    Value vector = vector::FromElementsOp::create(b, loc, VectorType::get({plan.width}, elements), lanes);
    auto store =
        vector::StoreOp::create(b, loc, vector, values.lookupOrDefault(output.get()), getIndices(b, loc, output));
    store.setAlignment(std::min<uint64_t>(plan.width * elements.getIntOrFloatBitWidth() / 8, 16));
  }
}

SmallVector<Value> ThreadNest::buildLane(OpBuilder &b, Location loc, ArrayRef<unsigned> dims, Value lane,
                                         ValueRange accumulators) {
  bool isLast = dims.size() == 1;
  Value begin = isLast ? lane : constant(b, loc, 0), step = constant(b, loc, isLast ? kWarpLanes : 1);
  auto loop = scf::ForOp::create(b, loc, begin, sizes[dims.front()], step, accumulators);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ivs[dims.front()] = loop.getInductionVar();
  SmallVector<Value> next = isLast ? buildReductions(b, loc, {}, loop.getRegionIterArgs())
                                   : buildLane(b, loc, dims.drop_front(), lane, loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, next);
  return loop.getResults();
}

Value ThreadNest::sumLanes(OpBuilder &b, Location loc, Operation *combiner, Value value) {
  Value lanes = arith::ConstantIntOp::create(b, loc, kWarpLanes, 32);
  for (int64_t distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    Value offset = arith::ConstantIntOp::create(b, loc, distance, 32);
    Value other = gpu::ShuffleOp::create(b, loc, value, offset, lanes, gpu::ShuffleMode::XOR).getShuffleResult();
    Operation *join = b.clone(*combiner);
    join->setOperands({value, other});
    value = join->getResult(0);
  }
  return value;
}

/// What the output held before counts once: the first lane begins with it, the others with the neutral element.
void ThreadNest::buildWarp(OpBuilder &b, Location loc, Value lane) {
  SmallVector<Operation *> combiners = *getCombiners(op);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, constant(b, loc, 0));
  SmallVector<Value> accumulators;
  for (auto [combiner, output] : llvm::zip_equal(combiners, op.getDpsInitsMutable())) {
    Value neutral = arith::ConstantOp::create(b, loc, *arith::getNeutralElement(combiner));
    accumulators.push_back(arith::SelectOp::create(b, loc, isFirst, load(b, loc, output), neutral));
  }
  SmallVector<Value> results = buildLane(b, loc, plan.reductions, lane, accumulators);
  for (auto [combiner, result] : llvm::zip_equal(combiners, results))
    result = sumLanes(b, loc, combiner, result);
  auto first = scf::IfOp::create(b, loc, isFirst);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(first.thenBlock());
  store(b, loc, results);
}

} // namespace hone
