// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules that give one element of one operation's result.

#ifndef HONE_LIB_ANALYSIS_ELEMENTEVALUATOR_H
#define HONE_LIB_ANALYSIS_ELEMENTEVALUATOR_H

#include "OnnxAttributes.h"
#include "hone/Analysis/SymbolicAnalysis.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace hone::analysis {

/// Evaluates element `indices` of `value`. A rule that does not apply returns null: the element is then a load.
class ElementEvaluator {
public:
  ElementEvaluator(SymbolicAnalysis &analysis, mlir::Value value, Indices indices)
      : analysis(analysis), e(analysis.expressions), value(value), op(value.getDefiningOp()),
        indices(indices.begin(), indices.end()) {}

  const Expression *evaluate();
  const Expression *opaque();

private:
  // ElementExpression.cpp: leaves and element-wise operators.
  const Expression *evaluateOther();
  std::optional<Polynomial> getIndexedSize();
  const Expression *elementwise(llvm::StringRef name);
  const Expression *integerArithmetic(llvm::StringRef name, const Polynomial &a, const Polynomial &b);
  const Expression *selectInteger(const Expression *condition, const Expression *a, const Expression *b);
  const Expression *broadcastOperand(unsigned index);
  bool repeatsAlone(unsigned index, size_t dim, size_t rank);
  const Expression *cast();

  // ElementConstant.cpp: constants and parameters.
  const Expression *constant(mlir::Attribute elements);
  const Expression *param();
  const Expression *diagonals(mlir::Attribute elements, mlir::RankedTensorType type);

  // ElementMovement.cpp: operators that move elements.
  const Expression *constantNode();
  const Expression *constantOfShape();
  const Expression *shapeNode();
  const Expression *sizeNode();
  const Expression *range();
  const Expression *unsqueeze();
  const Expression *squeeze();
  const Expression *reshape();
  const Expression *transpose();
  const Expression *expand();
  const Expression *tile();
  const Expression *slice();
  const Expression *split();
  const Expression *concat();
  const Expression *gather();
  const Expression *gatherNd();
  const Expression *scatterNd();
  const Expression *scatterSlice(const Polynomial &count);
  const Expression *trilu();
  const Expression *oneHot();
  const Expression *cumSum();
  const Expression *reduce();
  const Expression *product();

  mlir::Value in(unsigned index) { return getOperand(op, index); }
  std::optional<llvm::SmallVector<int64_t>> constants(llvm::StringRef attribute, unsigned index);
  std::optional<Polynomial> wrap(const Polynomial &index, const Polynomial &size);

  SymbolicAnalysis &analysis;
  Expressions &e;
  mlir::Value value;
  mlir::Operation *op;
  llvm::SmallVector<Polynomial> indices;
};

} // namespace hone::analysis

#endif // HONE_LIB_ANALYSIS_ELEMENTEVALUATOR_H
