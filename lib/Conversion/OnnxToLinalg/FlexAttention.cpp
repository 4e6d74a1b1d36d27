// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FlexAttention of ai.onnx.preview: attention whose scores and probabilities pass through subgraphs, which are lowered between the steps.

#include "AttentionCore.h"
#include "Normalize.h"
#include "Subgraphs.h"

using namespace mlir;

namespace hone::lowering {

namespace {

class FlexAttention {
public:
  explicit FlexAttention(Node &node) : node(node) {}
  LogicalResult lower();

private:
  LogicalResult readPrecision();
  LogicalResult readInputs();
  LogicalResult modify(StringRef name, Value &tensor);

  Node &node;
  Type precision; // of scores and probabilities
  AttentionInputs inputs;
};

} // namespace

LogicalResult FlexAttention::readPrecision() {
  Type element = node.element(0), single = node.b.getF32Type();
  precision = element.isF64() ? element : single;
  if (!node.hasAttribute("softmax_precision"))
    return success();
  int64_t given = node.integer("softmax_precision");
  precision = onnxir::getElementType(given, node.b.getContext());
  if (!precision || !isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(precision))
    return node.fail() << "unsupported softmax_precision " << given
                       << "; supported: 1 (float), 10 (float16), 11 (double), 16 (bfloat16)";
  return success();
}

LogicalResult FlexAttention::readInputs() {
  for (unsigned i : {0U, 1U, 2U})
    if (node.rank(i) != 4)
      return node.fail() << "expected Q, K and V to have four dimensions each, but got " << node.type(0) << ", "
                         << node.type(1) << " and " << node.type(2);
  // Narrow floats are multiplied as f32 and rounded once.
  Type compute = node.element(0).isF64() || precision.isF64() ? node.b.getF64Type() : Type(node.b.getF32Type());
  inputs.query = convertFloats(node, node.in(0), compute);
  inputs.key = convertFloats(node, node.in(1), compute);
  inputs.value = convertFloats(node, node.in(2), getAccumulator(precision));
  inputs.scale = node.hasAttribute("scale") ? node.constant(node.real("scale"), compute)
                                            : getScale(node, "scale", node.size(inputs.query, 3), compute);
  return success();
}

/// `tensor` becomes what the subgraph `name` makes of it, if the node has one.
LogicalResult FlexAttention::modify(StringRef name, Value &tensor) {
  if (!onnxir::getSubgraph(node.op, name))
    return success();
  auto region = requireSubgraph(node, name, 1, 1);
  if (failed(region))
    return failure();
  Block &block = (*region)->front();
  auto declared = dyn_cast<TensorType>(block.getArgument(0).getType());
  if (block.back().getNumOperands() != 1)
    return node.fail() << "expected subgraph '" << name << "' to have 1 output, but got "
                       << block.back().getNumOperands();
  if (!declared || (declared.getElementType() != precision &&
                    declared.getElementType() != onnxir::getUnknownType(node.b.getContext())))
    return node.fail() << "expected subgraph '" << name << "' to take a tensor of " << precision << ", but got "
                       << block.getArgument(0).getType();
  SmallVector<Size> sizes = node.sizes(tensor);
  auto results = node.lowerer.inlineRegion(**region, tensor);
  if (failed(results))
    return failure();
  auto type = dyn_cast<RankedTensorType>(results->front().getType());
  if (!type || type.getRank() != 4 || type.getElementType() != precision)
    return node.fail() << "expected subgraph '" << name << "' to give a tensor of " << precision
                       << " with four dimensions, but got " << results->front().getType();
  tensor = results->front();
  return requireShape(node, tensor, sizes, ("the result of " + name).str(), "that of its input");
}

LogicalResult FlexAttention::lower() {
  if (failed(readPrecision()) || failed(readInputs()))
    return failure();
  auto scores = computeScores(node, inputs);
  if (failed(scores))
    return failure();
  Value logits = convertFloats(node, *scores, precision);
  if (failed(modify("score_mod", logits)))
    return failure();
  Value probabilities = computeSoftmax(node, logits, 3);
  if (failed(modify("prob_mod", probabilities)))
    return failure();
  auto result = multiplyByHead(node, convertFloats(node, probabilities, getAccumulator(precision)), inputs.value);
  if (failed(result))
    return failure();
  node.set(0, convertFloats(node, *result, node.element(0)));
  return success();
}

static LogicalResult lowerFlexAttention(Node &node) { return FlexAttention(node).lower(); }

void addFlexAttentionLowerings(LoweringTable &table) {
  table["onnx.ai.onnx.preview.FlexAttention"] = lowerFlexAttention;
}

} // namespace hone::lowering
