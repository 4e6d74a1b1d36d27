//===- HoneNorms.cpp - verifiers and shapes of rms_norm and layer_norm ------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "RowShapes.h"
#include "Verify.h"

#include "hone/Dialect/Hone/HoneOps.h"

using namespace mlir;
using namespace hone;

static LogicalResult verifyEpsilon(Operation *op, const APFloat &epsilon) {
  if (epsilon.isFinite() && !epsilon.isNegative())
    return success();
  return op->emitOpError() << "expected epsilon to be finite and not negative, but got " << epsilon.convertToFloat();
}

FailureOr<ResultDims> RmsNormOp::getResultDims(TypeRange operands) { return getSameDims(operands, 0); }

NormParts RmsNormOp::getNormParts() {
  return {&getXMutable(), &getWeightMutable(), MutableOperandRange(*this, 0, 0), getUnitOffset(),
          /*subtractsMean=*/false};
}

void RmsNormOp::dropUnitOffset() { setUnitOffset(false); }

GroupRules RmsNormOp::getGroupRules() { return hone::detail::getRulesOfRows(*this); }

LogicalResult RmsNormOp::verify() {
  if (failed(verifyRank(*this, "x", getX(), 1)) ||                               // rms_norm C1
      failed(verifyCount(*this, "weight", getWeight(), shapeOf(getX()).back()))) // rms_norm C2
    return failure();
  return verifyEpsilon(*this, getEpsilon()); // rms_norm C3
}

FailureOr<ResultDims> LayerNormOp::getResultDims(TypeRange operands) { return getSameDims(operands, 0); }

NormParts LayerNormOp::getNormParts() {
  return {&getXMutable(), &getWeightMutable(), getBiasMutable(), /*hasUnitOffset=*/false, /*subtractsMean=*/true};
}

GroupRules LayerNormOp::getGroupRules() { return hone::detail::getRulesOfRows(*this); }

LogicalResult LayerNormOp::verify() {
  if (failed(verifyRank(*this, "x", getX(), 1)) ||                                 // layer_norm C1
      failed(verifyCount(*this, "weight", getWeight(), shapeOf(getX()).back())) || // layer_norm C2
      failed(verifyCount(*this, "bias", getBias(), shapeOf(getX()).back())))
    return failure();
  return verifyEpsilon(*this, getEpsilon()); // layer_norm C3
}
