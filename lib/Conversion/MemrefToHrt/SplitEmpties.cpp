// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common subexpressions make one tensor.empty of many, and one linalg.fill of it; each becomes a buffer of its own again, so
// that a result may stay where it is while the next is computed, and no sum begins with a copy of zeros. What need not be
// there at once shares memory later (hone-plan-memory).

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_SPLITEMPTIES
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

struct SplitEmpties : impl::SplitEmptiesBase<SplitEmpties> {
  void runOnOperation() override {
    splitAll<linalg::FillOp>([](OpOperand &use) { // reading one is no reason for another
      auto op = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
      return op && op.isDpsInit(&use);
    });
    splitAll<tensor::EmptyOp>([](OpOperand &) { return true; });
  }

private:
  /// Makes a copy of an operation for each use but one that `needsOwn`.
  template <typename Op>
  void splitAll(llvm::function_ref<bool(OpOperand &)> needsOwn) {
    SmallVector<Op> shared;
    getOperation()->walk([&](Op op) {
      if (op->getNumResults() == 1 && !op->use_empty() && !op->hasOneUse())
        shared.push_back(op);
    });
    for (Op op : shared)
      for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(op->getUses()))) {
        if (!needsOwn(use))
          continue;
        OpBuilder b(op);
        use.set(b.clone(*op)->getResult(0));
        ++numSplit;
      }
  }
};

} // namespace
} // namespace hone
