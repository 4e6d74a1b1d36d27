// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops of one operation of linalg on buffers. What a reduction has so far is a value and not memory wherever the reduction
// is innermost, so that LLVM can keep it in registers.

#include "LoopNest.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace hone {

LoopCaptures LoopCaptures::get(linalg::LinalgOp op, ArrayRef<Value> sizes) {
  llvm::SetVector<Value> used(sizes.begin(), sizes.end());
  used.insert_range(op->getOperands());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  LoopCaptures found;
  for (Value value : used)
    (matchPattern(value, m_Constant()) ? found.constants : found.captures).push_back(value);
  return found;
}

IRMapping LoopCaptures::map(OpBuilder &b, ValueRange arguments) const {
  IRMapping values;
  values.map(captures, arguments);
  for (Value constant : constants)
    values.map(constant, b.clone(*constant.getDefiningOp())->getResult(cast<OpResult>(constant).getResultNumber()));
  return values;
}

Value LoopNest::constant(OpBuilder &b, Location loc, int64_t value) const {
  return arith::ConstantIndexOp::create(b, loc, value);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

SmallVector<Value> LoopNest::getIndices(OpBuilder &b, Location loc, OpOperand &operand) {
  SmallVector<OpFoldResult> dims(ivs.begin(), ivs.end());
  SmallVector<Value> indices;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      indices.push_back(ivs[dim.getPosition()]);
      continue;
    }
    auto single = AffineMap::get(map.getNumDims(), 0, expr);
    OpFoldResult index = affine::makeComposedFoldedAffineApply(b, loc, single, dims);
    indices.push_back(getValueOrCreateConstantIndexOp(b, loc, index));
  }
  return indices;
}

Value LoopNest::load(OpBuilder &b, Location loc, OpOperand &operand) {
  if (Value known = loaded.lookup(&operand))
    return known;
  Value value = values.lookupOrDefault(operand.get());
  if (!isa<MemRefType>(value.getType()))
    return value;
  return memref::LoadOp::create(b, loc, value, getIndices(b, loc, operand));
}

SmallVector<Value> LoopNest::loadOutputs(OpBuilder &b, Location loc) {
  SmallVector<Value> elements;
  for (OpOperand &output : op.getDpsInitsMutable())
    elements.push_back(op.payloadUsesValueFromOperand(&output) ? load(b, loc, output) : Value());
  return elements;
}

void LoopNest::store(OpBuilder &b, Location loc, ValueRange results) {
  for (auto [result, output] : llvm::zip_equal(results, op.getDpsInitsMutable()))
    memref::StoreOp::create(b, loc, result, values.lookupOrDefault(output.get()), getIndices(b, loc, output));
}

bool LoopNest::isInnerBroadcast(Operation &inner) const {
  auto select = dyn_cast<arith::SelectOp>(inner);
  auto index = select ? select.getFalseValue().getDefiningOp<linalg::IndexOp>() : linalg::IndexOp();
  return index && order.inner && index.getDim() == *order.inner && matchPattern(select.getTrueValue(), m_Zero()) &&
         select.getCondition().getParentRegion() != inner.getParentRegion();
}

Value LoopNest::buildIsBroadcast(OpBuilder &b, Location loc) {
  llvm::SetVector<Value> conditions;
  for (Operation &inner : op.getBlock()->without_terminator())
    if (isInnerBroadcast(inner))
      conditions.insert(values.lookupOrDefault(cast<arith::SelectOp>(inner).getCondition()));
  Value any;
  for (Value condition : conditions)
    any = any ? arith::OrIOp::create(b, loc, any, condition).getResult() : condition;
  return any;
}

