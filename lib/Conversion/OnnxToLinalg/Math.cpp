// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic, one element at a time.

#include "Lowering.h"

using namespace mlir;

namespace hone::lowering {

/// Result element of a binary arithmetic operator for floats, signed and unsigned integers.
template <typename FloatOp, typename SignedOp, typename UnsignedOp = SignedOp>
static LogicalResult lowerBinary(Node &node) {
  bool isFloat = isa<FloatType>(node.element(0)), isUnsigned = node.isUnsigned(0);
  node.set(0, node.elementwise({node.in(0), node.in(1)}, node.element(0), [&](Builder &b, ValueRange x) -> Value {
    if (isFloat)
      return FloatOp::create(b, x[0], x[1]);
    return isUnsigned ? b.createOrFold<UnsignedOp>(x[0], x[1]) : b.createOrFold<SignedOp>(x[0], x[1]);
  }));
  return success();
}

void addMathLowerings(LoweringTable &table) {
  table["onnx.Add"] = lowerBinary<arith::AddFOp, arith::AddIOp>;
  table["onnx.Sub"] = lowerBinary<arith::SubFOp, arith::SubIOp>;
  table["onnx.Mul"] = lowerBinary<arith::MulFOp, arith::MulIOp>;
}

} // namespace hone::lowering
