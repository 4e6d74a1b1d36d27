//===- HoneLinearAttention.cpp - verifier and shapes of linear_attention ----------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;
using namespace hone;

FailureOr<ResultDims> LinearAttentionOp::getResultDims(TypeRange operands) {
  return ResultDims{{0, 0}, {0, 1}, {0, 2}, {2, 3}};
}

FailureOr<ResultDims> LinearAttentionOp::getOtherDims(TypeRange operands, unsigned) {
  return ResultDims{{0, 0}, {1, 2}, {1, 3}, {2, 3}};
}

/// Whether Hq is a multiple of Hk, as far as they are known.
static LogicalResult verifyHeads(LinearAttentionOp op, int64_t queryHeads, int64_t heads) {
  if (ShapedType::isDynamic(queryHeads) || ShapedType::isDynamic(heads) || (heads != 0 && queryHeads % heads == 0))
    return success();
  return op.emitOpError() << "expected the heads of query to be a multiple of the " << heads
                          << " heads of key, but got " << queryHeads;
}

/// The last dimension of an operand that may be absent: known, and 1 or `all`.
static LogicalResult verifyOneOrAll(LinearAttentionOp op, StringRef name, Value operand, int64_t all) {
  int64_t size = operand ? shapeOf(operand).back() : 1;
  if (size == 1 || (size == all && !ShapedType::isDynamic(size)))
    return success();
  if (ShapedType::isDynamic(size))
    return op.emitOpError() << "expected the last dimension of " << name << " to be known";
  return verifySize(op, "the last dimension of " + name, size, ShapedType::isDynamic(all) ? 1 : all);
}

LogicalResult LinearAttentionOp::verify() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), key = shapeOf(getKey()), value = shapeOf(getValue());
  if (failed(verifyShape(*this, "key", key, {query[0], query[1], key[2], query[3]})) || // linear_attention C1
      failed(verifyHeads(*this, query[2], key[2])) ||
      failed(verifyShape(*this, "value", value, {query[0], query[1], key[2], value[3]}))) // linear_attention C2
    return failure();
  if (Value decay = getDecay()) // linear_attention C3
    if (failed(verifyOneOrAll(*this, "decay", decay, key[3])) ||
        failed(verifyShape(*this, "decay", shapeOf(decay), {query[0], query[1], key[2], shapeOf(decay)[3]})))
      return failure();
  if (Value beta = getBeta()) // linear_attention C4
    if (failed(verifyOneOrAll(*this, "beta", beta, key[2])) ||
        failed(verifyShape(*this, "beta", shapeOf(beta), {query[0], query[1], shapeOf(beta)[2]})))
      return failure();
  if (Value state = getState()) // linear_attention C5
    if (failed(verifyShape(*this, "state", shapeOf(state), {query[0], key[2], key[3], value[3]})))
      return failure();
  std::pair<StringRef, Value> others[] = {
      {"key", getKey()}, {"value", getValue()}, {"decay", getDecay()}, {"beta", getBeta()}};
  for (auto [name, other] : others) // linear_attention C6
    if (failed(verifyElements(*this, name, other, getQuery())))
      return failure();
  if (!getScale().isFinite()) // linear_attention C7
    return emitOpError() << "expected scale to be finite, but got " << getScale().convertToFloat();
  return success();
}
