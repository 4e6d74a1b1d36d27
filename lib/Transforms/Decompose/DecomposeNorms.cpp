//===- DecomposeNorms.cpp - decompositions of rms_norm and layer_norm -------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace hone;

/// A tensor whose rows are normalised: its loops, and the sizes of one value a row.
struct Rows {
  Value x;
  Sizes sizes;
  SmallVector<int64_t> all, leading;

  Rows(LocBuilder &builder, Value x) : x(x), sizes(tensor::getMixedSizes(builder, builder.getLoc(), x)) {
    all = loopRange(0, sizes.size());
    leading = loopRange(0, sizes.size() - 1);
  }
  Type elements() const { return cast<RankedTensorType>(x.getType()).getElementType(); }
  int64_t column() const { return leading.size(); }
};

static Value square(LocBuilder &builder, Value x) { return arith::MulFOp::create(builder, x, x); }

/// For each row, `finish` of the mean of `step` over the row, whose element is the first argument; `more` are further
/// operands of the step.
static Value buildRowMean(LocBuilder &builder, const Rows &rows, ArrayRef<Operand> more, Step step,
                          llvm::function_ref<Value(LocBuilder &, Value)> finish) {
  ArrayRef<OpFoldResult> sizes = ArrayRef(rows.sizes).drop_back();
  SmallVector<Operand> operands{{rows.x, rows.all}};
  operands.append(more.begin(), more.end());
  Value sum = buildReduce(builder, Reduction::Sum, sizes, operands, step);
  Value count = asF32(builder, rows.sizes.back());
  return buildMap(builder, sizes, builder.getF32Type(), {{sum, rows.leading}},
                  [&](LocBuilder &b, ValueRange args) { return finish(b, arith::DivFOp::create(b, args[0], count)); });
}

/// The square root of a mean of squares with epsilon added.
static Value buildRoot(LocBuilder &builder, Value mean, const APFloat &epsilon) {
  Value sum = arith::AddFOp::create(builder, mean, constantF32(builder, epsilon.convertToFloat()));
  return math::SqrtOp::create(builder, sum);
}

static Value decomposeRmsNorm(LocBuilder &builder, RmsNormOp op) {
  Rows rows(builder, op.getX());
  Value root = buildRowMean(
      builder, rows, {}, [](LocBuilder &b, ValueRange args) { return square(b, args[0]); },
      [&](LocBuilder &b, Value mean) { return buildRoot(b, mean, op.getEpsilon()); });
  auto step = [&](LocBuilder &b, ValueRange args) -> Value {
    Value weight = args[2];
    if (op.getUnitOffset())
      weight = arith::AddFOp::create(b, constantF32(b, 1.0f), weight);
    return arith::MulFOp::create(b, arith::DivFOp::create(b, args[0], args[1]), weight);
  };
  return buildMap(builder, rows.sizes, rows.elements(),
                  {{rows.x, rows.all}, {root, rows.leading}, {op.getWeight(), {rows.column()}}}, step);
}

static Value decomposeLayerNorm(LocBuilder &builder, LayerNormOp op) {
  Rows rows(builder, op.getX());
  Value mean = buildRowMean(
      builder, rows, {}, [](LocBuilder &, ValueRange args) { return args[0]; },
      [](LocBuilder &, Value m) { return m; });
  Operand meanOperand{mean, rows.leading};
  auto shift = [](LocBuilder &b, ValueRange args) { return arith::SubFOp::create(b, args[0], args[1]); };
  Value root = buildRowMean(
      builder, rows, meanOperand, [&](LocBuilder &b, ValueRange args) { return square(b, shift(b, args)); },
      [&](LocBuilder &b, Value variance) { return buildRoot(b, variance, op.getEpsilon()); });
  SmallVector<Operand> operands{
      {rows.x, rows.all}, meanOperand, {root, rows.leading}, {op.getWeight(), {rows.column()}}};
  if (op.getBias())
    operands.push_back({op.getBias(), {rows.column()}});
  auto step = [&](LocBuilder &b, ValueRange args) -> Value {
    Value normal = arith::DivFOp::create(b, shift(b, args), args[2]);
    Value weighted = arith::MulFOp::create(b, normal, args[3]);
    return op.getBias() ? arith::AddFOp::create(b, weighted, args[4]).getResult() : weighted;
  };
  return buildMap(builder, rows.sizes, rows.elements(), operands, step);
}

void hone::addNormDecompositions(RewritePatternSet &patterns) {
  addDecomposition<RmsNormOp>(patterns, decomposeRmsNorm);
  addDecomposition<LayerNormOp>(patterns, decomposeLayerNorm);
}
