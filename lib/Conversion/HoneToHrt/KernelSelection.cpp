// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One small function an operation: its kernel's name, operands and attributes in the order of the kernel's row.

#include "KernelSelection.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace hone {

namespace {

/// A kernel and what it is called with; an empty name says that there is none.
struct Choice {
  StringRef name;
  SmallVector<Value> inputs;
  SmallVector<int64_t> ints;
  SmallVector<double> floats;
};

} // namespace

static bool isPlainF32(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isF32() && !tensor.getEncoding();
}

static bool allPlainF32(Operation *op) {
  return llvm::all_of(op->getOperandTypes(), isPlainF32) && llvm::all_of(op->getResultTypes(), isPlainF32);
}

static Choice choose(MatmulOp op) { return {"hone.matmul.f32", {op.getA(), op.getB()}, {}, {}}; }

static Choice choose(Operation *op) {
  if (!allPlainF32(op))
    return {};
  return llvm::TypeSwitch<Operation *, Choice>(op)
      .Case<MatmulOp>([](auto typed) { return choose(typed); })
      .Default([](Operation *) { return Choice(); });
}

bool hasKernel(Operation *op) { return !choose(op).name.empty(); }

static FailureOr<Value> createDestination(OpBuilder &b, Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto reify = dyn_cast<ReifyRankedShapedTypeOpInterface>(op);
  ReifiedRankedShapedTypeDims shapes;
  if (!reify || failed(reify.reifyResultShapes(b, shapes)))
    return failure();
  Value init = tensor::EmptyOp::create(b, op->getLoc(), shapes[0], type.getElementType());
  if (init.getType() != type)
    init = tensor::CastOp::create(b, op->getLoc(), type, init);
  return init;
}

int64_t selectKernels(func::FuncOp entry) {
  int64_t count = 0;
  Value call = entry.getArgument(0);
  entry.walk([&](Operation *op) {
    Choice choice = choose(op);
    if (choice.name.empty())
      return;
    OpBuilder b(op);
    FailureOr<Value> init = createDestination(b, op);
    if (failed(init))
      return;
    auto kernel =
        hrt::KernelOp::create(b, op->getLoc(), op->getResultTypes(), call, b.getStringAttr(choice.name), choice.inputs,
                              *init, b.getDenseI64ArrayAttr(choice.ints), b.getDenseF64ArrayAttr(choice.floats));
    op->replaceAllUsesWith(kernel.getResults());
    op->erase();
    ++count;
  });
  return count;
}

} // namespace hone
