// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the shape of an operation's result follows from its operands, one rule an operator family.

#ifndef HONE_LIB_ANALYSIS_SHAPERULES_H
#define HONE_LIB_ANALYSIS_SHAPERULES_H

#include "OnnxAttributes.h"

#include "hone/Analysis/SymbolicAnalysis.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone::analysis {

using OptionalShape = std::optional<Shape>;

/// The rules of one operation. Each returns nothing where it does not apply.
class ShapeRules {
public:
  ShapeRules(SymbolicAnalysis &analysis, mlir::Operation *op, unsigned result)
      : analysis(analysis), op(op), result(result) {}
  OptionalShape compute();

private:
  OptionalShape in(unsigned index) {
    mlir::Value operand = getOperand(op, index);
    return operand ? analysis.getShape(operand) : std::nullopt;
  }
  std::optional<llvm::SmallVector<Polynomial>> contents(unsigned index) {
    mlir::Value operand = getOperand(op, index);
    return operand ? analysis.getContents(operand) : std::nullopt;
  }
  std::optional<llvm::SmallVector<int64_t>> constants(llvm::StringRef attribute, unsigned index) {
    if (auto values = getIntegers(op, attribute))
      return values;
    mlir::Value operand = getOperand(op, index);
    return operand ? analysis.getConstants(operand) : std::nullopt;
  }
  OptionalShape broadcast(llvm::ArrayRef<Shape> inputs);
  OptionalShape broadcastAll();
  OptionalShape matmul(bool transposeA, bool transposeB);
  OptionalShape reshape();
  OptionalShape expand();
  OptionalShape tile();
  OptionalShape gather();
  OptionalShape gatherBlocks();
  OptionalShape gatherFrom(const OptionalShape &data, int64_t along);
  OptionalShape concat();
  OptionalShape slice();
  OptionalShape range();
  OptionalShape unsqueeze();
  OptionalShape squeeze();
  OptionalShape einsum();
  OptionalShape reduce();
  OptionalShape split();
  OptionalShape transpose();
  OptionalShape gatherNd();
  OptionalShape topK();
  OptionalShape oneHot();
  OptionalShape flatten();
  OptionalShape attention();
  OptionalShape linearAttention();
  OptionalShape microsoft(llvm::StringRef name);
  OptionalShape state();
  OptionalShape collective();
  OptionalShape generate(mlir::tensor::GenerateOp generate);
  OptionalShape other();

  SymbolicAnalysis &analysis;
  mlir::Operation *op;
  unsigned result;
};

} // namespace hone::analysis

#endif // HONE_LIB_ANALYSIS_SHAPERULES_H
