// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Converters to 16 bits that keep the types of inputs and outputs put a cast between each cache and what extends it, and one
// after. Extended first and cast then, it is the same numbers. An operator that extends caches inside computes in their type.

#include "StateSignature.h"

using namespace mlir;

namespace hone::raising {

/// `Cast(Concat(Cast(past), fresh))` with the type of `past`: what extends it, or null.
static Operation *matchExtension(BlockArgument past) {
  for (Operation *cast : past.getUsers()) {
    if (!isOp(cast, "Cast") || !isFloat(cast->getResult(0)))
      continue;
    for (OpOperand &use : cast->getResult(0).getUses()) {
      Operation *concat = use.getOwner();
      bool isFirst = isOp(concat, "Concat") && concat->getNumOperands() == 2 && use.getOperandNumber() == 0;
      if (isFirst && llvm::any_of(concat->getResult(0).getUsers(), [&](Operation *user) {
            return isOp(user, "Cast") && getElementTypeOrSelf(user->getResult(0)) == getElementTypeOrSelf(past);
          }))
        return concat;
    }
  }
  return nullptr;
}

/// Puts `wide`, after a cast, in place of `narrow`, and itself in place of casts to its own type.
static void replaceCast(OnnxBuilder &onnx, Value narrow, Value wide) {
  Type element = getElementTypeOrSelf(wide);
  for (Operation *user : llvm::make_early_inc_range(narrow.getUsers()))
    if (isOp(user, "Cast") && getElementTypeOrSelf(user->getResult(0)) == element) {
      user->getResult(0).replaceAllUsesWith(wide);
      user->erase();
    }
  if (!narrow.use_empty())
    narrow.replaceAllUsesWith(onnx.cast(wide, getElementTypeOrSelf(narrow)));
}

/// Sizes are the same before a cast, which then may have no more use.
static void dropCast(Value cast, Value past) {
  cast.replaceUsesWithIf(past, [](OpOperand &use) { return isOp(use.getOwner(), "Shape"); });
  if (cast.use_empty())
    cast.getDefiningOp()->erase();
}

static void extendBeforeCast(BlockArgument past, Operation *concat) {
  OpBuilder b(concat);
  OnnxBuilder onnx(b, concat->getLoc());
  Type element = getElementTypeOrSelf(past);
  Value narrow = concat->getResult(0), fresh = onnx.cast(concat->getOperand(1), element);
  Value grown = onnx.create("Concat", {past, fresh}, cast<TensorType>(narrow.getType()).clone(element),
                            onnx.integerAttr("axis", getInteger(concat, "axis", 0)));
  replaceCast(onnx, narrow, grown);
  Value cast = concat->getOperand(0);
  concat->erase();
  dropCast(cast, past);
}

/// The f32 argument that `value` is a cast of, or null.
static BlockArgument getWideArgument(Value value) {
  Operation *cast = value ? getDefiningOp(value, "Cast") : nullptr;
  auto argument = cast ? dyn_cast<BlockArgument>(cast->getOperand(0)) : BlockArgument();
  return argument && isFloat(value) && getElementTypeOrSelf(argument).isF32() ? argument : BlockArgument();
}

/// Where the caches of `op`, a GroupQueryAttention, are casts of f32: it computes in f32, as all attention does here.
static void widenGroupQuery(Operation *op) {
  constexpr unsigned kPastKey = 3, kPastValue = 4;
  Value narrow[] = {getOperand(op, kPastKey), getOperand(op, kPastValue)};
  BlockArgument pasts[] = {getWideArgument(narrow[0]), getWideArgument(narrow[1])};
  if (!pasts[0] || !pasts[1])
    return;
  OpBuilder b(op);
  OnnxBuilder onnx(b, op->getLoc());
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    operands.push_back(i == kPastKey || i == kPastValue ? Value(pasts[i - kPastKey])
                       : isFloat(operand)               ? onnx.cast(operand, b.getF32Type())
                                                        : operand);
  SmallVector<Type> types;
  for (Value result : op->getResults())
    types.push_back(isFloat(result) ? Type(cast<TensorType>(result.getType()).clone(b.getF32Type()))
                                    : result.getType());
  OperationState state(op->getLoc(), op->getName(), operands, types, op->getAttrs());
  Operation *wide = b.create(state);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), wide->getResults()))
    if (isFloat(from))
      replaceCast(onnx, from, to);
    else
      from.replaceAllUsesWith(to);
  op->erase();
  for (auto [cast, past] : llvm::zip_equal(narrow, pasts))
    dropCast(cast, past);
}

void moveCacheCasts(func::FuncOp function) {
  for (BlockArgument past : function.getArguments())
    if (Operation *concat = isFloat(past) ? matchExtension(past) : nullptr)
      extendBeforeCast(past, concat);
  SmallVector<Operation *> groups;
  function.walk([&](Operation *op) {
    if (isOp(op, "GroupQueryAttention", kMicrosoft))
      groups.push_back(op);
  });
  for (Operation *op : groups)
    widenGroupQuery(op);
}

} // namespace hone::raising
