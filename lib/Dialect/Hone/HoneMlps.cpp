//===- HoneMlps.cpp - verifiers and shapes of gated_mlp, mlp and moe --------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "RowShapes.h"
#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;
using namespace hone;

/// x has rows as long as those of the weight that reads it.
static LogicalResult verifyRow(Operation *op, Value x, Value weight) {
  if (failed(verifyRank(op, "x", x, 1)))
    return failure();
  return verifySize(op, "the last dimension of x", shapeOf(x).back(), shapeOf(weight).back());
}

/// The first operand of `operands`, or null.
static OpOperand *getOptional(MutableOperandRange operands) { return operands.empty() ? nullptr : &operands[0]; }

/// The rules of a block, whose hidden channels the operands have that are not null.
static GroupRules getHiddenRules(ArrayRef<GroupDim> hidden) {
  GroupRules rules;
  rules.blockerOfOperands = "a feed-forward block keeps its groups separate";
  rules.blockerOfResults = "a feed-forward block makes its groups";
  auto &linked = rules.linked.emplace_back();
  llvm::copy_if(hidden, std::back_inserter(linked), [](const GroupDim &dim) { return dim.operand; });
  return rules;
}

//===- gated_mlp --------------------------------------------------------------------------------------------------===//

FailureOr<ResultDims> GatedMlpOp::getResultDims(TypeRange operands) { return getRowDims(operands, 0, /*last=*/{3, 0}); }

SmallVector<WeightUse> GatedMlpOp::listWeights() {
  OpOperand *x = &getXMutable();
  return {WeightUse{&getGateMutable(), WeightInputs::Rows, x, WeightOutputs::Activated, getGateBiasMutable()},
          WeightUse{&getUpMutable(), WeightInputs::Rows, x, WeightOutputs::Hidden, getUpBiasMutable()},
          WeightUse{&getDownMutable(), WeightInputs::Hidden, nullptr, WeightOutputs::Result, getDownBiasMutable()}};
}

GroupRules GatedMlpOp::getGroupRules() {
  return getHiddenRules({{&getUpMutable(), 0},
                         {&getDownMutable(), 1},
                         {getOptional(getUpBiasMutable()), 0},
                         {&getGateMutable(), 0},
                         {getOptional(getGateBiasMutable()), 0}});
}

std::optional<InnerGroups> GatedMlpOp::getInnerGroups() { return InnerGroups{GroupKind::Channels, &getUpMutable(), 0}; }

LogicalResult GatedMlpOp::verify() {
  ArrayRef<int64_t> gate = shapeOf(getGate()), down = shapeOf(getDown());
  if (failed(verifyRow(*this, getX(), getGate())) ||                               // gated_mlp C1
      failed(verifyShape(*this, "up", shapeOf(getUp()), gate)) ||                  // gated_mlp C2
      failed(verifySize(*this, "the last dimension of down", down[1], gate[0])) || // gated_mlp C3
      failed(verifyCount(*this, "gate_bias", getGateBias(), gate[0])) ||           // gated_mlp C4
      failed(verifyCount(*this, "up_bias", getUpBias(), gate[0])) ||
      failed(verifyCount(*this, "down_bias", getDownBias(), down[0])) ||
      failed(verifyElements(*this, "gate", getGate(), getX())) || // gated_mlp C5
      failed(verifyElements(*this, "up", getUp(), getX())))
    return failure();
  return verifyElements(*this, "down", getDown(), getX());
}

//===- mlp --------------------------------------------------------------------------------------------------------===//

FailureOr<ResultDims> MlpOp::getResultDims(TypeRange operands) { return getRowDims(operands, 0, /*last=*/{2, 0}); }

SmallVector<WeightUse> MlpOp::listWeights() {
  return {WeightUse{&getUpMutable(), WeightInputs::Rows, &getXMutable(), WeightOutputs::Activated, getUpBiasMutable()},
          WeightUse{&getDownMutable(), WeightInputs::Hidden, nullptr, WeightOutputs::Result, getDownBiasMutable()}};
}

GroupRules MlpOp::getGroupRules() {
  return getHiddenRules({{&getUpMutable(), 0}, {&getDownMutable(), 1}, {getOptional(getUpBiasMutable()), 0}});
}

std::optional<InnerGroups> MlpOp::getInnerGroups() { return InnerGroups{GroupKind::Channels, &getUpMutable(), 0}; }

LogicalResult MlpOp::verify() {
  ArrayRef<int64_t> up = shapeOf(getUp()), down = shapeOf(getDown());
  if (failed(verifyRow(*this, getX(), getUp())) ||                               // mlp C1
      failed(verifySize(*this, "the last dimension of down", down[1], up[0])) || // mlp C2
      failed(verifyCount(*this, "up_bias", getUpBias(), up[0])) ||               // mlp C3
      failed(verifyCount(*this, "down_bias", getDownBias(), down[0])) ||
      failed(verifyElements(*this, "up", getUp(), getX()))) // mlp C4
    return failure();
  return verifyElements(*this, "down", getDown(), getX());
}

//===- moe --------------------------------------------------------------------------------------------------------===//

FailureOr<ResultDims> MoeOp::getResultDims(TypeRange operands) {
  ResultDims dims = getSameDims(operands, 0);
  return dims.empty() ? FailureOr<ResultDims>() : dims;
}

