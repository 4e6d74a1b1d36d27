// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention sinks: a logit of each head beside those of the keys, whose probability is cut off again.

#include "Attention.h"

using namespace mlir;

namespace hone::raising {

using analysis::ExpressionKind;

/// What softmax gives the same for, without the greatest of each row that was taken off.
static Value skipShift(Value logits, SymbolicAnalysis &analysis) {
  Operation *shift = getDefiningOp(skipCasts(logits), "Sub");
  Operation *greatest = shift ? getDefiningOp(skipCasts(shift->getOperand(1)), "ReduceMax") : nullptr;
  if (!greatest || skipCasts(greatest->getOperand(0)) != skipCasts(shift->getOperand(0)) ||
      getInteger(greatest, "keepdims", 1) == 0)
    return logits;
  auto axes = getIntegers(greatest, "axes");
  if (!axes && getOperand(greatest, 1))
    axes = analysis.getConstants(greatest->getOperand(1));
  bool isLast = axes && axes->size() == 1 && (axes->front() == -1 || axes->front() == getRank(logits) - 1);
  return isLast ? shift->getOperand(0) : logits;
}

/// The tensor of one number for each of `heads`, of which `column` `[B, heads, Sq, 1]` has that of its head; null if there is none.
static Value findPerHead(Value column, int64_t heads, SymbolicAnalysis &analysis) {
  auto shape = analysis.getShape(column);
  if (!shape || shape->size() != 4 || !(*shape)[1].isConstant(heads))
    return {};
  SmallVector<Polynomial> at = analysis.getIndices(*shape);
  const Expression *load = analysis.getElement(column, at);
  auto sizes = load->kind == ExpressionKind::Load ? analysis.getShape(load->source) : std::nullopt;
  if (!sizes || sizes->size() != load->indices.size())
    return {};
  int64_t perHead = 0;
  for (auto [size, index] : llvm::zip_equal(*sizes, load->indices)) {
    bool isHead = size.isConstant(heads) && index == at[1] && !(heads == 1 && perHead == 1);
    if (!isHead && !size.isConstant(1))
      return {};
    perHead += isHead;
  }
  return perHead == 1 ? load->source : Value();
}

std::optional<SinkLogits> matchSinks(Value input, SymbolicAnalysis &analysis) {
  input = skipShift(input, analysis);
  Operation *join = getDefiningOp(skipCasts(input), "Concat");
  int64_t rank = getRank(input), axis = join ? getInteger(join, "axis", 0) : 0;
  if (!join || rank != 4 || join->getNumOperands() != 2 || (axis != -1 && axis != rank - 1) ||
      getLastSize(join->getOperand(1)) != 1)
    return std::nullopt;
  auto shape = analysis.getShape(join->getOperand(1));
  auto heads = shape && shape->size() == 4 ? (*shape)[1].getConstant() : std::nullopt;
  Value sinks = heads ? findPerHead(join->getOperand(1), *heads, analysis) : Value();
  return sinks ? std::optional(SinkLogits{join->getOperand(0), sinks}) : std::nullopt;
}

bool cutsSinksOff(Operation *op, const LogitSpace &space, SymbolicAnalysis &analysis) {
  if (!isOp(op, "Slice"))
    return false;
  auto shape = analysis.getShape(op->getResult(0));
  if (!shape || *shape != Shape(space.shape()))
    return false;
  // It keeps as many as there are keys, from the first on.
  auto first = analysis.getConstants(op->getOperand(1));
  auto steps = getOperand(op, 4) ? analysis.getConstants(op->getOperand(4)) : std::nullopt;
  auto isAll = [](const std::optional<SmallVector<int64_t>> &values, int64_t wanted) {
    return values && llvm::all_of(*values, [&](int64_t value) { return value == wanted; });
  };
  return isAll(first, 0) && (!getOperand(op, 4) || isAll(steps, 1));
}

Value buildSinks(Value perHead, int64_t heads, OpBuilder &b, Location loc) {
  OnnxBuilder onnx(b, loc);
  return onnx.cast(onnx.reshape(perHead, {heads}, {heads}), b.getF32Type());
}

} // namespace hone::raising
