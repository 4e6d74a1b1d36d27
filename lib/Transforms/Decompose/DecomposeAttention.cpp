//===- DecomposeAttention.cpp - decomposition of attention ------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products, logits, softmax and weighted sum, each one computation; the query heads are [Hk, G], G to a key head.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace hone;

namespace {

/// Loops of the logits `[B, Hk, G, Sq, Sk]`; the last is in their place that of the result `[B, Hk, G, Sq, Dv]`.
enum : int64_t { Batch, Head, Group, Query, Key, Inner };

class AttentionBuilder {
public:
  AttentionBuilder(LocBuilder &builder, const AttentionParts &op);
  /// The result, and lse where the operation has one.
  SmallVector<Value> build();
  /// Of the products of queries and keys.
  Value buildLogits(Value products);

private:
  Value expandHeads(Value tensor, int64_t dim);
  Value collapseHeads(Value tensor);
  Operand expandBias();
  Value buildProducts();
  Value buildLogit(LocBuilder &b, ValueRange args, const AttentionPoint &point);
  AttentionPoint buildPoint(LocBuilder &b, ValueRange args);
  Value buildIsVisible(LocBuilder &b, ValueRange args, const AttentionPoint &point);
  Value buildShifts(Value logits, Value addend);
  Value buildSums(Value logits, Value shifts, Value &exps);
  Value buildProbabilities(Value logits);
  Value buildLse(Value logits);

  /// Makes `tensor` an operand of the logits' step, which finds its element as `get(args, tensor)`.
  void addOperand(Value tensor, ArrayRef<int64_t> loops) {
    position[tensor] = operands.size();
    operands.push_back({tensor, SmallVector<int64_t>(loops)});
  }
  Value get(ValueRange args, Value tensor) const { return tensor ? args[position.lookup(tensor)] : Value(); }

  LocBuilder &builder;
  AttentionParts op;
  Type f32;
  /// Operands with the query heads as two dimensions; null where the operation has none.
  Value query, alibi, sinks, bias;
  /// The own key of query 0 of a sequence without a lag.
  Value firstKey;
  Sizes logitSizes;
  AttentionSizes<Value> sizeValues;
  SmallVector<Value> tables; // of the pattern
  SmallVector<Operand> operands;
  llvm::DenseMap<Value, unsigned> position;
};

} // namespace

AttentionBuilder::AttentionBuilder(LocBuilder &builder, const AttentionParts &op)
    : builder(builder), op(op), f32(builder.getF32Type()) {
  query = expandHeads(op.query, 1);
  alibi = op.alibi ? expandHeads(op.alibi, 0) : Value();
  sinks = op.sinks ? expandHeads(op.sinks, 0) : Value();
  logitSizes = tensor::getMixedSizes(builder, builder.getLoc(), query);
  logitSizes[Key] = getSize(builder, op.key, 2);
  sizeValues = {asIndex(builder, logitSizes[Batch]), asIndex(builder, getSize(builder, op.query, 1)),
                asIndex(builder, logitSizes[Head]), asIndex(builder, logitSizes[Query]),
                asIndex(builder, logitSizes[Key])};
  firstKey = arith::SubIOp::create(builder, sizeValues.keys, sizeValues.queries);
  tables = op.pattern.buildTables(builder, builder.getLoc(), op.patternOperands, sizeValues);
}

//===- Heads ------------------------------------------------------------------------------------------------------===//

static OpFoldResult divide(LocBuilder &builder, OpFoldResult a, OpFoldResult b) {
  std::optional<int64_t> knownA = getConstantIntValue(a), knownB = getConstantIntValue(b);
  if (knownA && knownB)
    return builder.getIndexAttr(*knownA / *knownB);
  return arith::DivUIOp::create(builder, asIndex(builder, a), asIndex(builder, b)).getResult();
}