void MoeOp::build(OpBuilder &b, OperationState &state, Value x, const ExpertRouting &routing,
                  const ExpertLayers &layers) {
  state.addTypes(x.getType());
  state.addOperands({x, routing.ids, routing.weights, layers.up, layers.down});
  SmallVector<int32_t> segments(5, 1);
  for (Value optional : {layers.gate, layers.upBias, layers.downBias, layers.gateBias}) {
    segments.push_back(optional ? 1 : 0);
    if (optional)
      state.addOperands(optional);
  }
  Properties &properties = state.getOrAddProperties<Properties>();
  llvm::copy(segments, properties.operandSegmentSizes.begin());
  properties.activation = ActivationAttr::get(b.getContext(), layers.activation);
  if (layers.fused)
    properties.fused = FusedRowsAttr::get(b.getContext(), *layers.fused);
  if (!layers.swiglu)
    return;
  properties.alpha = b.getF32FloatAttr(layers.swiglu->alpha);
  properties.offset = b.getF32FloatAttr(layers.swiglu->offset);
  properties.limit = b.getF32FloatAttr(layers.swiglu->limit);
}

std::optional<Swiglu> MoeOp::getSwiglu() {
  if (!getAlpha())
    return std::nullopt;
  return Swiglu{getAlpha()->convertToFloat(), getOffset()->convertToFloat(), getLimit()->convertToFloat()};
}

/// Kernels read gate and up in the same form. Where up is fused with the gate, each hidden channel has two of its outputs.
SmallVector<WeightUse> MoeOp::listWeights() {
  OpOperand *x = &getXMutable(), *up = &getUpMutable(), *gate = getOptional(getGateMutable());
  int64_t experts = getExpertCount(), choices = getExpertIds().getType().getShape().back();
  WeightOutputs upOutputs = gate && !getSwiglu() ? WeightOutputs::Hidden : WeightOutputs::Activated;
  SmallVector<WeightUse> weights;
  if (gate)
    weights.push_back(
        {gate, WeightInputs::Rows, x, WeightOutputs::Activated, getGateBiasMutable(), experts, choices, up});
  weights.push_back({up, WeightInputs::Rows, x, upOutputs, getUpBiasMutable(), experts, choices, gate});
  weights.push_back({&getDownMutable(), WeightInputs::Hidden, nullptr, WeightOutputs::Result, getDownBiasMutable(),
                     experts, choices});
  return weights;
}

static LogicalResult verifyRouting(MoeOp op) {
  ArrayRef<int64_t> ids = shapeOf(op.getExpertIds()), leading = shapeOf(op.getX()).drop_back();
  if (ids.size() != leading.size() + 1 || !mayEqual(ids.drop_back(), leading)) // moe C2
    return op.emitOpError() << "expected the leading dimensions of expert_ids to be " << toText(leading)
                            << ", but got the shape " << toText(ids);
  return verifyShape(op, "expert_weights", shapeOf(op.getExpertWeights()), ids);
}

static LogicalResult verifyExperts(MoeOp op) {
  RankedTensorType up = op.getUp().getType(), down = op.getDown().getType();
  if (!up.hasStaticShape() || !down.hasStaticShape()) // moe C3
    return op.emitOpError() << "expected up and down to have static shapes, but got " << up << " and " << down;
  if (op.getGate() && op.getGate().getType().getShape() != up.getShape()) // moe C3
    return verifyShape(op, "gate", shapeOf(op.getGate()), up.getShape());
  int64_t rows = down.getDimSize(0), width = up.getDimSize(1);
  if (width == 0 || rows == 0 || rows % width != 0) // moe C4
    return op.emitOpError() << "expected the rows of down to be a multiple of " << width
                            << " and at least that, but got " << rows;
  return verifySize(op, "the rows of up", up.getDimSize(0),
                    op.getExpertCount() * op.getHiddenSize() * (op.getFused() ? 2 : 1)); // moe C4
}

static LogicalResult verifyExpertBiases(MoeOp op) {
  if (op.getGateBias() && !op.getGate()) // moe C5
    return op.emitOpError() << "expected gate_bias to be absent without gate";
  std::tuple<StringRef, Value, Value> biases[] = {{"gate_bias", op.getGateBias(), op.getUp()},
                                                  {"up_bias", op.getUpBias(), op.getUp()},
                                                  {"down_bias", op.getDownBias(), op.getDown()}};
  int64_t experts = op.getExpertCount();
  for (auto [name, bias, weight] : biases)
    if (bias && failed(verifyShape(op, name, shapeOf(bias), {experts, shapeOf(weight)[0] / experts}))) // moe C5
      return failure();
  return success();
}

static LogicalResult verifySwiglu(MoeOp op) {
  if (!op.getAlpha() && !op.getOffset() && !op.getLimit())
    return success();
  bool isGated = op.getActivation() == Activation::Silu && (op.getGate() || op.getFused());
  if (!op.getAlpha() || !op.getOffset() || !op.getLimit() || !isGated) // moe C8
    return op.emitOpError() << "expected alpha, offset and limit to be given together, with silu and a gate";
  if (!op.getAlpha()->isFinite() || !op.getOffset()->isFinite()) // moe C8
    return op.emitOpError() << "expected alpha and offset to be finite, but got " << op.getAlphaAttr() << " and "
                            << op.getOffsetAttr();
  if (op.getLimit()->isNaN() || !(op.getLimit()->convertToFloat() > 0)) // moe C8
    return op.emitOpError() << "expected limit to be positive, but got " << op.getLimitAttr();
  return success();
}

LogicalResult MoeOp::verify() {
  if (failed(verifyRow(*this, getX(), getUp())) || failed(verifyRouting(*this)) || // moe C1, C2
      failed(verifyExperts(*this)) || failed(verifyExpertBiases(*this)) ||
      failed(verifyElements(*this, "up", getUp(), getX())) || // moe C6
      failed(verifyElements(*this, "gate", getGate(), getX())) ||
      failed(verifyElements(*this, "down", getDown(), getX())))
    return failure();
  if (getFused() && getGate()) // moe C7
    return emitOpError() << "expected fused to be absent with gate";
  return verifySwiglu(*this);
}
