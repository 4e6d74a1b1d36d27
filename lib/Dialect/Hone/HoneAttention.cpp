//===- HoneAttention.cpp - verifiers and shapes of attention and rope -------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "RowShapes.h"
#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace hone;

//===- attention --------------------------------------------------------------------------------------------------===//

FailureOr<ResultDims> AttentionOp::getResultDims(TypeRange operands) {
  return getRowDims(operands, 0, /*last=*/{2, 3});
}

/// An operand has something for each query head, for each KV head, or one thing for all of them.
GroupRules AttentionOp::getGroupRules() {
  GroupRules rules;
  int64_t heads = getQuery().getType().getDimSize(1), shared = getKey().getType().getDimSize(1);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(shared)) {
    rules.blocker = "attention has a number of heads that is not known";
    return rules;
  }
  for (Value operand : getPatternOperands())
    if (auto lists = cast<RankedTensorType>(operand.getType()); lists.getRank() == 4 && lists.getDimSize(1) != 1) {
      rules.blocker = "attention lists blocks for each of its heads";
      return rules;
    }
  rules.blockerOfOperands = rules.blockerOfResults = "attention mixes its groups";
  rules.coverAll = true;
  auto &linked = rules.linked.emplace_back();
  for (OpOperand &use : (*this)->getOpOperands()) {
    bool isVector = use.get() == getAlibi() || use.get() == getSinks();
    auto type = cast<RankedTensorType>(use.get().getType());
    if (!isVector && type.getRank() != 4)
      continue;
    int64_t dim = isVector ? 0 : 1, size = type.getDimSize(dim);
    if (size != 1) // else what is there is repeated for all heads
      linked.push_back({&use, dim, size == shared ? 1 : heads / shared});
  }
  linked.push_back({nullptr, 1, heads / shared});
  if (getLse())
    linked.push_back({nullptr, 1, heads / shared, /*result=*/1});
  return rules;
}

std::optional<InnerGroups> AttentionOp::getInnerGroups() { return InnerGroups{GroupKind::Heads, &getKeyMutable(), 1}; }

FailureOr<ResultDims> AttentionOp::getOtherDims(TypeRange operands, unsigned) {
  ResultDims dims = getSameDims(operands, 0);
  if (dims.empty())
    return failure();
  dims.pop_back();
  return dims;
}

AttentionSizes<int64_t> AttentionOp::getSizes() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), key = shapeOf(getKey());
  return {query[0], query[1], key[1], query[2], key[2]};
}

void AttentionOp::build(OpBuilder &builder, OperationState &state, const AttentionParts &parts) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.pattern = parts.pattern;
  properties.scale = builder.getF32FloatAttr(parts.scale);
  properties.softcap = parts.softcap ? builder.getF32FloatAttr(*parts.softcap) : FloatAttr();
  properties.bf16_products = parts.hasBf16Products ? builder.getUnitAttr() : UnitAttr();
  state.addOperands({parts.query, parts.key, parts.value});
  SmallVector<int32_t> segments{1, 1, 1};
  for (Value optional :
       {parts.bias, parts.alibi, parts.sinks, parts.keyBegin, parts.keyEnd, parts.lags, parts.keyPositions}) {
    segments.push_back(optional ? 1 : 0);
    if (optional)
      state.addOperands(optional);
  }
  state.addOperands(parts.patternOperands);
  segments.push_back(static_cast<int32_t>(parts.patternOperands.size()));
  llvm::copy(segments, properties.operandSegmentSizes.begin());
  auto query = cast<RankedTensorType>(parts.query.getType());
  SmallVector<int64_t> shape(query.getShape());
  shape.back() = shapeOf(parts.value)[3];
  state.addTypes(parts.type ? parts.type : RankedTensorType::get(shape, query.getElementType()));
  if (parts.hasLse)
    state.addTypes(RankedTensorType::get(query.getShape().drop_back(), builder.getF32Type()));
}

template <typename Op> static LogicalResult verifyOperandShapes(Op op) {
  ArrayRef<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey()), value = shapeOf(op.getValue());
  bool mayBeNarrower = elementsOf(op.getQuery()).isF32();
  if ((!mayBeNarrower && failed(verifyElements(op, "key", op.getKey(), op.getQuery()))) || // attention C1
      failed(verifyElements(op, "value", op.getValue(), op.getKey())))
    return failure();
  if (!op.getKey().getType().getEncoding() != !op.getValue().getType().getEncoding()) // attention C10
    return op.emitOpError() << "expected key and value to be both plain or both in a layout of the state, but got "
                            << op.getKey().getType() << " and " << op.getValue().getType();
  if (failed(verifySize(op, "the batch of key", key[0], query[0])) || // attention C2
      failed(verifySize(op, "the batch of value", value[0], query[0])) ||
      failed(verifySize(op, "the heads of value", value[1], key[1])) ||
      failed(verifySize(op, "the positions of value", value[2], key[2])))
    return failure();
  if (failed(verifySize(op, "the last dimension of key", key[3], query[3]))) // attention C3
    return failure();
  bool known = !ShapedType::isDynamic(query[1]) && !ShapedType::isDynamic(key[1]);
  if (known && (key[1] == 0 || query[1] % key[1] != 0)) // attention C4
    return op.emitOpError() << "expected the heads of query to be a multiple of the " << key[1]
                            << " heads of key, but got " << query[1];
  return success();
}