/// `tensor` of the row-major order but of shape `sizes`.
static Value reshape(LocBuilder &builder, Value tensor, RankedTensorType type, ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(asIndex(builder, size));
  return tensor::ReshapeOp::create(builder, type, tensor, tensor::FromElementsOp::create(builder, shape));
}

Value hone::expandHeads(LocBuilder &builder, Value tensor, int64_t dim, OpFoldResult heads) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), tensor);
  OpFoldResult group = divide(builder, sizes[dim], heads);
  sizes[dim] = heads;
  sizes.insert(sizes.begin() + dim + 1, group);
  Type elements = cast<RankedTensorType>(tensor.getType()).getElementType();
  auto type = RankedTensorType::get(decomposeMixedValues(sizes).first, elements);
  // What lowers memref.expand_shape knows the strides of one dynamic size of those that a dimension becomes, not of two.
  if (!getConstantIntValue(heads) && !getConstantIntValue(group))
    return reshape(builder, tensor, type, sizes);
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0, rank = sizes.size() - 1; i < rank; ++i)
    groups.push_back(i < dim    ? ReassociationIndices{i}
                     : i == dim ? ReassociationIndices{i, i + 1}
                                : ReassociationIndices{i + 1});
  return tensor::ExpandShapeOp::create(builder, type, tensor, groups, sizes);
}

Value AttentionBuilder::expandHeads(Value tensor, int64_t dim) {
  return hone::expandHeads(builder, tensor, dim, getSize(builder, op.key, 1));
}

Value AttentionBuilder::collapseHeads(Value tensor) {
  return tensor::CollapseShapeOp::create(builder, tensor, ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}, {4}});
}

/// The bias with the loop of each dimension; one of size 1 is repeated.
Operand AttentionBuilder::expandBias() {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.bias.getType()).getShape();
  auto loop = [&](int64_t dim, int64_t loop) { return shape[dim] == 1 ? Repeated : loop; };
  if (shape[1] == 1)
    return {op.bias, {loop(0, Batch), Repeated, loop(2, Query), loop(3, Key)}};
  return {expandHeads(op.bias, 1), {loop(0, Batch), Head, Group, loop(2, Query), loop(3, Key)}};
}

//===- Logits -----------------------------------------------------------------------------------------------------===//

Value AttentionBuilder::buildProducts() {
  return buildContraction(builder, logitSizes, {query, {Batch, Head, Group, Query, Inner}},
                          {op.key, {Batch, Head, Key, Inner}});
}

Value AttentionBuilder::buildLogits(Value products) {
  addOperand(products, loopRange(0, 5));
  if (alibi)
    addOperand(alibi, {Head, Group});
  if (op.bias) {
    Operand expanded = expandBias();
    bias = expanded.tensor;
    addOperand(bias, expanded.loops);
  }
  for (Value perSequence : {op.keyBegin, op.keyEnd, op.lags})
    if (perSequence)
      addOperand(perSequence, {Batch});
  if (op.keyPositions)
    addOperand(op.keyPositions, {Batch, Key});
  return buildMap(builder, logitSizes, f32, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    Value hidden = constantF32(b, -std::numeric_limits<float>::infinity());
    AttentionPoint point = buildPoint(b, args);
    Value logit = buildLogit(b, args, point), visible = buildIsVisible(b, args, point);
    return visible ? arith::SelectOp::create(b, visible, logit, hidden).getResult() : logit;
  });
}

static Value indexOf(LocBuilder &builder, int64_t loop) { return linalg::IndexOp::create(builder, loop); }

static Value asPosition(LocBuilder &b, Value integer) {
  return arith::IndexCastOp::create(b, b.getIndexType(), integer);
}

