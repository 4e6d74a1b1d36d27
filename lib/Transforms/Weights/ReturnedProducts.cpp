// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows results through casts to a return.

#include "hone/Transforms/ReturnedProducts.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

static bool isReturned(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    bool isCast = isa<tensor::CastOp>(user) || (onnxir::isOnnxOp(user) && onnxir::getOpType(user) == "Cast");
    return isa<func::ReturnOp>(user) || (isCast && isReturned(user));
  });
}

bool isReturnedProduct(ArrayRef<GetParamOp> reads) {
  return llvm::any_of(reads, [](GetParamOp read) {
    return llvm::any_of(read->getUses(), [](OpOperand &use) { return !isLookedUp(use) && isReturned(use.getOwner()); });
  });
}

} // namespace hone
