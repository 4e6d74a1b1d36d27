//===- HoneSelection.cpp - verifiers and shapes of pool_keys and select_blocks ----------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

//===- pool_keys --------------------------------------------------------------------------------------------------===//

LogicalResult PoolKeysOp::verify() {
  ArrayRef<int64_t> keys = shapeOf(getKeys());
  if (failed(verifyBlockSize(*this, getSize())) || // pool_keys C1
      failed(verifyKnown(*this, "the last dimension of keys", keys[3])) ||
      failed(verifyShape(*this, "the result", shapeOf(getResult()), // pool_keys C2
                         {keys[0], keys[1], ShapedType::kDynamic, getWidth(keys[3], getSize())})))
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

static LogicalResult verifyInterval(SelectBlocksOp op, StringRef name, Value bounds) {
  ArrayRef<int64_t> query = shapeOf(op.getQuery()), shape = shapeOf(bounds);
  if (shape[0] != 1 && failed(verifySize(op, ("the first dimension of " + name).str(), shape[0], query[0])))
    return failure();
  return verifySize(op, ("the second dimension of " + name).str(), shape[1], query[2]);
}

LogicalResult SelectBlocksOp::verify() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), pooled = shapeOf(getPooled()), result = shapeOf(getResult());
  if (failed(verifyBlockSize(*this, getSize()))) // select_blocks C1
    return failure();
  if (!getScale().isFinite())
    return emitOpError() << "expected scale to be finite, but got " << getScale().convertToFloat();
  if (failed(verifySize(*this, "the batch of pooled", pooled[0], query[0]))) // select_blocks C2
    return failure();
  bool areKnown = !ShapedType::isDynamic(query[1]) && !ShapedType::isDynamic(pooled[1]);
  if (areKnown && (pooled[1] == 0 || query[1] % pooled[1] != 0))
    return emitOpError() << "expected the heads of query to be a multiple of the " << pooled[1]
                         << " heads of pooled, but got " << query[1];
  if (failed(verifyKnown(*this, "the last dimension of query", query[3])) || // select_blocks C3
      failed(verifySize(*this, "the last dimension of pooled", pooled[3], PoolKeysOp::getWidth(query[3], getSize()))))
    return failure();
  if (failed(verifyInterval(*this, "begin", getBegin())) ||
      failed(verifyInterval(*this, "end", getEnd()))) // select_blocks C4
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
