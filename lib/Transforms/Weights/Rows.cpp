// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of hone say themselves what they do to rows; what lies between them is of onnx and tensor.

#include "hone/Transforms/Rows.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

using onnxir::isNode;

bool readsSizes(Operation *op) { return isa<tensor::DimOp>(op) || isNode(op, "Shape"); }

bool passesRowsOn(Operation *op) {
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return slice.getSourceType().getRank() == slice.getType().getRank() && slice.getType().getRank() > 0 &&
           !slice.getType().isDynamicDim(slice.getType().getRank() - 1) &&
           slice.getType().getShape().back() == slice.getSourceType().getShape().back();
  if (isa<tensor::CastOp>(op) || isNode(op, "Identity"))
    return true;
  return isNode(op, "Cast") && getElementTypeOrSelf(op->getOperand(0)) == getElementTypeOrSelf(op->getResult(0));
}

void forEachReader(Value rows, bool looksThrough, llvm::function_ref<void(OpOperand &, ArrayRef<WeightUse>)> visit) {
  SmallVector<Value> pending{rows};
  while (!pending.empty())
    for (OpOperand &use : pending.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (looksThrough && passesRowsOn(user))
        pending.push_back(user->getResult(0));
      else if (!readsSizes(user))
        visit(use, listReaders(use));
    }
}

} // namespace hone