template <typename Op> static LogicalResult verifyBias(Op op) {
  if (!op.getBias())
    return success();
  ArrayRef<int64_t> query = shapeOf(op.getQuery()), bias = shapeOf(op.getBias());
  SmallVector<int64_t> logits{query[0], query[1], query[2], shapeOf(op.getKey())[2]};
  for (auto [size, expected] : llvm::zip_equal(bias, logits))
    if (size != 1 && !mayEqual(size, expected)) // attention C5
      return op.emitOpError() << "expected each dimension of bias to be 1 or that of the logits " << toText(logits)
                              << ", but got " << toText(bias);
  return success();
}

template <typename Op> static LogicalResult verifyVectors(Op op) {
  int64_t batch = shapeOf(op.getQuery())[0], heads = shapeOf(op.getQuery())[1];
  if (failed(verifyCount(op, "alibi", op.getAlibi(), heads)) || // attention C6
      failed(verifyCount(op, "key_begin", op.getKeyBegin(), batch)) || // attention C7
      failed(verifyCount(op, "key_end", op.getKeyEnd(), batch)) || failed(verifyCount(op, "lags", op.getLags(), batch)))
    return failure();
  if (op.getKeyPositions())
    return verifyShape(op, "key_positions", shapeOf(op.getKeyPositions()), {batch, shapeOf(op.getKey())[2]});
  return success();
}

template <typename Op> static LogicalResult verifyPattern(Op op) { // attention C8
  AttentionPatternInterface pattern = op.getPattern();
  size_t given = op.getPatternOperands().size();
  if (given != pattern.getOperandCount())
    return op.emitOpError() << "expected the pattern " << pattern << " to have " << pattern.getOperandCount()
                            << " operands, but got " << given;
  return pattern.verifyOperands([&] { return op.emitOpError(); }, op.getSizes(), op.getPatternOperands().getTypes());
}

template <typename Op> static LogicalResult verifyNumbers(Op op) { // attention C9
  if (!op.getScale().isFinite())
    return op.emitOpError() << "expected scale to be finite, but got " << op.getScale().convertToFloat();
  std::optional<APFloat> softcap = op.getSoftcap();
  if (softcap && (!softcap->isFinite() || softcap->isNegative() || softcap->isZero()))
    return op.emitOpError() << "expected softcap to be finite and positive, but got " << softcap->convertToFloat();
  return success();
}

/// What attention and its gradient have in common.
template <typename Op> static LogicalResult verifyAttention(Op op) {
  return failure(failed(verifyOperandShapes(op)) || failed(verifyBias(op)) || failed(verifyVectors(op)) ||
                 failed(verifyPattern(op)) || failed(verifyNumbers(op)));
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this)) ||
      failed(verifyCount(*this, "sinks", getSinks(), shapeOf(getQuery())[1]))) // attention C6
    return failure();
  if (getLse() &&
      failed(verifyShape(*this, "lse", shapeOf(getLse()), shapeOf(getQuery()).drop_back()))) // attention C11
    return failure();
  std::optional<APFloat> skip = getSkip();
  if (skip && (!skip->isFinite() || skip->isNegative() || skip->isZero())) // attention C12
    return emitOpError() << "expected skip to be finite and positive, but got " << skip->convertToFloat();
  return success();
}

//===- attention_gradient -----------------------------------------------------------------------------------------===//

AttentionSizes<int64_t> AttentionGradientOp::getSizes() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), key = shapeOf(getKey());
  return {query[0], query[1], key[1], query[2], key[2]};
}

LogicalResult AttentionGradientOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  for (Value like : {getQuery(), getKey(), getValue()})
    shapes.push_back(tensor::getMixedSizes(builder, getLoc(), like));
  return success();
}

LogicalResult AttentionGradientOp::verify() {
  if (failed(verifyAttention(*this))) // attention_gradient C1
    return failure();
  ArrayRef<int64_t> query = shapeOf(getQuery());
  SmallVector<int64_t> result(query);
  result.back() = shapeOf(getValue())[3];
  if (failed(verifyShape(*this, "gradient", shapeOf(getGradient()), result)) ||               // attention_gradient C2
      failed(verifyShape(*this, "lse", shapeOf(getLse()), query.drop_back())) ||              // attention_gradient C3
      failed(verifyShape(*this, "subtracted", shapeOf(getSubtracted()), query.drop_back())))
    return failure();
  if (failed(verifyShape(*this, "query_gradient", shapeOf(getQueryGradient()), query)) || // attention_gradient C4
      failed(verifyShape(*this, "key_gradient", shapeOf(getKeyGradient()), shapeOf(getKey()))))
    return failure();
  return verifyShape(*this, "value_gradient", shapeOf(getValueGradient()), shapeOf(getValue()));
}

//===- rope -------------------------------------------------------------------------------------------------------===//

FailureOr<ResultDims> RopeOp::getResultDims(TypeRange operands) { return getSameDims(operands, 0); }

GroupRules RopeOp::getGroupRules() { return hone::detail::getRulesOfRows(*this); }

LogicalResult RopeOp::verify() {
  ArrayRef<int64_t> x = shapeOf(getX()), table = shapeOf(getCos());
  if (failed(verifyShape(*this, "sin", shapeOf(getSin()), table)) || // rope C1
      failed(verifyElements(*this, "sin", getSin(), getCos())))
    return failure();
  if (table[0] != 1 && failed(verifySize(*this, "the first dimension of the tables", table[0], x[0]))) // rope C2
    return failure();
  if (failed(verifySize(*this, "the second dimension of the tables", table[1], x[2])))
    return failure();
  bool known = !ShapedType::isDynamic(table[2]) && !ShapedType::isDynamic(x[3]);
  if (known && table[2] > x[3] / 2) // rope C3
    return emitOpError() << "expected the last dimension of the tables to be at most " << x[3] / 2 << ", but got "
                         << table[2];
  return success();
}
