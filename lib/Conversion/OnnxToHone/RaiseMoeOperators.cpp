// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.moe from MoE and QMoE of com.microsoft. QMoE's integers and scales stay as they are, in an encoding that says so.

#include "Moe.h"

#include <cmath>

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-mlp";

namespace {

/// A layer of the experts as the operator has it; without weights where it has none. Scales and zeros are QMoE's.
struct Projection {
  Value weights, bias, scales, zeros;
  int64_t bits = 0;

  int64_t outputs() const { return getRankedType(weights).getDimSize(1); }
};

class OperatorRaiser {
public:
  OperatorRaiser(Operation *op, ExpertWeights &weights)
      : op(op), isQuantized(isOp(op, "QMoE", kMicrosoft)), experts(weights), b(op), onnx(b, op->getLoc()) {}
  bool run();

private:
  Projection getProjection(unsigned index);
  Value stack(const Projection &layer);
  std::optional<ExpertLayers> readBlock(StringRef &reason);
  bool hasKnownForm(StringRef &reason);
  void raise(const ExpertLayers &block);

  Operation *op;
  bool isQuantized;
  ExpertWeights &experts;
  OpBuilder b;
  OnnxBuilder onnx;
};

} // namespace

enum Operands { kInput, kRouter, kFirstLayer };

/// fc1, fc2 or fc3, numbered from 0.
Projection OperatorRaiser::getProjection(unsigned index) {
  constexpr unsigned quantizedOperands = 3, floatOperands = 2, zeroPoints = kFirstLayer + 3 * quantizedOperands;
  unsigned first = kFirstLayer + index * (isQuantized ? quantizedOperands : floatOperands);
  Projection layer;
  layer.weights = getOperand(op, first);
  layer.bias = getOperand(op, first + (isQuantized ? 2 : 1));
  if (isQuantized) {
    layer.scales = getOperand(op, first + 1);
    layer.zeros = getOperand(op, zeroPoints + index);
    std::string name = "fc" + std::to_string(index + 1) + "_expert_weight_bits";
    layer.bits = getInteger(op, name, getInteger(op, "expert_weight_bits", 4));
  }
  return layer;
}

/// `[E · outputs, inputs]`; null where the operator's integers have no encoding.
Value OperatorRaiser::stack(const Projection &layer) {
  if (!layer.weights || !isQuantized)
    return experts.stack(onnx, layer.weights);
  return experts.stack(onnx, layer.weights, layer.scales, layer.zeros, layer.bits, getInteger(op, "block_size", 0),
                       getRankedType(op->getOperand(kInput)).getElementType());
}

/// Whether the operator chooses and calculates as hone.moe does.
bool OperatorRaiser::hasKnownForm(StringRef &reason) {
  Value weights = op->getOperand(kFirstLayer);
  reason = "the sizes of its experts are not known";
  if (getRank(weights) != 3 || !getRankedType(weights).hasStaticShape() || getRank(op->getOperand(kRouter)) != 2 ||
      getRank(op->getOperand(kInput)) < 1)
    return false;
  reason = "it chooses experts by a sparse mixer";
  if (getInteger(op, "use_sparse_mixer", 0) != 0)
    return false;
  reason = "it does not choose from as many experts as it has";
  int64_t count = getInteger(op, "k", 1);
  if (count < 1 || count > getRankedType(weights).getDimSize(0))
    return false;
  if (!isQuantized)
    return true;
  auto type = op->getAttrOfType<StringAttr>("quant_type");
  reason = "its weights are no integers with a scale for each group";
  constexpr unsigned routerWeights = 14;
  if ((type && type != "int") || getInteger(op, "weights_prepacked", 0) == 1)
    return false;
  reason = "its routing weights are other numbers than the scores it chooses experts by";
  return !getOperand(op, routerWeights);
}

/// The constants of a fused SwiGLU; nothing where they leave silu as it is.
static std::optional<Swiglu> readSwiglu(Operation *op) {
  Swiglu swiglu{static_cast<float>(getReal(op, "activation_alpha", 1)),
                static_cast<float>(getReal(op, "activation_beta", 0)),
                static_cast<float>(getReal(op, "swiglu_limit", std::numeric_limits<float>::infinity()))};
  bool isSilu = swiglu.alpha == 1 && swiglu.offset == 0 && swiglu.limit == std::numeric_limits<float>::infinity();
  return isSilu ? std::nullopt : std::optional(swiglu);
}

