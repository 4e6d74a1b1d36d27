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

/// Values that constants alone make, as floats.
class ConstantEvaluator {
public:
  struct Array {
    SmallVector<int64_t> shape;
    std::vector<float> elements;
  };

  explicit ConstantEvaluator(Node &node) : node(node) {}

  /// The elements of a value of the graph that has fixed sizes, where constants of f32 or of integers of 8 bits make it.
  std::optional<Array> evaluate(Value value);

  /// A parameter called as that which `value` reads, with `index` after it.
  Value addParam(Value value, RankedTensorType type, mlir::Attribute storage, int64_t index);
  /// The same of elements of f32.
  Value addParam(Value value, ArrayRef<int64_t> shape, ArrayRef<float> elements, int64_t index);

protected:
  ParamOp findParam(Value value);

  Node &node;

private:
  std::optional<Array> evaluateOperation(Operation *op, ArrayRef<int64_t> shape);
  std::optional<Array> read(Operation *op);
  std::optional<Array> slice(Operation *op, ArrayRef<int64_t> shape);
  std::optional<Array> join(Operation *op, ArrayRef<int64_t> shape);
  std::optional<Array> transpose(Operation *op, ArrayRef<int64_t> shape);
  std::optional<Array> combine(Operation *op, ArrayRef<int64_t> shape);
};

/// The matrices [rows, columns] of an operand [matrices, rows, columns].
class ConstantMatrices : ConstantEvaluator {
public:
  ConstantMatrices(Node &node, unsigned input);

  /// Rows [first, first + count) of matrix `index` as a parameter of f32, of all rows the integers that it stands for where it is
  /// dequantized. Null where the operand is not computed from constants alone.
  Value get(int64_t index, int64_t first, int64_t count);

private:
  /// Integers of 8 bits [matrices, columns, rows] without zero points, and a scale for each matrix or each of its rows.
  struct Integers {
    Value read; // of the codes
    ParamOp codes;
    std::vector<float> scales;
    bool isSigned;
  };

  std::optional<Integers> findIntegers();
  bool hasNoZeroPoint(Value zeros, bool isSigned);
  Value getIntegers(int64_t index);

  Value operand;
  RankedTensorType type; // of the operand; null where sizes are open
  std::optional<Integers> integers;
  std::optional<Array> elements;
  bool isEvaluated = false;
};

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_CONSTANTWEIGHTS_H
