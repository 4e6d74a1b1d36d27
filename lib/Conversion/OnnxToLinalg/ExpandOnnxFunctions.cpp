// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass: what has no lowering of its own but is a function of other operators becomes those.

#include "Lowering.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Import/Import.h"

#include "mlir/IR/BuiltinOps.h"

namespace hone {
#define GEN_PASS_DEF_EXPANDONNXFUNCTIONS
#include "hone/Conversion/Passes.h.inc"

namespace {

struct ExpandOnnxFunctions : impl::ExpandOnnxFunctionsBase<ExpandOnnxFunctions> {
  using ExpandOnnxFunctionsBase::ExpandOnnxFunctionsBase;

  void runOnOperation() override {
    // First: what is computed from the results of an unsupported operator has open types, which functions refuse.
    if (domain.empty() && mlir::failed(lowering::checkSupported(getOperation(), hasFunction)))
      return signalPassFailure();
    llvm::SmallVector<mlir::Operation *> candidates;
    getOperation().walk([&](mlir::Operation *op) {
      if (onnxir::isOnnxOp(op) && !isPrimitive(op->getName().getStringRef()))
        candidates.push_back(op);
    });
    auto stays = [&](llvm::StringRef name) { return isPrimitive(name); };
    for (mlir::Operation *op : candidates) {
      mlir::FailureOr<bool> expanded = expandFunction(op, stays);
      if (mlir::failed(expanded))
        return signalPassFailure();
      numExpanded += *expanded;
    }
  }

  /// Whether operations of this name stay: those that have a lowering, and those outside the domain.
  bool isPrimitive(llvm::StringRef name) const {
    return lowering::getLoweringTable().contains(name) ||
           !(domain.empty() || name.starts_with(onnxir::getOperationName(domain, "")));
  }
};

} // namespace
} // namespace hone
