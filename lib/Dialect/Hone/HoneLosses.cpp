//===- HoneLosses.cpp - verifier and shape of cross_entropy -----------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;
using namespace hone;

FailureOr<ResultDims> CrossEntropyOp::getResultDims(TypeRange) { return ResultDims(); }

LogicalResult CrossEntropyOp::verify() {
  if (failed(verifyRank(*this, "logits", getLogits(), 1))) // cross_entropy C1
    return failure();
  ArrayRef<int64_t> rows = shapeOf(getLogits()).drop_back(), targets = shapeOf(getTargets());
  if (mayEqual(rows, targets)) // cross_entropy C2
    return success();
  return emitOpError() << "expected targets to have the leading dimensions of logits, " << toText(rows) << ", but got "
                       << toText(targets);
}
