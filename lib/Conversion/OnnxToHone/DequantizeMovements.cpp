// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What moves codes, which are integers that stand for floats by a scale, moves the floats instead.

#include "Rounding.h"

#include "hone/Conversion/Passes.h"

namespace hone {
#define GEN_PASS_DEF_DEQUANTIZEMOVEMENTS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

/// What made the codes, with one scale for all of them; nothing where that is not known.
static std::optional<Codes> findCodes(Value value) {
  Operation *op = getDefiningOp(value, "QuantizeLinear");
  if (!op || !isPerTensor(op->getOperand(1), getOperand(op, 2)))
    return std::nullopt;
  return Codes{value, op->getOperand(1), getOperand(op, 2)};
}

/// Codes that move are those of floats that move.
static bool moveFloats(Operation *op) {
  constexpr unsigned kMovedFirst = 1;
  auto codes = findCodes(op->getOperand(0));
  if (!codes || isOp(op, "Concat") || !movesElements(op))
    return false;
  OpBuilder b(op);
  OnnxBuilder onnx(b, op->getLoc());
  Type element = getElementTypeOrSelf(codes->scale);
  SmallVector<Value> operands{dequantize(onnx, *codes)};
  llvm::append_range(operands, op->getOperands().drop_front(kMovedFirst));
  SmallVector<Type> types;
  for (Value result : op->getResults())
    types.push_back(onnxir::isAbsent(result) ? result.getType()
                                             : Type(cast<TensorType>(result.getType()).clone(element)));
  OperationState state(op->getLoc(), op->getName(), operands, types, op->getAttrs());
  Operation *moved = b.create(state);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), moved->getResults()))
    replace(from, quantize(onnx, to, {from, codes->scale, codes->zero}));
  return true;
}

/// The shape of codes is that of what they are made of.
static bool skipCodes(Operation *op) {
  auto codes = isOp(op, "Shape") ? findCodes(op->getOperand(0)) : std::nullopt;
  if (!codes)
    return false;
  op->setOperand(0, codes->codes.getDefiningOp()->getOperand(0));
  return true;
}

namespace {
struct DequantizeMovements : impl::DequantizeMovementsBase<DequantizeMovements> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (onnxir::isOnnxOp(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (skipCodes(op) || op->getNumOperands() == 0 || op->getNumRegions() != 0)
        continue;
      if (!moveFloats(op))
        continue;
      op->erase();
      ++numMoved;
    }
  }
};
} // namespace

} // namespace hone::raising
