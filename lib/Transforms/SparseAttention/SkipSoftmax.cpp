// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-skip-softmax: attention that may leave out keys whose logits lie far below the running maximum.

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace hone {
#define GEN_PASS_DEF_SKIPSOFTMAX
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {
namespace {

struct SkipSoftmax : impl::SkipSoftmaxBase<SkipSoftmax> {
  using SkipSoftmaxBase::SkipSoftmaxBase;

  LogicalResult initialize(MLIRContext *context) override {
    auto rounded = static_cast<float>(factor.getValue());
    if (rounded > 0 && APFloat(rounded).isFinite())
      return success();
    return emitError(UnknownLoc::get(context))
           << "expected factor to be a positive number, but got " << llvm::formatv("{0}", factor.getValue()).str();
  }

  void runOnOperation() override {
    FloatAttr skip = Builder(&getContext()).getF32FloatAttr(static_cast<float>(factor.getValue()));
    // What a query loses at most, of all its attention probability.
    std::string most = llvm::formatv("{0:F2} %", 100 * factor.getValue() / (1 + factor.getValue()));
    getOperation().walk([&](AttentionOp op) {
      op.setSkipAttr(skip);
      ++numAttentions;
      remark::passed(op.getLoc(), remark::RemarkOpts::name("SkipSoftmax").category("hone-skip-softmax"))
          << "queries skip keys below the running maximum, with at most " + most + " of their attention probability";
    });
  }
};

} // namespace
} // namespace hone
