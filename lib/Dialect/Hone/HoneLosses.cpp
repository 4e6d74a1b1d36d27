//===- HoneLosses.cpp - verifiers and shapes of losses ----------------------------------------------------------===//
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

FailureOr<ResultDims> KlDivergenceOp::getResultDims(TypeRange) { return ResultDims(); }

LogicalResult KlDivergenceOp::verify() {
  if (failed(verifyRank(*this, "logits", getLogits(), 1))) // kl_divergence C1
    return failure();
  if (failed(verifyShape(*this, "reference", shapeOf(getReference()), shapeOf(getLogits())))) // kl_divergence C2
    return failure();
  if (APFloat temperature = getTemperature(); temperature.isFinite() && temperature > APFloat(0.0f)) // kl_divergence C3
    return success();
  return emitOpError() << "expected the temperature to be finite and above 0, but got "
                       << getTemperature().convertToFloat();
}