AttentionPoint AttentionBuilder::buildPoint(LocBuilder &b, ValueRange args) {
  AttentionPoint point;
  point.sizes = sizeValues;
  point.batch = indexOf(b, Batch);
  Value first = arith::MulIOp::create(b, indexOf(b, Head), asIndex(b, logitSizes[Group]));
  point.head = arith::AddIOp::create(b, first, indexOf(b, Group));
  point.query = indexOf(b, Query);
  point.key = indexOf(b, Key);
  point.ownKey = arith::AddIOp::create(b, firstKey, point.query);
  if (Value lag = get(args, op.lags))
    point.ownKey = arith::SubIOp::create(b, point.ownKey, asPosition(b, lag));
  point.queryPosition = point.ownKey;
  point.keyPosition = point.key;
  if (!op.keyPositions)
    return point;
  point.keyPosition = asPosition(b, get(args, op.keyPositions));
  Value zero = arith::ConstantIndexOp::create(b, 0), own = arith::MaxSIOp::create(b, point.ownKey, zero);
  Value given =
      asPosition(b, tensor::ExtractOp::create(b, op.keyPositions, ValueRange{point.batch, own}).getResult());
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, point.ownKey, zero);
  point.queryPosition = arith::SelectOp::create(b, exists, given, point.ownKey);
  return point;
}

/// The logit of a key that is visible.
Value AttentionBuilder::buildLogit(LocBuilder &b, ValueRange args, const AttentionPoint &point) {
  Value logit = arith::MulFOp::create(b, args[0], constantF32(b, op.scale));
  if (op.softcap) {
    Value cap = constantF32(b, *op.softcap);
    logit = arith::MulFOp::create(b, cap, math::TanhOp::create(b, arith::DivFOp::create(b, logit, cap)));
  }
  if (Value slope = get(args, alibi)) {
    Value distance = arith::SubIOp::create(b, point.keyPosition, point.queryPosition);
    logit = arith::AddFOp::create(b, logit, arith::MulFOp::create(b, slope, asF32(b, distance)));
  }
  if (Value addend = get(args, bias))
    logit = arith::AddFOp::create(b, logit, addend);
  return logit;
}

/// Whether the key is visible, or null where every key is.
Value AttentionBuilder::buildIsVisible(LocBuilder &b, ValueRange args, const AttentionPoint &point) {
  Value visible = op.pattern.buildIsVisible(b, b.getLoc(), point, tables);
  auto require = [&](arith::CmpIPredicate predicate, Value key, Value bound) {
    Value holds = arith::CmpIOp::create(b, predicate, key, bound);
    visible = visible ? arith::AndIOp::create(b, visible, holds).getResult() : holds;
  };
  if (Value begin = get(args, op.keyBegin))
    require(arith::CmpIPredicate::sge, point.key, asPosition(b, begin));
  if (Value end = get(args, op.keyEnd))
    require(arith::CmpIPredicate::slt, point.key, asPosition(b, end));
  if (Value lag = get(args, op.lags)) {
    Value count = arith::SubIOp::create(b, point.sizes.keys, asPosition(b, lag));
    require(arith::CmpIPredicate::slt, point.key, count);
  }
  if (op.keyPositions)
    require(arith::CmpIPredicate::sge, point.keyPosition, arith::ConstantIndexOp::create(b, 0));
  return visible;
}

//===- Softmax ----------------------------------------------------------------------------------------------------===//

/// What is subtracted from the logits of each row: the greatest of them and of `addend` of its head, or 0 if none is visible.
Value AttentionBuilder::buildShifts(Value logits, Value addend) {
  ArrayRef<OpFoldResult> sizes = ArrayRef(logitSizes).drop_back();
  Value maxima = buildReduce(builder, Reduction::Max, sizes, {{logits, loopRange(0, 5)}},
                             [](LocBuilder &, ValueRange args) { return args[0]; });
  SmallVector<Operand> rows{{maxima, loopRange(0, 4)}};
  if (addend)
    rows.push_back({addend, {Head, Group}});
  return buildMap(builder, sizes, f32, rows, [&](LocBuilder &b, ValueRange args) -> Value {
    Value greatest = args.size() == 2 ? arith::MaximumFOp::create(b, args[0], args[1]).getResult() : args[0];
    Value lowest = constantF32(b, -std::numeric_limits<float>::infinity());
    Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, greatest, lowest);
    return arith::SelectOp::create(b, none, constantF32(b, 0.0f), greatest);
  });
}

