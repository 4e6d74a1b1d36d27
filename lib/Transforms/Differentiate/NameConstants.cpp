// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-name-constants: before anything folds constants, or finds that two are equal.

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace hone {
#define GEN_PASS_DEF_NAMECONSTANTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// The floats of the initializer that `op` is, or null.
static ElementsAttr getFloats(Operation *op) {
  if (op->getName().getStringRef() != onnxir::getOperationName("", "Constant") ||
      !onnxir::getDescription(op->getLoc(), onnxir::kTensorText))
    return {};
  auto value = op->getAttrOfType<ElementsAttr>("value");
  bool areFloats = value && isa<FloatType>(value.getElementType()) && value.getNumElements() > 1;
  return areFloats ? value : ElementsAttr();
}

/// The name that the file has for it.
static StringAttr getInitializerName(Location loc) {
  StringAttr name;
  loc->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part))
      name = named.getName();
    return name ? WalkResult::interrupt() : WalkResult::advance();
  });
  return name;
}

namespace {
struct NameConstants : impl::NameConstantsBase<NameConstants> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    OpBuilder top = OpBuilder::atBlockBegin(getOperation().getBody());
    SmallVector<Operation *> constants;
    getOperation().walk([&](Operation *op) {
      if (getFloats(op))
        constants.push_back(op);
    });
    for (Operation *op : constants) {
      ElementsAttr value = getFloats(op);
      auto type = cast<RankedTensorType>(value.getType());
      auto param = ParamOp::create(top, op->getLoc(), getInitializerName(op->getLoc()), type, value);
      symbols.insert(param); // another name where that one is taken
      OpBuilder b(op);
      op->replaceAllUsesWith(ValueRange(GetParamOp::create(b, op->getLoc(), type, param.getSymName())));
      op->erase();
    }
    numNamed += constants.size();
  }
};
} // namespace

} // namespace hone
