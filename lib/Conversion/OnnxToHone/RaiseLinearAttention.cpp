// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone.linear_attention from LinearAttention, of opset 27 and of com.microsoft alike: (query, key, value, past state, decay, beta), heads
// in the last dimension.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"

#include <cmath>

namespace hone {
#define GEN_PASS_DEF_RAISELINEARATTENTION
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-linear-attention";

namespace {

enum Operands { kQuery, kKey, kValue, kState, kDecay, kBeta };

class LinearAttentionRaiser {
public:
  LinearAttentionRaiser(Operation *op, SymbolicAnalysis &analysis)
      : op(op), analysis(analysis), b(op), onnx(b, op->getLoc()), queryHeads(getInteger(op, "q_num_heads", 0)),
        heads(getInteger(op, "kv_num_heads", 0)) {}

  LogicalResult run();

private:
  LogicalResult refuse(StringRef reason);
  LogicalResult checkRule();
  LogicalResult checkShapes();
  LogicalResult checkRates();
  bool hasRows(unsigned index, int64_t width);
  Value splitHeads(unsigned index, int64_t count);
  void raise();

  Operation *op;
  SymbolicAnalysis &analysis;
  OpBuilder b;
  OnnxBuilder onnx;
  int64_t queryHeads, heads, keySize = 0, valueSize = 0;
  Shape tokens; // the first two sizes of the query
};

} // namespace

LogicalResult LinearAttentionRaiser::refuse(StringRef reason) {
  remarkMissed(op->getLoc(), kPass, "LinearAttention") << reason;
  return failure();
}

/// What is wrong with them is said where the operator is lowered.
LogicalResult LinearAttentionRaiser::checkRule() {
  auto attribute = op->getAttrOfType<StringAttr>("update_rule");
  StringRef rule = attribute ? attribute.getValue() : "gated_delta";
  if (!llvm::is_contained({"linear", "gated", "delta", "gated_delta"}, rule) ||
      bool(getOperand(op, kDecay)) != rule.starts_with("gated") ||
      bool(getOperand(op, kBeta)) != rule.ends_with("delta"))
    return refuse("its inputs are not those of its update rule");
  if (getInteger(op, "state_window", 0) != 0)
    return refuse("it gives states of other tokens than the last");
  if (queryHeads <= 0 || heads <= 0 || queryHeads % heads != 0)
    return refuse("its numbers of heads do not divide");
  return success();
}

/// Whether an input is `[B, T, width]`, of the query's B and T for certain.
bool LinearAttentionRaiser::hasRows(unsigned index, int64_t width) {
  auto shape = analysis.getShape(op->getOperand(index));
  return shape && shape->size() == 3 && (*shape)[0] == tokens[0] && (*shape)[1] == tokens[1] &&
         getLastSize(op->getOperand(index)) == width;
}

LogicalResult LinearAttentionRaiser::checkShapes() {
  Value query = op->getOperand(kQuery), value = op->getOperand(kValue);
  if (!isFloat(query))
    return refuse("its elements are not f32, f16 or bf16");
  auto shape = analysis.getShape(query);
  if (!shape || shape->size() != 3 || getRank(query) != 3 || getRank(value) != 3)
    return refuse("its inputs do not have three dimensions");
  int64_t width = getLastSize(query), values = getLastSize(value);
  if (ShapedType::isDynamic(width) || ShapedType::isDynamic(values) || width % queryHeads != 0 || values % heads != 0)
    return refuse("the sizes of its heads are not known");
  keySize = width / queryHeads;
  valueSize = values / heads;
  tokens.assign(shape->begin(), shape->begin() + 2);
  if (!hasRows(kKey, heads * keySize) || !hasRows(kValue, values))
    return refuse("its keys or values may have other sizes than its queries");
  Value state = getOperand(op, kState);
  auto of = state ? analysis.getShape(state) : std::nullopt;
  bool fits = !state || (of && of->size() == 4 && isFloat(state) && (*of)[0] == tokens[0] &&
                         (*of)[1].isConstant(heads) && (*of)[2].isConstant(keySize) && (*of)[3].isConstant(valueSize));
  return fits ? success() : refuse("its state may have other sizes");
}

LogicalResult LinearAttentionRaiser::checkRates() {
  Value decay = getOperand(op, kDecay), beta = getOperand(op, kBeta);
  if (decay && !hasRows(kDecay, heads) && !hasRows(kDecay, heads * keySize))
    return refuse("its decay is neither one for a head nor one for each element of keys");
  if (beta && !hasRows(kBeta, heads) && !hasRows(kBeta, 1))
    return refuse("its beta is neither one for a token nor one for each head");
  return success();
}

/// `[B, T, count * size]` as `[B, T, count, size]`.
Value LinearAttentionRaiser::splitHeads(unsigned index, int64_t count) {
  Value packed = getOperand(op, index);
  if (!packed)
    return {};
  ArrayRef<int64_t> shape = getRankedType(packed).getShape();
  int64_t size = shape[2] / count;
  return onnx.reshape(packed, {0, 0, count, size}, {shape[0], shape[1], count, size});
}

void LinearAttentionRaiser::raise() {
  Value state = getOperand(op, kState);
  if (state)
    state = onnx.cast(state, b.getF32Type());
  double scale = getReal(op, "scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(keySize));
  auto raised = LinearAttentionOp::create(b, op->getLoc(), splitHeads(kQuery, queryHeads), splitHeads(kKey, heads),
                                          splitHeads(kValue, heads), splitHeads(kDecay, heads), getOperand(op, kBeta),
                                          state, b.getF32FloatAttr(static_cast<float>(scale)));
  ArrayRef<int64_t> shape = raised.getResult().getType().getShape();
  int64_t width = queryHeads * valueSize;
  replace(op->getResult(0), onnx.reshape(raised.getResult(), {0, 0, width}, {shape[0], shape[1], width}));
  if (Value present = getResult(op, 1))
    replace(present, onnx.cast(raised.getNext(), getRankedType(present).getElementType()));
  remarkRaised(op->getLoc(), kPass, "LinearAttention")
      << "raised with " << std::to_string(queryHeads) << " query heads, " << std::to_string(heads) << " key heads";
  op->erase();
}

LogicalResult LinearAttentionRaiser::run() {
  if (failed(checkRule()) || failed(checkShapes()) || failed(checkRates()))
    return failure();
  raise();
  return success();
}

namespace {
struct RaiseLinearAttention : impl::RaiseLinearAttentionBase<RaiseLinearAttention> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SymbolicAnalysis analysis(function);
      SmallVector<Operation *> operators;
      function.walk([&](Operation *op) {
        if (isOp(op, "LinearAttention") || isOp(op, "LinearAttention", kMicrosoft))
          operators.push_back(op);
      });
      for (Operation *op : operators) {
        bool isRaised = succeeded(LinearAttentionRaiser(op, analysis).run());
        numLinearAttentions += isRaised;
        if (isRaised)
          analysis.invalidate();
      }
    }
  }
};
} // namespace

} // namespace hone::raising
