// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Converters to 16 bits that keep the types of inputs and outputs put a cast between each cache and what extends it, and one
// behind. Extended first and cast then, it is the same numbers.

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

void moveCacheCasts(func::FuncOp function) {
  for (BlockArgument past : function.getArguments()) {
    Operation *concat = isFloat(past) ? matchExtension(past) : nullptr;
    if (!concat)
      continue;
    OpBuilder b(concat);
    OnnxBuilder onnx(b, concat->getLoc());
    Type element = getElementTypeOrSelf(past);
    Value narrow = concat->getResult(0), fresh = onnx.cast(concat->getOperand(1), element);
    Value grown = onnx.create("Concat", {past, fresh}, cast<TensorType>(narrow.getType()).clone(element),
                              onnx.integerAttr("axis", getInteger(concat, "axis", 0)));
    for (Operation *user : llvm::make_early_inc_range(narrow.getUsers()))
      if (isOp(user, "Cast") && getElementTypeOrSelf(user->getResult(0)) == element) {
        user->getResult(0).replaceAllUsesWith(grown);
        user->erase();
      }
    narrow.replaceAllUsesWith(onnx.cast(grown, getElementTypeOrSelf(narrow)));
    Value cast = concat->getOperand(0);
    concat->erase();
    // Sizes are the same before a cast.
    cast.replaceUsesWithIf(past, [](OpOperand &use) { return isOp(use.getOwner(), "Shape"); });
    if (cast.use_empty())
      cast.getDefiningOp()->erase();
  }
}

} // namespace hone::raising
