// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements that move and do not change: their gradients move back.

#include "Models.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

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

/// Where the tensor has a gradient already the part is added to its slice: in a loop nothing else is touched.
static LogicalResult slice(LocBuilder &b, tensor::ExtractSliceOp op, Value g, Adjoints &adjoints) {
  if (Value sum = adjoints.get(op.getSource()); sum && adjoints.isWanted(op.getSource())) {
    Sizes offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(), strides = op.getMixedStrides();
    Value before =
        tensor::ExtractSliceOp::create(b, llvm::cast<RankedTensorType>(g.getType()), sum, offsets, sizes, strides);
    Value after = tensor::InsertSliceOp::create(b, addInPlace(b, before, g), sum, offsets, sizes, strides);
    adjoints.replace(op.getSource(), after);
    return success();
  }
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
  if (Value sum = adjoints.get(op.getTensor()); sum && adjoints.isWanted(op.getTensor())) {
    Value both = arith::AddFOp::create(b, tensor::ExtractOp::create(b, sum, op.getIndices()), g);
    adjoints.replace(op.getTensor(), tensor::InsertOp::create(b, both, sum, op.getIndices()));
    return success();
  }
  Value zeros = buildZeros(b, op.getTensor());
  adjoints.add(b, op.getTensor(), tensor::InsertOp::create(b, g, zeros, op.getIndices()));
  return success();
}

/// A number that becomes an element.
static LogicalResult insert(LocBuilder &b, tensor::InsertOp op, Value g, Adjoints &adjoints) {
  if (adjoints.isWanted(op.getScalar()))
    adjoints.add(b, op.getScalar(), tensor::ExtractOp::create(b, g, op.getIndices()));
  if (adjoints.isWanted(op.getDest())) {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(op.getScalar().getType()));
    adjoints.add(b, op.getDest(), tensor::InsertOp::create(b, zero, g, op.getIndices()));
  }
  return success();
}

/// Numbers that are the elements of a tensor, in their order.
static LogicalResult fromElements(LocBuilder &b, tensor::FromElementsOp op, Value g, Adjoints &adjoints) {
  ArrayRef<int64_t> shape = op.getType().getShape();
  SmallVector<int64_t> strides = computeStrides(shape);
  for (auto [i, element] : llvm::enumerate(op.getElements())) {
    SmallVector<Value> place;
    for (int64_t index : delinearize(i, strides))
      place.push_back(arith::ConstantIndexOp::create(b, index));
    if (adjoints.isWanted(element))
      adjoints.add(b, element, tensor::ExtractOp::create(b, g, place));
  }
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
    InsertOp::attachInterface<Moved<InsertOp, insert>>(*context);
    FromElementsOp::attachInterface<Moved<FromElementsOp, fromElements>>(*context);
  });
  registry.addExtension(
      +[](MLIRContext *context, HoneDialect *) { UnpackOp::attachInterface<Moved<UnpackOp, unpack>>(*context); });
}

} // namespace hone
