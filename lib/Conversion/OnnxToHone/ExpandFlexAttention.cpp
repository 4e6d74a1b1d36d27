// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FlexAttention as the operations that attention is recognised in.

#include "StateSignature.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include <cmath>
#include <deque>

namespace hone {
#define GEN_PASS_DEF_EXPANDFLEXATTENTION
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-expand-flex-attention";

namespace {

/// The operations of one node, which are before it until it is known that they are the same.
class Expansion {
public:
  explicit Expansion(Operation *op) : op(op), b(op), onnx(b, op->getLoc()) {}

  /// Whether types and sizes are such that there is something to build; `reason` says why not.
  bool canBuild(StringRef &reason);
  void build();
  /// Whether each subgraph gives what it got, in shape and type.
  bool keepsShapes(SymbolicAnalysis &analysis) const;
  void replaceNode();

  Operation *op;

private:
  RankedTensorType typeOf(ArrayRef<int64_t> sizes) { return RankedTensorType::get(sizes, b.getF32Type()); }
  Value getHeads(unsigned index);
  Value inlineSubgraph(StringRef name, Value input);

  OpBuilder b;
  OnnxBuilder onnx;
  int64_t heads = 0, keyHeads = 0;
  Value result;
  SmallVector<std::pair<Value, Value>> modified; // input and output of a subgraph
};

} // namespace

bool Expansion::canBuild(StringRef &reason) {
  for (Value operand : op->getOperands())
    if (getRank(operand) != 4 || !isFloat(operand))
      return reason = "its inputs are not narrow floats of four dimensions", false;
  if (getInteger(op, "softmax_precision", 1) != 1)
    return reason = "its softmax is not computed in f32", false;
  auto query = getRankedType(op->getOperand(0)), key = getRankedType(op->getOperand(1)),
       value = getRankedType(op->getOperand(2));
  heads = query.getDimSize(1);
  keyHeads = key.getDimSize(1);
  if (heads <= 0 || keyHeads <= 0 || heads % keyHeads != 0 || value.getDimSize(1) != keyHeads ||
      query.getDimSize(3) <= 0 || key.getDimSize(3) != query.getDimSize(3) || value.getDimSize(3) <= 0)
    return reason = "the numbers or sizes of its heads are not known", false;
  auto takesSingle = [&](Block &block) {
    auto type = block.getNumArguments() == 1 ? dyn_cast<TensorType>(block.getArgument(0).getType()) : TensorType();
    return type && type.getElementType().isF32() && block.back().getNumOperands() == 1;
  };
  for (Region &region : op->getRegions())
    if (region.empty() || region.front().empty() || !takesSingle(region.front()))
      return reason = "a subgraph is not a function of one tensor of f32", false;
  return true;
}

/// Operand `index` in f32, each of its heads as often as queries read it.
Value Expansion::getHeads(unsigned index) {
  Value rows = onnx.cast(op->getOperand(index), b.getF32Type());
  if (index == 0 || heads == keyHeads)
    return rows;
  auto type = getRankedType(rows);
  int64_t length = type.getDimSize(2), size = type.getDimSize(3), group = heads / keyHeads;
  Value each = onnx.unsqueeze(rows, 2);
  Value shared = onnx.create("Expand", {each, onnx.integers({1, 1, group, 1, 1})},
                             typeOf({type.getDimSize(0), keyHeads, group, length, size}));
  return onnx.reshape(shared, {0, heads, -1, size}, {type.getDimSize(0), heads, length, size});
}

Value Expansion::inlineSubgraph(StringRef name, Value input) {
  Region *region = onnxir::getSubgraph(op, name);
  if (!region)
    return input;
  IRMapping mapping;
  mapping.map(region->front().getArgument(0), input);
  for (Operation &inner : region->front().without_terminator())
    b.clone(inner, mapping);
  Value output = mapping.lookupOrDefault(region->front().back().getOperand(0));
  modified.emplace_back(input, output);
  return output;
}

void Expansion::build() {
  Value query = getHeads(0), key = getHeads(1), value = getHeads(2);
  auto queryType = getRankedType(query), keyType = getRankedType(key);
  int64_t size = queryType.getDimSize(3);
  auto logits =
      typeOf({queryType.getDimSize(0), queryType.getDimSize(1), queryType.getDimSize(2), keyType.getDimSize(2)});
  double scale = getReal(op, "scale", 1 / std::sqrt(static_cast<double>(size)));
  Value scores = onnx.create("MatMul", {query, onnx.transpose(key, {0, 1, 3, 2})}, logits);
  scores = onnx.create("Mul", {scores, onnx.real(static_cast<float>(scale))}, logits);
  Value probabilities =
      onnx.create("Softmax", inlineSubgraph("score_mod", scores), logits, onnx.integerAttr("axis", -1));
  SmallVector<int64_t> sizes(queryType.getShape());
  sizes[3] = getLastSize(value);
  Value product = onnx.create("MatMul", {inlineSubgraph("prob_mod", probabilities), value}, typeOf(sizes));
  result = onnx.cast(product, getRankedType(op->getOperand(0)).getElementType());
}

bool Expansion::keepsShapes(SymbolicAnalysis &analysis) const {
  return llvm::all_of(modified, [&](const std::pair<Value, Value> &pair) {
    auto from = analysis.getShape(pair.first), to = analysis.getShape(pair.second);
    auto type = getRankedType(pair.second);
    return from && to && *from == *to && type && type.getElementType().isF32();
  });
}

void Expansion::replaceNode() {
  replace(op->getResult(0), result);
  op->erase();
}

namespace {
struct ExpandFlexAttention : impl::ExpandFlexAttentionBase<ExpandFlexAttention> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        expandIn(function);
  }

  void expandIn(func::FuncOp function) {
    std::deque<Expansion> expansions; // which do not move
    for (Operation &op : function.getBody().front()) {
      if (!isOp(&op, "FlexAttention", "ai.onnx.preview"))
        continue;
      StringRef reason;
      if (expansions.emplace_back(&op).canBuild(reason))
        continue;
      expansions.pop_back();
      remarkMissed(op.getLoc(), kPass, "FlexAttention") << reason;
    }
    if (expansions.empty())
      return;
    for (Expansion &expansion : expansions)
      expansion.build();
    inferShapes(function);
    SymbolicAnalysis analysis(function);
    for (Expansion &expansion : expansions) {
      if (expansion.keepsShapes(analysis)) {
        expansion.replaceNode();
        ++numExpanded;
        continue;
      }
      remarkMissed(expansion.op->getLoc(), kPass, "FlexAttention")
          << "it is not known that its subgraphs keep the shapes of their inputs";
    }
    eraseDead(function); // what was built and does not replace its node
  }
};
} // namespace

} // namespace hone::raising
