// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements that move and do not change: their gradients move back.

#include "Models.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

/// A model whose operation of class `Op` has the gradient `g` of its result.
template <typename Op, LogicalResult (*build)(LocBuilder &b, Op op, Value g, Adjoints &adjoints)>
struct Moved : DifferentiableOpInterface::ExternalModel<Moved<Op, build>, Op> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &builder, Adjoints &adjoints) const {
    return build(builder, cast<Op>(op), adjoints.get(op->getResult(0)), adjoints);
  }
};

static Sizes sizesOf(LocBuilder &b, Value tensor) { return tensor::getMixedSizes(b, b.getLoc(), tensor); }

static LogicalResult expand(LocBuilder &b, tensor::ExpandShapeOp op, Value g, Adjoints &adjoints) {
  auto type = cast<RankedTensorType>(getGradientType(op.getSrc()));
  adjoints.add(b, op.getSrc(), tensor::CollapseShapeOp::create(b, type, g, op.getReassociationIndices()));
  return success();
}

static LogicalResult collapse(LocBuilder &b, tensor::CollapseShapeOp op, Value g, Adjoints &adjoints) {
  auto type = cast<RankedTensorType>(getGradientType(op.getSrc()));
  Sizes sizes = sizesOf(b, op.getSrc());
  adjoints.add(b, op.getSrc(), tensor::ExpandShapeOp::create(b, type, g, op.getReassociationIndices(), sizes));
  return success();
}

static LogicalResult reshape(LocBuilder &b, tensor::ReshapeOp op, Value g, Adjoints &adjoints) {
  SmallVector<Value> shape;
  for (OpFoldResult size : sizesOf(b, op.getSource()))
    shape.push_back(asIndex(b, size));
  auto type = RankedTensorType::get(static_cast<int64_t>(shape.size()), b.getIndexType());
  Value sizes = tensor::FromElementsOp::create(b, type, shape);
  adjoints.add(b, op.getSource(), tensor::ReshapeOp::create(b, getGradientType(op.getSource()), g, sizes));
  return success();
}

static LogicalResult cast(LocBuilder &b, tensor::CastOp op, Value g, Adjoints &adjoints) {
  adjoints.add(b, op.getSource(), castTo(b, g, getGradientType(op.getSource())));
  return success();
}

static LogicalResult slice(LocBuilder &b, tensor::ExtractSliceOp op, Value g, Adjoints &adjoints) {
  Value zeros = buildZeros(b, op.getSource());
  adjoints.add(
      b, op.getSource(),
      tensor::InsertSliceOp::create(b, g, zeros, op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides()));
  return success();
}

static LogicalResult insertSlice(LocBuilder &b, tensor::InsertSliceOp op, Value g, Adjoints &adjoints) {
  if (adjoints.isWanted(op.getSource())) {
    auto type = llvm::cast<RankedTensorType>(getGradientType(op.getSource()));
    adjoints.add(
        b, op.getSource(),
        tensor::ExtractSliceOp::create(b, type, g, op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides()));
  }
  if (adjoints.isWanted(op.getDest()))
    adjoints.add(b, op.getDest(),
                 tensor::InsertSliceOp::create(b, buildZeros(b, op.getSource()), g, op.getMixedOffsets(),
                                               op.getMixedSizes(), op.getMixedStrides()));
  return success();
}

static LogicalResult pad(LocBuilder &b, tensor::PadOp op, Value g, Adjoints &adjoints) {
  Value padding = op.getConstantPaddingValue();
  if (!padding || adjoints.isWanted(padding))
    return op.emitError() << "cannot differentiate " << op->getName() << ": its padding is computed";
  SmallVector<OpFoldResult> strides(op.getSourceType().getRank(), b.getIndexAttr(1));
  adjoints.add(b, op.getSource(),
               tensor::ExtractSliceOp::create(b, g, op.getMixedLowPad(), sizesOf(b, op.getSource()), strides));
  return success();
}

/// One element as a number.
static LogicalResult extract(LocBuilder &b, tensor::ExtractOp op, Value g, Adjoints &adjoints) {
  Value zeros = buildZeros(b, op.getTensor());
  adjoints.add(b, op.getTensor(), tensor::InsertOp::create(b, g, zeros, op.getIndices()));
  return success();
}

/// The same elements, stored otherwise.
static LogicalResult unpack(LocBuilder &b, UnpackOp op, Value g, Adjoints &adjoints) {
  adjoints.add(b, op.getTensor(), g);
  return success();
}

void registerTensorAdjoints(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    using namespace tensor;
    ExpandShapeOp::attachInterface<Moved<ExpandShapeOp, expand>>(*context);
    CollapseShapeOp::attachInterface<Moved<CollapseShapeOp, collapse>>(*context);
    ReshapeOp::attachInterface<Moved<ReshapeOp, reshape>>(*context);
    CastOp::attachInterface<Moved<CastOp, cast>>(*context);
    ExtractSliceOp::attachInterface<Moved<ExtractSliceOp, slice>>(*context);
    InsertSliceOp::attachInterface<Moved<InsertSliceOp, insertSlice>>(*context);
    PadOp::attachInterface<Moved<PadOp, pad>>(*context);
    ExtractOp::attachInterface<Moved<ExtractOp, extract>>(*context);
  });
  registry.addExtension(
      +[](MLIRContext *context, HoneDialect *) { UnpackOp::attachInterface<Moved<UnpackOp, unpack>>(*context); });
}

} // namespace hone
