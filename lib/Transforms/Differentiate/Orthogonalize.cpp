// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Orthogonalize.h"
#include "Products.h"
#include "UpdateParameter.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

/// The coefficients of Jordan et al., the number of their steps, and what they add to the norm.
static constexpr float kLinear = 3.4445f, kCubic = -4.7750f, kQuintic = 2.0315f, kNormOffset = 1e-7f;
static constexpr int64_t kSteps = 5;

/// x · `xFactor` + y · `yFactor`, of two matrices of f32.
static Value combine(LocBuilder &b, Value x, float xFactor, Value y, float yFactor) {
  return buildMap(b, tensor::getMixedSizes(b, b.getLoc(), x), b.getF32Type(), {{x, {0, 1}}, {y, {0, 1}}},
                  [&](LocBuilder &inner, ValueRange args) -> Value {
                    Value first = arith::MulFOp::create(inner, args[0], constantF32(inner, xFactor));
                    Value second = arith::MulFOp::create(inner, args[1], constantF32(inner, yFactor));
                    return arith::AddFOp::create(inner, first, second);
                  });
}

Value buildOrthogonalized(LocBuilder &b, Value matrix) {
  auto type = cast<RankedTensorType>(matrix.getType());
  bool isTall = type.getDimSize(0) > type.getDimSize(1);
  Value norm = arith::AddFOp::create(b, buildNorm(b, matrix), constantF32(b, kNormOffset));
  Value x = buildMap(
      b, tensor::getMixedSizes(b, b.getLoc(), matrix), b.getF32Type(), {{matrix, {0, 1}}},
      [&](LocBuilder &inner, ValueRange args) -> Value { return arith::DivFOp::create(inner, args[0], norm); });
  for (int64_t step = 0; step < kSteps; ++step) {
    Value transposed = transposeLast(b, x);
    Value square = isTall ? multiply(b, transposed, x) : multiply(b, x, transposed);
    Value factor = combine(b, square, kCubic, multiply(b, square, square), kQuintic);
    x = combine(b, x, kLinear, isTall ? multiply(b, x, factor) : multiply(b, factor, x), 1);
  }
  return x;
}

} // namespace hone
