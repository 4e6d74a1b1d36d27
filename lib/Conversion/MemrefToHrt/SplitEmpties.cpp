// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common subexpressions make one tensor.empty of many; each becomes a buffer of its own again, so that a result may stay
// where it is while the next is computed. What need not be there at once shares memory later (hone-plan-memory).

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_SPLITEMPTIES
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

struct SplitEmpties : impl::SplitEmptiesBase<SplitEmpties> {
  void runOnOperation() override {
    SmallVector<tensor::EmptyOp> shared;
    getOperation()->walk([&](tensor::EmptyOp empty) {
      if (!empty->use_empty() && !empty->hasOneUse())
        shared.push_back(empty);
    });
    for (tensor::EmptyOp empty : shared)
      for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(empty->getUses()))) {
        OpBuilder b(empty);
        use.set(b.clone(*empty)->getResult(0));
        ++numSplit;
      }
  }
};

} // namespace
} // namespace hone
