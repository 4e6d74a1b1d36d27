//===- HoneSelection.cpp - verifiers and shapes of selection ----------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace hone;

static LogicalResult verifyBlockSize(Operation *op, int64_t size) {
  if (size > 0)
    return success();
  return op->emitOpError() << "expected size to be positive, but got " << size;
}

static LogicalResult verifyKnown(Operation *op, StringRef what, int64_t size) {
  if (!ShapedType::isDynamic(size))
    return success();
  return op->emitOpError() << "expected " << what << " to be known";
}

/// Bounds of blocks, for each of `lists` lists of the `batch` sequences.
static LogicalResult verifyInterval(Operation *op, StringRef name, Value bounds, int64_t batch, int64_t lists) {
  ArrayRef<int64_t> shape = shapeOf(bounds);
  if (shape[0] != 1 && failed(verifySize(op, ("the first dimension of " + name).str(), shape[0], batch)))
    return failure();
  return verifySize(op, ("the second dimension of " + name).str(), shape[1], lists);
}

static LogicalResult verifyScale(Operation *op, const APFloat &scale) {
  if (scale.isFinite())
    return success();
  return op->emitOpError() << "expected scale to be finite, but got " << scale.convertToFloat();
}

/// Whether query heads share those of `name`.
static LogicalResult verifyHeads(Operation *op, StringRef name, int64_t query, int64_t shared) {
  bool areKnown = !ShapedType::isDynamic(query) && !ShapedType::isDynamic(shared);
  if (!areKnown || (shared != 0 && query % shared == 0))
    return success();
  return op->emitOpError() << "expected the heads of query to be a multiple of the " << shared << " heads of " << name
                           << ", but got " << query;
}

//===- pool_keys --------------------------------------------------------------------------------------------------===//

LogicalResult PoolKeysOp::verify() {
  ArrayRef<int64_t> keys = shapeOf(getKeys());
  if (failed(verifyBlockSize(*this, getSize())) || // pool_keys C1
      failed(verifyKnown(*this, "the last dimension of keys", keys[3])) ||
      failed(verifyShape(*this, "the result", shapeOf(getResult()), // pool_keys C2
                         {keys[0], keys[1], ShapedType::kDynamic, getWidth(keys[3], getSize(), getBounds())})))
    return failure();
  return verifyCount(*this, "key_begin", getKeyBegin(), keys[0]); // pool_keys C3
}

LogicalResult PoolKeysOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(tensor::getMixedSizes(builder, getLoc(), getKeys()));
  shapes.back()[2] = getFresh();
  for (auto [dim, size] : llvm::enumerate(shapeOf(getResult())))
    if (!ShapedType::isDynamic(size))
      shapes.back()[dim] = builder.getIndexAttr(size);
  return success();
}

//===- select_blocks ----------------------------------------------------------------------------------------------===//

LogicalResult SelectBlocksOp::verify() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), pooled = shapeOf(getPooled()), result = shapeOf(getResult());
  if (failed(verifyBlockSize(*this, getSize())) || failed(verifyScale(*this, getScale()))) // select_blocks C1
    return failure();
  if (failed(verifySize(*this, "the batch of pooled", pooled[0], query[0])) || // select_blocks C2
      failed(verifyHeads(*this, "pooled", query[1], pooled[1])))
    return failure();
  if (failed(verifyKnown(*this, "the last dimension of query", query[3])) || // select_blocks C3
      failed(verifySize(*this, "the last dimension of pooled", pooled[3],
                        PoolKeysOp::getWidth(query[3], getSize(), getBounds()))))
    return failure();
  if (failed(verifyInterval(*this, "begin", getBegin(), query[0], query[2])) ||
      failed(verifyInterval(*this, "end", getEnd(), query[0], query[2]))) // select_blocks C4
    return failure();
  if (failed(verifyKnown(*this, "the last dimension of the result", result[3]))) // select_blocks C5
    return failure();
  return verifyShape(*this, "the result", result, {query[0], pooled[1], query[2], result[3]});
}

LogicalResult SelectBlocksOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  auto &sizes = shapes.emplace_back();
  std::pair<Value, int64_t> from[] = {{getQuery(), 0}, {getPooled(), 1}, {getQuery(), 2}};
  for (auto [dim, size] : llvm::enumerate(shapeOf(getResult())))
    if (ShapedType::isDynamic(size))
      sizes.push_back(tensor::getMixedSize(builder, getLoc(), from[dim].first, from[dim].second));
    else
      sizes.push_back(builder.getIndexAttr(size));
  return success();
}