static Value shiftedExp(LocBuilder &b, Value logit, Value shift) {
  return math::ExpOp::create(b, arith::SubFOp::create(b, logit, shift));
}

/// The sums of the exponentials of each row, which are `exps`.
Value AttentionBuilder::buildSums(Value logits, Value shifts, Value &exps) {
  SmallVector<int64_t> all = loopRange(0, 5);
  exps = buildMap(builder, logitSizes, f32, {{logits, all}, {shifts, loopRange(0, 4)}},
                  [&](LocBuilder &b, ValueRange args) { return shiftedExp(b, args[0], args[1]); });
  return buildReduce(builder, Reduction::Sum, ArrayRef(logitSizes).drop_back(), {{exps, all}},
                     [](LocBuilder &, ValueRange args) { return args[0]; });
}

Value AttentionBuilder::buildProbabilities(Value logits) {
  SmallVector<int64_t> all = loopRange(0, 5), row = loopRange(0, 4);
  Value shifts = buildShifts(logits, sinks), exps, sums = buildSums(logits, shifts, exps);
  SmallVector<Operand> parts{{exps, all}, {sums, row}};
  if (sinks)
    parts.append({{shifts, row}, {sinks, {Head, Group}}});
  return buildMap(builder, logitSizes, f32, parts, [&](LocBuilder &b, ValueRange args) -> Value {
    Value total = args[1];
    if (sinks)
      total = arith::AddFOp::create(b, total, shiftedExp(b, args[3], args[2]));
    Value zero = constantF32(b, 0.0f);
    Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, zero);
    return arith::SelectOp::create(b, none, zero, arith::DivFOp::create(b, args[0], total));
  });
}

/// Without sinks, whose logit may be so much greater than all others that exponentials relative to it vanish.
Value AttentionBuilder::buildLse(Value logits) {
  SmallVector<int64_t> row = loopRange(0, 4);
  Value shifts = buildShifts(logits, Value()), exps, sums = buildSums(logits, shifts, exps);
  Value lse = buildMap(builder, ArrayRef(logitSizes).drop_back(), f32, {{sums, row}, {shifts, row}},
                       [](LocBuilder &b, ValueRange args) -> Value {
                         return arith::AddFOp::create(b, math::LogOp::create(b, args[0]), args[1]);
                       });
  return tensor::CollapseShapeOp::create(builder, lse, ArrayRef<ReassociationIndices>{{0}, {1, 2}, {3}});
}

SmallVector<Value> AttentionBuilder::build() {
  Value logits = buildLogits(buildProducts()), probabilities = buildProbabilities(logits);
  Sizes sizes = logitSizes;
  sizes.back() = getSize(builder, op.value, 3);
  Value sum = buildContraction(builder, sizes, {probabilities, {Batch, Head, Group, Query, Inner}},
                               {op.value, {Batch, Head, Inner, Key}});
  SmallVector<Value> results{roundTo(builder, collapseHeads(sum), op.type.getElementType())};
  if (op.hasLse)
    results.push_back(buildLse(logits));
  return results;
}

static SmallVector<Value> decomposeAttention(LocBuilder &builder, AttentionOp op) {
  AttentionParts parts = getParts(op);
  parts.sinks = op.getSinks();
  parts.hasLse = static_cast<bool>(op.getLse());
  parts.type = op.getResult().getType();
  return AttentionBuilder(builder, parts).build();
}

Value hone::buildAttentionLogits(LocBuilder &builder, const AttentionParts &parts, Value products) {
  return AttentionBuilder(builder, parts).buildLogits(products);
}

void hone::addAttentionDecomposition(RewritePatternSet &patterns) {
  addDecomposition<AttentionOp>(patterns, decomposeAttention);
}
