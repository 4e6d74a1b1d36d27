// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights that a file computes from constants, as parameters of the program: exporters reorder the gates of recurrent layers by slices,
// and dequantize integers, where every call would do it again.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_CONSTANTWEIGHTS_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_CONSTANTWEIGHTS_H

#include "Lowering.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include <vector>

namespace hone::lowering {

/// The matrices [rows, columns] of an operand [matrices, rows, columns].
class ConstantMatrices {
public:
  ConstantMatrices(Node &node, unsigned input);

  /// Rows [first, first + count) of matrix `index` as a parameter of f32, of all rows the integers that it stands for where it is
  /// dequantized. Null where the operand is not computed from constants alone.
  Value get(int64_t index, int64_t first, int64_t count);

private:
  struct Array {
    SmallVector<int64_t> shape;
    std::vector<float> elements;
  };
  /// Integers of 8 bits [matrices, columns, rows] without zero points, and a scale for each matrix or each of its rows.
  struct Integers {
    ParamOp codes;
    std::vector<float> scales;
    bool isSigned;
  };

  std::optional<Array> evaluate(Value value);
  std::optional<Array> evaluateOperation(Operation *op, ArrayRef<int64_t> shape);
  std::optional<Array> read(Operation *op);
  std::optional<Array> slice(Operation *op, ArrayRef<int64_t> shape);
  std::optional<Array> join(Operation *op, ArrayRef<int64_t> shape);
  std::optional<Array> transpose(Operation *op, ArrayRef<int64_t> shape);
  std::optional<Array> combine(Operation *op, ArrayRef<int64_t> shape);
  std::optional<Integers> findIntegers();
  bool hasNoZeroPoint(Value zeros, bool isSigned);
  ParamOp findParam(Value value);
  Value addParam(RankedTensorType type, mlir::Attribute storage, int64_t index);
  Value getIntegers(int64_t index);

  Node &node;
  Value operand;
  RankedTensorType type; // of the operand; null where sizes are open
  std::optional<Integers> integers;
  std::optional<Array> elements;
  bool isEvaluated = false;
};

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_CONSTANTWEIGHTS_H
