//===- Decompose.cpp - the pass hone-decompose ------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the patterns and counts what they replaced; the patterns are in the files beside this one.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace hone {

#define GEN_PASS_DEF_DECOMPOSE
#include "hone/Transforms/Passes.h.inc"

void populateDecompositions(RewritePatternSet &patterns) {
  addAttentionDecomposition(patterns);
  addAttentionGradientDecomposition(patterns);
  addConvolutionDecompositions(patterns);
  addLinearAttentionDecomposition(patterns);
  addLossDecomposition(patterns);
  addMlpDecompositions(patterns);
  addNormDecompositions(patterns);
  addParamDecompositions(patterns);
  addProductDecompositions(patterns);
  addRopeDecomposition(patterns);
  addSelectionDecompositions(patterns);
}

namespace {

/// Counts and remarks the hone operations that are replaced.
struct Recorder : RewriterBase::Listener {
  void notifyOperationReplaced(Operation *op, ValueRange) override {
    ++count;
    remark::passed(op->getLoc(), remark::RemarkOpts::name("Decomposed").category("hone-decompose"))
        << (op->getName().getStringRef() + " runs as generated code").str();
  }
  uint64_t count = 0;
};

} // namespace

uint64_t decompose(Operation *root, const FrozenRewritePatternSet &patterns) {
  Recorder recorder;
  walkAndApplyPatterns(root, patterns, &recorder);
  return recorder.count;
}

namespace {
struct DecomposePass : impl::DecomposeBase<DecomposePass> {
  using DecomposeBase::DecomposeBase;

  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet patterns(context);
    populateDecompositions(patterns);
    FailureOr<std::vector<std::string>> labels = getLabels(patterns);
    if (failed(labels))
      return failure();
    frozen = FrozenRewritePatternSet(std::move(patterns), {}, *labels);
    return success();
  }

  void runOnOperation() override { numDecomposed += decompose(getOperation(), frozen); }

private:
  /// The labels of the operations that the option names; fails at a name that has no decomposition.
  FailureOr<std::vector<std::string>> getLabels(RewritePatternSet &patterns) {
    SmallVector<StringRef> known;
    for (const std::unique_ptr<RewritePattern> &pattern : patterns.getNativePatterns())
      known.push_back(pattern->getRootKind()->stripDialect());
    llvm::sort(known);
    std::vector<std::string> labels;
    for (const std::string &name : ops) {
      if (!llvm::is_contained(known, name))
        return emitError(UnknownLoc::get(patterns.getContext()))
               << "unsupported operation '" << name << "' to decompose; supported: " << llvm::join(known, ", ");
      labels.push_back("hone." + name);
    }
    return labels;
  }

  FrozenRewritePatternSet frozen;
};

} // namespace
} // namespace hone
