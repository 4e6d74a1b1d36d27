//===- DecomposeLoss.cpp - decompositions of cross_entropy and kl_divergence -------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace hone;

Value hone::buildLogSumExp(LocBuilder &builder, Value logits) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), logits);
  sizes.pop_back();
  int64_t rank = sizes.size();
  SmallVector<int64_t> all = loopRange(0, rank + 1), row = loopRange(0, rank);
  Value greatest = buildReduce(builder, Reduction::Max, sizes, {{logits, all}},
                               [](LocBuilder &, ValueRange args) { return args[0]; });
  Value sums = buildReduce(builder, Reduction::Sum, sizes, {{logits, all}, {greatest, row}},
                           [](LocBuilder &b, ValueRange args) -> Value {
                             return math::ExpOp::create(b, arith::SubFOp::create(b, args[0], args[1]));
                           });
  return buildMap(builder, sizes, builder.getF32Type(), {{sums, row}, {greatest, row}},
                  [](LocBuilder &b, ValueRange args) -> Value {
                    return arith::AddFOp::create(b, math::LogOp::create(b, args[0]), args[1]);
                  });
}

Value hone::buildScaled(LocBuilder &builder, Value tensor, float factor) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), tensor);
  Value number = constantF32(builder, factor);
  return buildMap(builder, sizes, builder.getF32Type(), {{tensor, loopRange(0, sizes.size())}},
                  [&](LocBuilder &b, ValueRange args) -> Value { return arith::MulFOp::create(b, args[0], number); });
}

/// The product of sizes, as f32.
static Value countElements(LocBuilder &builder, ArrayRef<OpFoldResult> sizes) {
  Value count = arith::ConstantIndexOp::create(builder, 1);
  for (OpFoldResult size : sizes)
    count = arith::MulIOp::create(builder, count, asIndex(builder, size));
  return asF32(builder, count);
}

/// The f32 tensor `sum` of no dimensions over `count`.
static Value divide(LocBuilder &builder, Value sum, Value count) {
  return buildMap(builder, {}, builder.getF32Type(), {{sum, {}}},
                  [&](LocBuilder &b, ValueRange args) -> Value { return arith::DivFOp::create(b, args[0], count); });
}

static Value decomposeCrossEntropy(LocBuilder &builder, CrossEntropyOp op) {
  Value logits = op.getLogits(), lse = buildLogSumExp(builder, logits);
  int64_t rank = op.getTargets().getType().getRank();
  Value last = arith::SubIOp::create(builder, asIndex(builder, getSize(builder, logits, rank)),
                                     arith::ConstantIndexOp::create(builder, 1));
  auto step = [&](LocBuilder &b, ValueRange args) -> Value {
    // Unsigned: a negative target is a very large one.
    Value target = arith::IndexCastOp::create(b, b.getIndexType(), args[1]);
    Value known = arith::MinUIOp::create(b, target, last);
    SmallVector<Value> place;
    for (int64_t dim = 0; dim < rank; ++dim)
      place.push_back(linalg::IndexOp::create(b, dim));
    place.push_back(known);
    Value loss = arith::SubFOp::create(b, args[0], extractF32(b, logits, place));
    Value isKnown = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, known, target);
    return arith::SelectOp::create(b, isKnown, loss, constantF32(b, std::numeric_limits<float>::quiet_NaN()));
  };
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), lse);
  SmallVector<int64_t> rows = loopRange(0, rank);
  Value losses = buildMap(builder, sizes, builder.getF32Type(), {{lse, rows}, {op.getTargets(), rows}}, step);
  Value sum =
      buildReduce(builder, Reduction::Sum, {}, {{losses, rows}}, [](LocBuilder &, ValueRange args) { return args[0]; });
  return divide(builder, sum, countElements(builder, sizes));
}

static Value decomposeKlDivergence(LocBuilder &builder, KlDivergenceOp op) {
  float factor = 1.0f / op.getTemperature().convertToFloat();
  Value logits = buildScaled(builder, op.getLogits(), factor),
        reference = buildScaled(builder, op.getReference(), factor);
  Value lse = buildLogSumExp(builder, logits), referenceLse = buildLogSumExp(builder, reference);
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), lse);
  SmallVector<int64_t> row = loopRange(0, sizes.size()), all = loopRange(0, sizes.size() + 1);
  auto step = [](LocBuilder &b, ValueRange args) -> Value {
    Value known = arith::SubFOp::create(b, args[1], args[3]), found = arith::SubFOp::create(b, args[0], args[2]);
    return arith::MulFOp::create(b, math::ExpOp::create(b, known), arith::SubFOp::create(b, known, found));
  };
  Value losses = buildReduce(builder, Reduction::Sum, sizes,
                             {{logits, all}, {reference, all}, {lse, row}, {referenceLse, row}}, step);
  Value sum =
      buildReduce(builder, Reduction::Sum, {}, {{losses, row}}, [](LocBuilder &, ValueRange args) { return args[0]; });
  return divide(builder, sum, countElements(builder, sizes));
}

void hone::addLossDecomposition(RewritePatternSet &patterns) {
  addDecomposition<CrossEntropyOp>(patterns, decomposeCrossEntropy);
  addDecomposition<KlDivergenceOp>(patterns, decomposeKlDivergence);
}
