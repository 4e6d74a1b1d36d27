// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions that lanes can share.

#include "Combiners.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace hone {

static Operation *getCombiner(linalg::LinalgOp op, OpOperand &output, Value result) {
  BlockArgument soFar = op.getMatchingBlockArgument(&output);
  Operation *combiner = result.getDefiningOp();
  bool isExchangeable = isa<Float32Type, Float64Type>(result.getType()) || result.getType().isInteger(32);
  if (!combiner || !isExchangeable || combiner->getNumOperands() != 2 || !soFar.hasOneUse() ||
      !llvm::is_contained(combiner->getOperands(), soFar) || !arith::getNeutralElement(combiner))
    return nullptr;
  return combiner;
}

FailureOr<SmallVector<Operation *>> getCombiners(linalg::LinalgOp op) {
  SmallVector<Operation *> combiners;
  for (auto [output, result] :
       llvm::zip_equal(op.getDpsInitsMutable(), op.getBlock()->getTerminator()->getOperands())) {
    Operation *combiner = getCombiner(op, output, result);
    if (!combiner)
      return failure();
    combiners.push_back(combiner);
  }
  return combiners;
}

} // namespace hone
