//===- HoneProducts.cpp - verifiers and shapes of linear, matmul and embedding ----------------------------------===//
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

//===- linear -----------------------------------------------------------------------------------------------------===//

FailureOr<ResultDims> LinearOp::getResultDims(TypeRange operands) { return getRowDims(operands, 0, /*last=*/{1, 0}); }

SmallVector<WeightUse> LinearOp::listWeights() {
  return {WeightUse{&getWeightMutable(), WeightInputs::Rows, &getXMutable(), WeightOutputs::Result, getBiasMutable()}};
}

/// What is summed over are the columns of the weight; its rows are the outputs.
GroupRules LinearOp::getGroupRules() {
  GroupRules rules;
  rules.blockerOfOperands = rules.blockerOfResults = "a product keeps its groups separate";
  int64_t last = getX().getType().getRank() - 1;
  OpOperand *weight = &getWeightMutable();
  rules.linked = {{{&getXMutable(), last}, {weight, 1}}, {{weight, 0}, {nullptr, last}}};
  for (OpOperand &bias : getBiasMutable())
    rules.linked.back().push_back({&bias, 0});
  return rules;
}

LogicalResult LinearOp::verify() {
  if (failed(verifyRank(*this, "x", getX(), 1))) // linear C1
    return failure();
  ArrayRef<int64_t> x = shapeOf(getX()), weight = shapeOf(getWeight());
  if (failed(verifySize(*this, "the last dimension of x", x.back(), weight[1])) || // linear C2
      failed(verifyCount(*this, "bias", getBias(), weight[0])))                    // linear C3
    return failure();
  return verifyElements(*this, "weight", getWeight(), getX()); // linear C4
}

//===- matmul -----------------------------------------------------------------------------------------------------===//

/// The dimension of result that stands `fromRight` places left of the last leading dimension: that of b unless b has none or
/// repeats its own.
static ResultDim getBatchDim(RankedTensorType a, RankedTensorType b, int64_t fromRight) {
  int64_t dimA = a.getRank() - 3 - fromRight, dimB = b.getRank() - 3 - fromRight;
  if (dimB < 0 || (dimA >= 0 && b.getDimSize(dimB) == 1))
    return {0, dimA};
  bool onlyBIsStatic = dimA >= 0 && a.isDynamicDim(dimA) && !b.isDynamicDim(dimB);
  bool takeB = dimA < 0 || a.getDimSize(dimA) == 1 || onlyBIsStatic;
  return takeB ? ResultDim{1, dimB} : ResultDim{0, dimA};
}

FailureOr<ResultDims> MatmulOp::getResultDims(TypeRange operands) {
  auto a = cast<RankedTensorType>(operands[0]), b = cast<RankedTensorType>(operands[1]);
  if (a.getRank() < 2 || b.getRank() < 2)
    return failure();
  ResultDims dims;
  for (int64_t i = std::max(a.getRank(), b.getRank()) - 3; i >= 0; --i)
    dims.push_back(getBatchDim(a, b, i));
  dims.push_back({0, a.getRank() - 2});
  dims.push_back({1, b.getRank() - 1});
  return dims;
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyRank(*this, "a", getA(), 2)) || failed(verifyRank(*this, "b", getB(), 2))) // matmul C1
    return failure();
  ArrayRef<int64_t> a = shapeOf(getA()), b = shapeOf(getB());
  if (failed(verifySize(*this, "the last but one dimension of b", b[b.size() - 2], a.back()))) // matmul C2
    return failure();
  for (auto [sizeA, sizeB] : llvm::zip(llvm::reverse(a.drop_back(2)), llvm::reverse(b.drop_back(2))))
    if (!mayEqual(sizeA, sizeB) && sizeA != 1 && sizeB != 1) // matmul C3
      return emitOpError() << "expected the leading dimensions of a and b to be equal or 1, but got " << toText(a)
                           << " and " << toText(b);
  if (failed(verifyElements(*this, "b", getB(), getA()))) // matmul C4
    return failure();
  if (!getAddend())
    return success();
  if (failed(verifyShape(*this, "the addend", shapeOf(getAddend()), shapeOf(getResult())))) // matmul C5
    return failure();
  return verifyElements(*this, "the addend", getAddend(), getA());
}

//===- embedding --------------------------------------------------------------------------------------------------===//

FailureOr<ResultDims> EmbeddingOp::getResultDims(TypeRange operands) {
  ResultDims dims = getSameDims(operands, 0);
  dims.push_back({1, 1});
  return dims;
}

SmallVector<WeightUse> EmbeddingOp::listWeights() {
  return {WeightUse{&getTableMutable(), WeightInputs::Numbers, &getIdsMutable(), WeightOutputs::Result,
                    MutableOperandRange(*this, 0, 0)}};
}

LogicalResult EmbeddingOp::verify() {
  return verifyNotEmpty(*this, "rows of the table", shapeOf(getTable())[0]); // embedding C1
}