//===- select_antidiagonals ---------------------------------------------------------------------------------------===//

static int64_t divideUp(int64_t size, int64_t by) {
  return ShapedType::isDynamic(size) ? size : llvm::divideCeilSigned(size, by);
}

/// Whether an operation that lists blocks of keys for blocks of queries has what it needs: query, keys, begin and end, key_begin, its
/// result.
template <typename Op> static LogicalResult verifyLists(Op op) {
  ArrayRef<int64_t> query = shapeOf(op.getQuery()), keys = shapeOf(op.getKeys());
  if (failed(verifySize(op, "the batch of keys", keys[0], query[0])) || // C2
      failed(verifySize(op, "the last dimension of keys", keys[3], query[3])) ||
      failed(verifyHeads(op, "the keys", query[1], keys[1])))
    return failure();
  int64_t lists = divideUp(query[2], op.getQueries());
  if (failed(verifyInterval(op, "begin", op.getBegin(), query[0], lists)) || // C3
      failed(verifyInterval(op, "end", op.getEnd(), query[0], lists)) ||
      failed(verifyShape(op, "the result", shapeOf(op.getResult()), // C4
                         {query[0], keys[1], lists, divideUp(keys[2], op.getSize())})))
    return failure();
  return verifyCount(op, "key_begin", op.getKeyBegin(), query[0]); // C5
}

template <typename Op> static LogicalResult reifyLists(Op op, OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  auto &sizes = shapes.emplace_back();
  std::tuple<Value, int64_t, int64_t> from[] = {{op.getQuery(), 0, 1},
                                                {op.getKeys(), 1, 1},
                                                {op.getQuery(), 2, op.getQueries()},
                                                {op.getKeys(), 2, op.getSize()}};
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  for (auto [dim, known] : llvm::enumerate(shapeOf(op.getResult()))) {
    auto [value, number, by] = from[dim];
    OpFoldResult size = tensor::getMixedSize(b, op.getLoc(), value, number);
    if (!ShapedType::isDynamic(known))
      sizes.push_back(b.getIndexAttr(known));
    else if (by == 1)
      sizes.push_back(size);
    else
      sizes.push_back(arith::CeilDivSIOp::create(b, getValueOrCreateConstantIndexOp(b, op.getLoc(), size),
                                                 arith::ConstantIndexOp::create(b, by))
                          .getResult());
  }
  return success();
}

LogicalResult SelectAntidiagonalsOp::verify() {
  int64_t step = getStride();
  auto isMultiple = [&](int64_t count) { return count > 0 && count % step == 0; };
  if (step <= 0 || !isMultiple(getSize()) || !isMultiple(getQueries())) // select_antidiagonals C1
    return emitOpError() << "expected size and queries to be positive multiples of a positive stride, but got "
                         << getSize() << ", " << getQueries() << " and " << step;
  if (failed(verifyScale(*this, getScale())))
    return failure();
  if (float share = getShare().convertToFloat(); !(share > 0 && share <= 1))
    return emitOpError() << "expected share to be above 0 and at most 1, but got " << share;
  return verifyLists(*this); // select_antidiagonals C2, C3, C4, C5
}

LogicalResult SelectAntidiagonalsOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLists(*this, builder, shapes);
}

//===- select_means -----------------------------------------------------------------------------------------------===//

LogicalResult SelectMeansOp::verify() {
  if (getSize() <= 0 || getQueries() <= 0) // select_means C1
    return emitOpError() << "expected size and queries to be positive, but got " << getSize() << " and "
                         << getQueries();
  if (failed(verifyScale(*this, getScale())) || failed(verifyLists(*this))) // select_means C2, C3, C4, C5
    return failure();
  ArrayRef<int64_t> thresholds = shapeOf(getThresholds()); // select_means C6
  if (thresholds[0] != 1 &&
      failed(verifySize(*this, "the first dimension of thresholds", thresholds[0], shapeOf(getKeys())[1])))
    return failure();
  return verifySize(*this, "the second dimension of thresholds", thresholds[1], kThresholds);
}

LogicalResult SelectMeansOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLists(*this, builder, shapes);
}