SmallVector<Value> LoopNest::compute(OpBuilder &b, Location loc, ArrayRef<Value> outputs) {
  IRMapping mapping = values;
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument element = op.getMatchingBlockArgument(input);
    if (!element.use_empty())
      mapping.map(element, load(b, loc, *input));
  }
  for (auto [value, output] : llvm::zip_equal(outputs, op.getDpsInitsMutable()))
    if (value)
      mapping.map(op.getMatchingBlockArgument(&output), value);
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (isFull && isInnerBroadcast(inner)) {
      mapping.map(inner.getResult(0), ivs[*order.inner]);
      continue;
    }
    Operation *copy = b.clone(inner, mapping);
    copy->walk([&](linalg::IndexOp index) {
      index.replaceAllUsesWith(ivs[index.getDim()]);
      if (index != copy)
        index.erase();
    });
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(index.getResult(), ivs[index.getDim()]);
      copy->erase();
    }
  }
  SmallVector<Value> results;
  for (Value result : op.getBlock()->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(result));
  return results;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void LoopNest::buildLoops(OpBuilder &b, Location loc, ArrayRef<unsigned> dims, Body body) {
  if (dims.empty())
    return body(b);
  auto loop = scf::ForOp::create(b, loc, constant(b, loc, 0), sizes[dims.front()], constant(b, loc, 1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ivs[dims.front()] = loop.getInductionVar();
  buildLoops(b, loc, dims.drop_front(), body);
}

void allowReordering(ValueRange results, ValueRange accumulators) {
  for (auto [result, accumulator] : llvm::zip_equal(results, accumulators)) {
    Operation *combine = result.getDefiningOp();
    if (!combine || !isa<arith::AddFOp, arith::MulFOp>(combine) ||
        !llvm::is_contained(combine->getOperands(), accumulator))
      continue;
    auto flags = arith::FastMathFlagsAttr::get(combine->getContext(),
                                               arith::FastMathFlags::reassoc | arith::FastMathFlags::contract);
    combine->setAttr("fastmath", flags);
    for (Value operand : combine->getOperands())
      if (auto product = operand.getDefiningOp<arith::MulFOp>())
        product.setFastmathAttr(arith::FastMathFlagsAttr::get(combine->getContext(), arith::FastMathFlags::contract));
  }
}

SmallVector<Value> LoopNest::buildReductions(OpBuilder &b, Location loc, ArrayRef<unsigned> dims,
                                             ValueRange accumulators) {
  if (dims.empty()) {
    SmallVector<Value> results = compute(b, loc, llvm::to_vector(accumulators));
    allowReordering(results, accumulators);
    return results;
  }
  auto loop = scf::ForOp::create(b, loc, constant(b, loc, 0), sizes[dims.front()], constant(b, loc, 1), accumulators);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ivs[dims.front()] = loop.getInductionVar();
  scf::YieldOp::create(b, loc, buildReductions(b, loc, dims.drop_front(), loop.getRegionIterArgs()));
  return loop.getResults();
}

/// Whether loads take their indices from loads, several times over, as in the descent of a tree. One after the other they take less time than as
/// gathers.
static bool chasesPointers(linalg::LinalgOp op) {
  constexpr int64_t most = 2; // an index, and what it is of
  llvm::DenseMap<Value, int64_t> loads;
  for (Operation &inner : *op.getBlock()) {
    int64_t before = 0;
    for (Value operand : inner.getOperands())
      before = std::max(before, loads.lookup(operand));
    before += isa<memref::LoadOp>(inner);
    if (before > most)
      return true;
    for (Value result : inner.getResults())
      loads[result] = before;
  }
  return false;
}

/// Iterations of this loop are independent: LLVM need not prove that its memory is not aliased.
static void markIndependent(scf::ForOp loop, bool isVectorized) {
  MLIRContext *context = loop.getContext();
  auto group = LLVM::AccessGroupAttr::get(context, DistinctAttr::create(UnitAttr::get(context)));
  LLVM::LoopVectorizeAttr vectorize;
  if (!isVectorized)
    vectorize = LLVM::LoopVectorizeAttr::get(context, BoolAttr::get(context, true), {}, {}, {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation", LLVM::LoopAnnotationAttr::get(context, {}, vectorize, {}, {}, {}, {}, {}, {},
                                                                      {}, {}, {}, {}, {}, {}, group));
}

void LoopNest::buildPoint(OpBuilder &b, Location loc, Value begin, Value end) {
  if (!order.inner) {
    SmallVector<Value> accumulators;
    for (OpOperand &output : op.getDpsInitsMutable())
      accumulators.push_back(load(b, loc, output));
    return store(b, loc, buildReductions(b, loc, order.reductions, accumulators));
  }
  buildLoops(b, loc, order.reductions, [&](OpBuilder &b) {
    Value isBroadcast = buildIsBroadcast(b, loc);
    if (!isBroadcast)
      return buildInner(b, loc, begin, end);
    // Only where neighbours are read for neighbours can LLVM vectorize.
    auto versions = scf::IfOp::create(b, loc, isBroadcast, /*withElseRegion=*/true);
    OpBuilder broadcast = versions.getThenBodyBuilder(), full = versions.getElseBodyBuilder();
    buildInner(broadcast, loc, begin, end);
    isFull = true;
    buildInner(full, loc, begin, end);
    isFull = false;
  });
}

/// Operands of an update in place whose elements lie one after the other along the innermost loop, if it reads as many as the update of a
/// parameter and its moments does; else none.
static SmallVector<OpOperand *> findUpdateStreams(linalg::LinalgOp op, unsigned inner) {
  constexpr size_t few = 3; // arrays that the processor prefetches by itself as fast as memory gives them
  SmallVector<OpOperand *> streams;
  bool isUpdate = false;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !type.getElementType().isIntOrFloat() || !op.payloadUsesValueFromOperand(&operand) ||
        getStride(op, operand, inner) != 1)
      continue;
    streams.push_back(&operand);
    isUpdate |= op.isDpsInit(&operand);
  }
  return isUpdate && streams.size() > few ? streams : SmallVector<OpOperand *>();
}

