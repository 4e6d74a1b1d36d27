//===- DecomposeLoss.cpp - decomposition of cross_entropy -------------------------------------------------------===//
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

/// The number of rows of logits, as f32.
static Value countRows(LocBuilder &builder, Value targets) {
  Value count = arith::ConstantIndexOp::create(builder, 1);
  for (OpFoldResult size : tensor::getMixedSizes(builder, builder.getLoc(), targets))
    count = arith::MulIOp::create(builder, count, asIndex(builder, size));
  return asF32(builder, count);
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
  Value count = countRows(builder, op.getTargets());
  return buildMap(builder, {}, builder.getF32Type(), {{sum, {}}},
                  [&](LocBuilder &b, ValueRange args) -> Value { return arith::DivFOp::create(b, args[0], count); });
}

void hone::addLossDecomposition(RewritePatternSet &patterns) {
  addDecomposition<CrossEntropyOp>(patterns, decomposeCrossEntropy);
}
