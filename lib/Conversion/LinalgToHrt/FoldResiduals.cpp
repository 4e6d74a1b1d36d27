// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sum of a linear layer and what was there before it: its kernel adds it while the sums are in registers. What is left of sums, and
// normed, the kernel of the norm adds up where it has one for that.

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/kernels/descriptions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_FOLDRESIDUALS
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

/// Whether `op` is the sum of its two operands, element by element, without broadcasting.
static bool isSum(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || op.getNumParallelLoops() != op.getNumLoops() ||
      !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return false;
  Block &body = op.getRegion().front();
  auto add = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  return add && llvm::hasNItems(body, 2) &&
         ((add.getLhs() == body.getArgument(0) && add.getRhs() == body.getArgument(1)) ||
          (add.getLhs() == body.getArgument(1) && add.getRhs() == body.getArgument(0)));
}

static int64_t getColumns(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getShape().back(); }

/// A layer whose result, in another shape of the same rows, is read by nothing else.
struct Layer {
  hrt::KernelOp kernel;
  unsigned residual = 0;             // the number of this input
  SmallVector<Operation *> reshapes; // from the kernel on
};

/// The number of the input that a kernel adds to its result, if it has one that is absent.
static std::optional<unsigned> findAbsentResidual(hrt::KernelOp kernel) {
  const kernels::KernelInfo *info = kernels::findKernelInfo(kernel.getName().str());
  int64_t index = info ? kernels::indexOf(*info, "residual") : -1;
  if (index < 0 || index >= static_cast<int64_t>(kernel.getInputs().size()) ||
      cast<ShapedType>(kernel.getInputs()[index].getType()).getRank() != 0)
    return std::nullopt;
  return index;
}

/// The layer that makes `value` and can add a residual of its shape, or one without a kernel.
static Layer findLayer(Value value) {
  Layer layer;
  if (cast<RankedTensorType>(value.getType()).getRank() == 0)
    return layer;
  int64_t columns = getColumns(value);
  while (value.hasOneUse() &&
         isa_and_nonnull<tensor::CastOp, tensor::ReshapeOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
             value.getDefiningOp())) {
    layer.reshapes.insert(layer.reshapes.begin(), value.getDefiningOp());
    value = value.getDefiningOp()->getOperand(0);
  }
  auto kernel = value.getDefiningOp<hrt::KernelOp>();
  std::optional<unsigned> residual =
      kernel && value.hasOneUse() ? findAbsentResidual(kernel) : std::optional<unsigned>();
  bool areRows = layer.reshapes.empty() || (!ShapedType::isDynamic(columns) && getColumns(value) == columns);
  if (residual && areRows) {
    layer.kernel = kernel;
    layer.residual = *residual;
  }
  return layer;
}

/// `op`'s value from `layer` with `residual`.
static void fold(linalg::GenericOp op, const Layer &layer, Value residual) {
  hrt::KernelOp kernel = layer.kernel;
  kernel->moveBefore(op); // where the residual is known
  kernel.getInputsMutable()[layer.residual].set(residual);
  for (Operation *reshape : layer.reshapes)
    reshape->moveBefore(op);
  Value value = layer.reshapes.empty() ? kernel.getResult(0) : layer.reshapes.back()->getResult(0);
  if (value.getType() != op.getResult(0).getType()) {
    OpBuilder b(op);
    value = tensor::CastOp::create(b, op.getLoc(), op.getResult(0).getType(), value);
  }
  op.getResult(0).replaceAllUsesWith(value);
  op.erase();
}

/// The kernel that adds up two tensors, writes their sum and norms it as this kernel does, or null.
static const kernels::KernelInfo *findAddingNorm(hrt::KernelOp norm) {
  auto [target, name] = norm.getName().split('.');
  const kernels::KernelInfo *adding = kernels::findKernelInfo((target + ".add_" + name).str());
  return adding && kernels::indexOf(*adding, "sum") >= 0 ? adding : nullptr;
}

/// The norm of `sum` before which nothing reads it, or null.
static hrt::KernelOp findNorm(linalg::GenericOp sum) {
  auto type = cast<RankedTensorType>(sum.getResult(0).getType());
  if (type.getRank() == 0 || !isa<Float32Type, Float16Type, BFloat16Type>(type.getElementType()))
    return {};
  hrt::KernelOp norm;
  for (Operation *user : sum->getUsers()) {
    auto kernel = dyn_cast<hrt::KernelOp>(user);
    bool isNorm = kernel && kernel->getBlock() == sum->getBlock() && findAddingNorm(kernel) &&
                  kernel.getInputs()[0] == sum.getResult(0);
    if (isNorm && (!norm || kernel->isBeforeInBlock(norm)))
      norm = kernel;
  }
  bool isFirst = norm && llvm::all_of(sum->getUsers(), [&](Operation *user) {
                   Operation *at = sum->getBlock()->findAncestorOpInBlock(*user);
                   return at && !at->isBeforeInBlock(norm);
                 });
  return isFirst ? norm : hrt::KernelOp();
}

/// Makes one kernel of `sum` and its norm.
static void fold(linalg::GenericOp sum, hrt::KernelOp norm) {
  const kernels::KernelInfo &adding = *findAddingNorm(norm), &own = *kernels::findKernelInfo(norm.getName().str());
  SmallVector<Value> tensors = llvm::to_vector(norm.getInputs());
  llvm::append_range(tensors, norm.getOutputs());
  SmallVector<Value> inputs, outputs;
  for (const kernels::Operand &operand : kernels::operandsOf(adding)) {
    Value value = operand.name == "x"     ? sum.getInputs()[0]
                  : operand.name == "r"   ? sum.getInputs()[1]
                  : operand.name == "sum" ? sum.getOutputs()[0]
                                          : tensors[kernels::indexOf(own, operand.name)];
    (operand.isOutput ? outputs : inputs).push_back(value);
  }
  OpBuilder b(norm);
  SmallVector<Type> types = {sum.getResult(0).getType(), norm.getResult(0).getType()};
  auto both = hrt::KernelOp::create(b, norm.getLoc(), types, norm.getCall(), b.getStringAttr(adding.name), inputs,
                                    outputs, norm.getIntsAttr(), norm.getFloatsAttr());
  norm.getResult(0).replaceAllUsesWith(both.getResult(1));
  norm.erase();
  sum.getResult(0).replaceAllUsesWith(both.getResult(0));
  sum.erase();
}

namespace {

struct FoldResiduals : impl::FoldResidualsBase<FoldResiduals> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> sums;
    getOperation().walk([&](linalg::GenericOp op) {
      if (isSum(op))
        sums.push_back(op);
    });
    for (linalg::GenericOp op : sums)
      if (foldIntoLayer(op))
        ++numFolded;
      else if (hrt::KernelOp norm = findNorm(op))
        fold(op, norm), ++numNormed;
  }

private:
  static bool foldIntoLayer(linalg::GenericOp op) {
    for (unsigned operand : {0u, 1u}) {
      Layer layer = findLayer(op.getInputs()[operand]);
      if (!layer.kernel || layer.kernel->getBlock() != op->getBlock())
        continue;
      fold(op, layer, op.getInputs()[1 - operand]);
      return true;
    }
    return false;
  }
};

} // namespace
} // namespace hone
