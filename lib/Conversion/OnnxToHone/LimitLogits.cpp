// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last product of a decoder is by far its widest, and most of its rows are never looked at.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_LIMITLOGITS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-limit-logits";
/// The name of the size of the results in place of that of the tokens.
static constexpr llvm::StringLiteral kKept = "logits_to_keep";

/// Whether the value has the shape `[batch, positions, size]` with positions left open.
static bool hasPositions(Value value) {
  RankedTensorType type = getRankedType(value);
  return type && type.getRank() == 3 && type.isDynamicDim(1);
}

/// The operand that `op` maps element by element, or null.
static Value getMapped(Operation *op) {
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return cast.getSource();
  for (StringRef opType : {"Cast", "Identity", "Tanh"})
    if (isOp(op, opType))
      return op->getOperand(0);
  bool isArithmetic = isOp(op, "Mul") || isOp(op, "Div") || isOp(op, "Add");
  if (!isArithmetic)
    return {};
  if (isWeight(op->getOperand(1)))
    return op->getOperand(0);
  return isWeight(op->getOperand(0)) ? op->getOperand(1) : Value();
}

/// The product that `value` is made of position by position, or null.
static LinearOp findProduct(Value value) {
  while (value && hasPositions(value) && value.hasOneUse() && value.getDefiningOp()) {
    if (auto product = value.getDefiningOp<LinearOp>())
      return hasPositions(product.getX()) ? product : LinearOp();
    value = getMapped(value.getDefiningOp());
  }
  return {};
}

static bool areTokenPositions(Value rows, Value tokens, func::FuncOp function) {
  SymbolicAnalysis analysis(function);
  auto rowShape = analysis.getShape(rows), tokenShape = analysis.getShape(tokens);
  return rowShape && tokenShape && tokenShape->size() == 2 && (*rowShape)[1] == (*tokenShape)[1];
}

/// The last of the rows `[batch, positions, size]`: as many as `logits_to_keep` says.
static Value sliceKept(OpBuilder &b, Location loc, Value rows, Value state) {
  Value count = tensor::DimOp::create(b, loc, rows, 1);
  Value kept = LogitsToKeepOp::create(b, loc, state, count);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, rows);
  SmallVector<OpFoldResult> offsets(3, b.getIndexAttr(0)), strides(3, b.getIndexAttr(1));
  sizes[1] = kept;
  offsets[1] = Value(arith::SubIOp::create(b, loc, count, kept));
  return tensor::ExtractSliceOp::create(b, loc, getRankedType(rows), rows, offsets, sizes, strides);
}

static void renamePositions(func::FuncOp forward) {
  auto names = forward.getResultAttrOfType<ArrayAttr>(0, onnxir::kDimsAttr);
  if (!names || names.size() != 3)
    return;
  SmallVector<Attribute> changed(names.begin(), names.end());
  changed[1] = StringAttr::get(forward.getContext(), kKept);
  forward.setResultAttr(0, onnxir::kDimsAttr, ArrayAttr::get(forward.getContext(), changed));
}

static bool limitLogits(func::FuncOp forward) {
  Operation *end = forward.getBody().front().getTerminator();
  BlockArgument tokens = forward.getArgument(0), state = forward.getArguments().back();
  LinearOp product = findProduct(end->getOperand(0));
  if (!product || !areTokenPositions(product.getX(), tokens, forward)) {
    remarkMissed(forward.getLoc(), kPass, "Logits") << "the logits are not the product of each position";
    return false;
  }
  OpBuilder b(product);
  product.getXMutable().assign(sliceKept(b, product.getLoc(), product.getX(), state));
  renamePositions(forward);
  remarkRaised(product.getLoc(), kPass, "Logits") << "made for the positions that are asked for";
  return true;
}

namespace {
struct LimitLogits : impl::LimitLogitsBase<LimitLogits> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    if (!forward || forward.isExternal() || forward.getNumArguments() < 2 || forward.getNumResults() < 1 ||
        !isa<KvType>(forward.getArgumentTypes().back()) || !getRankedType(forward.getArgument(0)))
      return;
    numLimited += limitLogits(forward);
  }
};
} // namespace

} // namespace hone::raising
