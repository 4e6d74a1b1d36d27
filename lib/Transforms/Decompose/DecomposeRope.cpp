//===- DecomposeRope.cpp - decomposition of rope ----------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two halves of the pairs are slices of x; the rotated halves are put back into x, whose further elements stay.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

using namespace mlir;
using namespace hone;

/// Where one half of the pairs lies in the last dimension.
struct Half {
  Sizes offsets, sizes, strides;
};

/// The places of half number `index` (0 or 1) of `pairs` pairs in x.
static Half getHalf(LocBuilder &builder, RopeOp op, int64_t index, OpFoldResult pairs) {
  Half half;
  half.sizes = tensor::getMixedSizes(builder, builder.getLoc(), op.getX());
  half.sizes.back() = pairs;
  half.offsets.assign(half.sizes.size(), builder.getIndexAttr(0));
  half.strides.assign(half.sizes.size(), builder.getIndexAttr(op.getInterleaved() ? 2 : 1));
  std::fill_n(half.strides.begin(), half.strides.size() - 1, builder.getIndexAttr(1));
  if (index == 1)
    half.offsets.back() = op.getInterleaved() ? builder.getIndexAttr(1) : pairs;
  return half;
}

/// One half of the rotated pairs: `a cos - b sin` or `a cos + b sin`.
static Value buildRotated(LocBuilder &builder, RopeOp op, const Half &half, Value a, Value b, bool subtract) {
  bool repeated = op.getCos().getType().getDimSize(0) == 1 && op.getX().getType().getDimSize(0) != 1;
  SmallVector<int64_t> table{repeated ? Repeated : 0, 2, 3};
  auto step = [&](LocBuilder &inner, ValueRange args) -> Value {
    Value first = arith::MulFOp::create(inner, args[0], args[2]);
    Value second = arith::MulFOp::create(inner, args[1], args[3]);
    if (subtract)
      return arith::SubFOp::create(inner, first, second);
    return arith::AddFOp::create(inner, first, second);
  };
  return buildMap(builder, half.sizes, op.getX().getType().getElementType(),
                  {{a, loopRange(0, 4)}, {b, loopRange(0, 4)}, {op.getCos(), table}, {op.getSin(), table}}, step);
}

static Value decomposeRope(LocBuilder &builder, RopeOp op) {
  OpFoldResult pairs = getSize(builder, op.getCos(), 2);
  Half low = getHalf(builder, op, 0, pairs), high = getHalf(builder, op, 1, pairs);
  auto slice = [&](const Half &half) -> Value {
    return tensor::ExtractSliceOp::create(builder, op.getX(), half.offsets, half.sizes, half.strides);
  };
  auto insert = [&](Value part, Value into, const Half &half) -> Value {
    return tensor::InsertSliceOp::create(builder, part, into, half.offsets, half.sizes, half.strides);
  };
  Value u = slice(low), w = slice(high);
  Value rotated = insert(buildRotated(builder, op, low, u, w, /*subtract=*/true), op.getX(), low);
  return insert(buildRotated(builder, op, high, w, u, /*subtract=*/false), rotated, high);
}

void hone::addRopeDecomposition(RewritePatternSet &patterns) { addDecomposition<RopeOp>(patterns, decomposeRope); }
