// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adjoints of norms. With n the row as the norm makes it before its gain, d its divisor and u = g · gain, both are
//
//   dx = (u - mean(u) - n · mean(u · n)) / d        dgain = sum over rows of g · n        dbias = sum over rows of g
//
// where an RMS norm has no mean(u). Divisors are computed anew.

#include "Models.h"
#include "Products.h"

#include "hone/Dialect/Hone/HoneOps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

namespace {

class NormAdjoint {
public:
  NormAdjoint(LocBuilder &b, NormOpInterface op, const APFloat &epsilon, Adjoints &adjoints)
      : b(b), parts(op.getNormParts()), epsilon(epsilon.convertToFloat()), adjoints(adjoints),
        g(adjoints.get(op->getResult(0))), x(parts.rows->get()), sizes(tensor::getMixedSizes(b, b.getLoc(), x)),
        all(loopRange(0, sizes.size())), row(loopRange(0, sizes.size() - 1)), column(sizes.size() - 1) {}
  void build();

private:
  Value f32(float value) { return constantF32(b, value); }
  Value mean(ArrayRef<Operand> operands, Step step);
  void normalize();
  Value buildScaled(LocBuilder &inner, Value gradient, Value gain) const;
  Value buildInput();

  LocBuilder &b;
  NormParts parts;
  float epsilon;
  Adjoints &adjoints;
  Value g, x;
  Sizes sizes;
  SmallVector<int64_t> all, row;
  int64_t column;
  Value normal, divisor; // n and d
};

} // namespace

static Value mul(LocBuilder &b, Value left, Value right) { return arith::MulFOp::create(b, left, right); }
static Value sub(LocBuilder &b, Value left, Value right) { return arith::SubFOp::create(b, left, right); }
static Value first(LocBuilder &, ValueRange args) { return args[0]; }

/// The mean over each row of what `step` makes.
Value NormAdjoint::mean(ArrayRef<Operand> operands, Step step) {
  ArrayRef<OpFoldResult> rows = ArrayRef(sizes).drop_back();
  Value sum = buildReduce(b, Reduction::Sum, rows, operands, step), count = asF32(b, sizes.back());
  return buildMap(b, rows, b.getF32Type(), {{sum, row}},
                  [&](LocBuilder &inner, ValueRange args) { return arith::DivFOp::create(inner, args[0], count); });
}

void NormAdjoint::normalize() {
  SmallVector<Operand> shifted{{x, all}};
  if (parts.subtractsMean)
    shifted.push_back({mean({{x, all}}, first), row});
  auto shift = [](LocBuilder &inner, ValueRange args, size_t count) {
    return count > 1 ? sub(inner, args[0], args[1]) : args[0];
  };
  size_t count = shifted.size();
  Value square = mean(shifted, [&](LocBuilder &inner, ValueRange args) {
    Value value = shift(inner, args, count);
    return mul(inner, value, value);
  });
  divisor = buildMap(b, ArrayRef(sizes).drop_back(), b.getF32Type(), {{square, row}},
                     [&](LocBuilder &inner, ValueRange args) -> Value {
                       Value sum = arith::AddFOp::create(inner, args[0], constantF32(inner, epsilon));
                       return math::SqrtOp::create(inner, sum);
                     });
  shifted.push_back({divisor, row});
  normal = buildMap(b, sizes, b.getF32Type(), shifted, [&](LocBuilder &inner, ValueRange args) -> Value {
    return arith::DivFOp::create(inner, shift(inner, args, count), args[count]);
  });
}

/// u, of the gradient of the result and of the gain as it is stored.
Value NormAdjoint::buildScaled(LocBuilder &inner, Value gradient, Value gain) const {
  if (parts.hasUnitOffset)
    gain = arith::AddFOp::create(inner, gain, constantF32(inner, 1.0f));
  return mul(inner, gradient, gain);
}

Value NormAdjoint::buildInput() {
  SmallVector<Operand> operands{{g, all}, {parts.gain->get(), {column}}, {normal, all}};
  Value along = mean(operands, [&](LocBuilder &inner, ValueRange args) {
    return mul(inner, buildScaled(inner, args[0], args[1]), args[2]);
  });
  SmallVector<Operand> whole = operands;
  whole.append({{along, row}, {divisor, row}});
  if (parts.subtractsMean) {
    Value average = mean(ArrayRef(operands).take_front(2),
                         [&](LocBuilder &inner, ValueRange args) { return buildScaled(inner, args[0], args[1]); });
    whole.push_back({average, row});
  }
  return buildMap(b, sizes, cast<RankedTensorType>(x.getType()).getElementType(), whole,
                  [&](LocBuilder &inner, ValueRange args) -> Value {
                    Value slope = buildScaled(inner, args[0], args[1]);
                    if (parts.subtractsMean)
                      slope = sub(inner, slope, args[5]);
                    slope = sub(inner, slope, mul(inner, args[2], args[3]));
                    return arith::DivFOp::create(inner, slope, args[4]);
                  });
}

void NormAdjoint::build() {
  normalize();
  if (adjoints.isWanted(x))
    adjoints.add(b, x, buildInput());
  if (Value gain = parts.gain->get(); adjoints.isWanted(gain)) {
    Value products = buildMap(b, sizes, b.getF32Type(), {{g, all}, {normal, all}},
                              [](LocBuilder &inner, ValueRange args) { return mul(inner, args[0], args[1]); });
    adjoints.add(b, gain, sumRows(b, products));
  }
  for (OpOperand &bias : parts.bias)
    if (adjoints.isWanted(bias.get()))
      adjoints.add(b, bias.get(), sumRows(b, g));
}

namespace {
template <typename Op>
struct NormModel : DifferentiableOpInterface::ExternalModel<NormModel<Op>, Op> {
  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &builder, Adjoints &adjoints) const {
    NormAdjoint(builder, cast<NormOpInterface>(op), cast<Op>(op).getEpsilon(), adjoints).build();
    return success();
  }
};
} // namespace

void registerNormAdjoints(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, HoneDialect *) {
    RmsNormOp::attachInterface<NormModel<RmsNormOp>>(*context);
    LayerNormOp::attachInterface<NormModel<LayerNormOp>>(*context);
  });
}

} // namespace hone