/// fc1 is the gate where there is an fc3; a fused SwiGLU has both in fc1. Nothing with `reason` where the block is none that
/// hone.moe has.
std::optional<ExpertLayers> OperatorRaiser::readBlock(StringRef &reason) {
  auto name = op->getAttrOfType<StringAttr>("activation_type");
  auto activation = llvm::StringSwitch<std::optional<Activation>>(name ? name.getValue() : "relu")
                        .Case("relu", Activation::Relu)
                        .Case("gelu", Activation::GeluTanh) // as onnxruntime calculates it
                        .Case("silu", Activation::Silu)
                        .Case("swiglu", Activation::Silu)
                        .Default(std::nullopt);
  int64_t fusion = name && name == "swiglu" ? getInteger(op, "swiglu_fusion", 0) : 0;
  reason = "its activation is none that hone.moe has";
  auto swiglu = fusion != 0 ? readSwiglu(op) : std::optional<Swiglu>();
  if (!activation || (swiglu && !(std::isfinite(swiglu->alpha) && std::isfinite(swiglu->offset) && swiglu->limit > 0)))
    return std::nullopt;
  Projection first = getProjection(0), second = getProjection(1), third = getProjection(2);
  if (fusion != 0 && third.weights)
    return std::nullopt;
  bool isGated = third.weights != nullptr;
  ExpertLayers block;
  block.activation = *activation, block.swiglu = swiglu;
  if (fusion != 0)
    block.fused = fusion == 1 ? FusedRows::Alternate : FusedRows::Halves;
  block.up = stack(isGated ? third : first), block.upBias = isGated ? third.bias : first.bias;
  block.gate = isGated ? stack(first) : Value(), block.gateBias = isGated ? first.bias : Value();
  block.down = stack(second), block.downBias = second.bias;
  reason = "its integers are no parameters of 2, 4 or 8 bits with scales of floats";
  if (!block.up || !block.down || (isGated && !block.gate))
    return std::nullopt;
  reason = "the sizes of its experts do not fit each other";
  int64_t width = getRankedType(block.up).getDimSize(1), hidden = getRankedType(block.down).getDimSize(1);
  if (second.outputs() != width || first.outputs() != hidden * (block.fused ? 2 : 1) ||
      (isGated && third.outputs() != hidden))
    return std::nullopt;
  return block;
}

/// The `count` greatest of each row of `logits` `[T, E]`, and where they are.
static std::pair<Value, Value> createTopK(OnnxBuilder &onnx, Value logits, int64_t count) {
  OperationState state(onnx.loc, onnxir::getOperationName("", "TopK"));
  state.addOperands({logits, onnx.integers(count)});
  state.addAttributes({onnx.integerAttr("axis", -1), onnx.integerAttr("largest", 1), onnx.integerAttr("sorted", 1)});
  auto type = cast<RankedTensorType>(logits.getType());
  SmallVector<int64_t> shape{type.getDimSize(0), count};
  state.addTypes(
      {RankedTensorType::get(shape, type.getElementType()), RankedTensorType::get(shape, onnx.b.getI64Type())});
  Operation *topK = onnx.b.create(state);
  return {topK->getResult(0), topK->getResult(1)};
}

/// Weights are a softmax of the chosen logits, over themselves or over all of their row.
void OperatorRaiser::raise(const ExpertLayers &block) {
  Value x = op->getOperand(kInput), logits = op->getOperand(kRouter);
  int64_t width = getRankedType(block.up).getDimSize(1);
  auto [chosen, ids] = createTopK(onnx, logits, getInteger(op, "k", 1));
  auto axis = onnx.integerAttr("axis", -1);
  Value weights = getInteger(op, "normalize_routing_weights", 0) != 0
                      ? onnx.create("Softmax", chosen, chosen.getType(), axis)
                      : onnx.create("GatherElements", {onnx.create("Softmax", logits, logits.getType(), axis), ids},
                                    chosen.getType(), axis);
  Value rows = getRank(x) == 2 ? x : onnx.reshape(x, {-1, width}, {ShapedType::kDynamic, width});
  Value result = createMoe(onnx, rows, ids, weights, block);
  if (getRank(x) != 2) {
    Value shape = onnx.create("Shape", x, RankedTensorType::get({getRank(x)}, b.getI64Type()));
    result = onnx.create("Reshape", {result, shape}, cast<RankedTensorType>(x.getType()));
  }
  replace(op->getResult(0), result);
}

bool OperatorRaiser::run() {
  StringRef reason;
  std::optional<ExpertLayers> block = hasKnownForm(reason) ? readBlock(reason) : std::nullopt;
  if (block)
    raise(*block);
  else
    remarkMissed(op->getLoc(), kPass, "Moe") << reason;
  return block.has_value();
}

bool raiseMoeOperator(Operation *op, ExpertWeights &weights) { return OperatorRaiser(op, weights).run(); }

} // namespace hone::raising