void LoopNest::buildInner(OpBuilder &b, Location loc, Value begin, Value end) {
  ivs[*order.inner] = begin;
  if (!isParallel(op))
    return buildElements(b, loc, begin, end);
  loadInvariants(b, loc);
  llvm::DenseMap<OpOperand *, Value> invariants = loaded;
  SmallVector<OpOperand *> streams = findUpdateStreams(op, *order.inner);
  if (!streams.empty())
    begin = buildBlocks(b, loc, begin, end, streams);
  loaded = std::move(invariants);
  buildElements(b, loc, begin, end);
}

void LoopNest::buildElements(OpBuilder &b, Location loc, Value begin, Value end) {
  auto loop = scf::ForOp::create(b, loc, begin, end, constant(b, loc, 1));
  if (isParallel(op))
    markIndependent(loop, !chasesPointers(op));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ivs[*order.inner] = loop.getInductionVar();
  store(b, loc, compute(b, loc, loadOutputs(b, loc)));
  loaded.clear();
}

Value LoopNest::buildBlocks(OpBuilder &b, Location loc, Value begin, Value end, ArrayRef<OpOperand *> streams) {
  constexpr int64_t block = 64, ahead = 512, line = 64; // elements, and bytes
  Value size = constant(b, loc, block), last = b.createOrFold<arith::SubIOp>(loc, end, constant(b, loc, 1));
  Value whole = arith::DivUIOp::create(b, loc, arith::SubIOp::create(b, loc, end, begin), size);
  Value rest = arith::AddIOp::create(b, loc, begin, arith::MulIOp::create(b, loc, whole, size));
  auto blocks = scf::ForOp::create(b, loc, begin, rest, size);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(blocks.getBody());
  Value first = blocks.getInductionVar();
  for (OpOperand *stream : streams) {
    Value memory = values.lookupOrDefault(stream->get());
    int64_t perLine = line * 8 / cast<MemRefType>(memory.getType()).getElementTypeBitWidth();
    for (int64_t element = ahead; element < ahead + block; element += perLine) {
      Value later = arith::AddIOp::create(b, loc, first, constant(b, loc, element));
      ivs[*order.inner] = arith::MinUIOp::create(b, loc, later, last);
      memref::PrefetchOp::create(b, loc, memory, getIndices(b, loc, *stream), /*isWrite=*/false, /*localityHint=*/3,
                                 /*isDataCache=*/true);
    }
  }
  buildElements(b, loc, first, arith::AddIOp::create(b, loc, first, size));
  return rest;
}

/// Inputs that are the same for the whole innermost loop. LLVM does not know that no output is one of them, and would compute what is
/// made of them, a root or a quotient, again for each element.
void LoopNest::loadInvariants(OpBuilder &b, Location loc) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (op.payloadUsesValueFromOperand(input) && isa<MemRefType>(input->get().getType()) &&
        !op.getMatchingIndexingMap(input).isFunctionOfDim(*order.inner))
      loaded[input] = load(b, loc, *input);
}

void LoopNest::buildAll(OpBuilder &b, Location loc) {
  buildLoops(b, loc, order.outer, [&](OpBuilder &b) {
    buildPoint(b, loc, constant(b, loc, 0), order.inner ? sizes[*order.inner] : Value());
  });
}

void LoopNest::delinearize(OpBuilder &b, Location loc, ArrayRef<unsigned> dims, Value position) {
  if (dims.empty())
    return;
  for (unsigned dim : llvm::reverse(llvm::drop_begin(dims))) {
    ivs[dim] = arith::RemUIOp::create(b, loc, position, sizes[dim]);
    position = arith::DivUIOp::create(b, loc, position, sizes[dim]);
  }
  ivs[dims.front()] = position;
}

void LoopNest::buildRows(OpBuilder &b, Location loc, Value begin, Value end) {
  auto rows = scf::ForOp::create(b, loc, begin, end, constant(b, loc, 1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rows.getBody());
  delinearize(b, loc, order.outer, rows.getInductionVar());
  buildPoint(b, loc, {}, {});
}

void LoopNest::buildRange(OpBuilder &b, Location loc, Value begin, Value end) {
  if (!order.inner)
    return buildRows(b, loc, begin, end);
  if (order.outer.empty())
    return buildPoint(b, loc, begin, end);
  Value width = sizes[*order.inner], one = constant(b, loc, 1);
  Value first = arith::DivUIOp::create(b, loc, begin, width), last = arith::CeilDivUIOp::create(b, loc, end, width);
  auto rows = scf::ForOp::create(b, loc, first, last, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rows.getBody());
  Value start = arith::MulIOp::create(b, loc, rows.getInductionVar(), width);
  Value from = arith::MaxSIOp::create(b, loc, arith::SubIOp::create(b, loc, begin, start), constant(b, loc, 0));
  Value to = arith::MinSIOp::create(b, loc, arith::SubIOp::create(b, loc, end, start), width);
  delinearize(b, loc, order.outer, rows.getInductionVar());
  buildPoint(b, loc, from, to);
}

} // namespace hone
