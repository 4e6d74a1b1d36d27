// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sums of gradients.

#include "Models.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace hone {

bool hasGradient(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

void Adjoints::wantResults(Block &block, Operation *end) {
  for (Operation &op : block) {
    if (&op == end)
      return;
    bool dependsOnWanted = llvm::any_of(op.getOperands(), [&](Value operand) { return isWanted(operand); });
    if (!dependsOnWanted && op.getNumRegions() != 0)
      visitUsedValuesDefinedAbove(op.getRegions(), [&](OpOperand *use) { dependsOnWanted |= isWanted(use->get()); });
    for (Value result : op.getResults())
      if (dependsOnWanted && hasGradient(result.getType()))
        want(result);
  }
}

/// The sum of two tensors of one shape.
static Value addTensors(LocBuilder &builder, Value a, Value b) {
  auto type = cast<RankedTensorType>(a.getType());
  Value init =
      tensor::EmptyOp::create(builder, tensor::getMixedSizes(builder, builder.getLoc(), a), type.getElementType());
  SmallVector<AffineMap> maps(3, builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto sum = linalg::GenericOp::create(builder, init.getType(), ValueRange{a, b}, init, maps, iterators,
                                       [](OpBuilder &nested, Location loc, ValueRange args) {
                                         Value both = arith::AddFOp::create(nested, loc, args[0], args[1]);
                                         linalg::YieldOp::create(nested, loc, both);
                                       });
  return castTo(builder, sum.getResult(0), type);
}

Value castTo(LocBuilder &builder, Value tensor, Type type) {
  return tensor.getType() == type ? tensor : tensor::CastOp::create(builder, type, tensor).getResult();
}

Type getGradientType(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? RankedTensorType::get(tensor.getShape(), tensor.getElementType()) : value.getType();
}

void Adjoints::add(LocBuilder &builder, Value value, Value part) {
  if (!isWanted(value))
    return;
  part = castTo(builder, part, getGradientType(value));
  Value &gradient = gradients[value];
  if (!gradient)
    gradient = part;
  else if (isa<FloatType>(part.getType()))
    gradient = arith::AddFOp::create(builder, gradient, part);
  else
    gradient = addTensors(builder, gradient, part);
}

Value buildZeros(LocBuilder &builder, Value like) {
  auto type = cast<RankedTensorType>(like.getType());
  Value empty =
      tensor::EmptyOp::create(builder, tensor::getMixedSizes(builder, builder.getLoc(), like), type.getElementType());
  Value zero = arith::ConstantOp::create(builder, builder.getZeroAttr(type.getElementType()));
  return linalg::FillOp::create(builder, zero, empty).getResult(0);
}

Adjoints Adjoints::withoutGradients() const {
  Adjoints same;
  same.wanted = wanted;
  return same;
}

Value buildZeroGradient(LocBuilder &builder, Value like) {
  if (isa<RankedTensorType>(like.getType()))
    return castTo(builder, buildZeros(builder, like), getGradientType(like));
  return arith::ConstantOp::create(builder, builder.getZeroAttr(like.getType()));
}

FailureOr<int64_t> buildAdjoints(LocBuilder &builder, ArrayRef<Operation *> ops, Adjoints &adjoints) {
  int64_t count = 0;
  for (Operation *op : llvm::reverse(ops)) {
    if (isa<GetParamOp>(op) || llvm::none_of(op->getResults(), [&](Value value) { return adjoints.get(value); }))
      continue;
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitError() << "cannot differentiate " << op->getName() << ": it has no adjoint";
    builder.setLoc(op->getLoc());
    if (failed(differentiable.buildAdjoint(builder, adjoints)))
      return failure();
    ++count;
  }
  return count;
}

void registerAdjoints(DialectRegistry &registry) {
  registerAttentionAdjoints(registry);
  registerControlAdjoints(registry);
  registerDecomposedAdjoints(registry);
  registerDistillationAdjoint(registry);
  registerLinalgAdjoints(registry);
  registerNormAdjoints(registry);
  registerProductAdjoints(registry);
  registerScalarAdjoints(registry);
  registerTensorAdjoints(registry);
}

} // namespace hone
