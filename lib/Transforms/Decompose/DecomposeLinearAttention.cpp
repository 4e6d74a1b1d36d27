//===- DecomposeLinearAttention.cpp - decomposition of linear_attention -----------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over the tokens, which carries the outputs and the state.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace hone;

namespace {

/// Loops of the state `[B, Hk, Dk, Dv]`.
enum : int64_t { Batch, Head, KeyElement, ValueElement };

class LinearAttentionBuilder {
public:
  LinearAttentionBuilder(LocBuilder &builder, LinearAttentionOp op)
      : builder(builder), op(op), stateSizes{getSize(builder, op.getQuery(), 0), getSize(builder, op.getKey(), 2),
                                             getSize(builder, op.getKey(), 3), getSize(builder, op.getValue(), 3)} {}
  SmallVector<Value> build();

private:
  Value getFirstState();
  Value sliceToken(Value tensor, Value token);
  Value decayState(Value state, Value token);
  Value buildUpdate(Value state, Value key, Value token);
  Value writeState(Value state, Value decayed, Value key, Value update);
  Value buildOutput(Value state, Value token);
  Value insertToken(Value output, Value outputs, Value token);

  LocBuilder &builder;
  LinearAttentionOp op;
  Sizes stateSizes;
};

} // namespace

/// The loop of a dimension that has one position for all, or one for each of `loop`.
static int64_t oneOrAll(Value tensor, int64_t loop) {
  return cast<RankedTensorType>(tensor.getType()).getShape().back() == 1 ? Repeated : loop;
}

Value LinearAttentionBuilder::getFirstState() {
  if (op.getState())
    return op.getState();
  Value empty = tensor::EmptyOp::create(builder, stateSizes, builder.getF32Type());
  return linalg::FillOp::create(builder, constantF32(builder, 0), empty).getResult(0);
}

/// `[B, T, …]` at one token, as `[B, …]`.
Value LinearAttentionBuilder::sliceToken(Value tensor, Value token) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), tensor);
  Sizes offsets(sizes.size(), builder.getIndexAttr(0)), strides(sizes.size(), builder.getIndexAttr(1));
  offsets[1] = token;
  sizes[1] = builder.getIndexAttr(1);
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + 1);
  return tensor::ExtractSliceOp::create(builder, RankedTensorType::get(shape, type.getElementType()), tensor, offsets,
                                        sizes, strides);
}

Value LinearAttentionBuilder::decayState(Value state, Value token) {
  if (!op.getDecay())
    return state;
  SmallVector<int64_t> loops{Batch, Head, oneOrAll(op.getDecay(), KeyElement)};
  return buildMap(builder, stateSizes, builder.getF32Type(),
                  {{state, loopRange(0, 4)}, {sliceToken(op.getDecay(), token), loops}},
                  [](LocBuilder &b, ValueRange args) -> Value {
                    return arith::MulFOp::create(b, args[0], math::ExpOp::create(b, args[1]));
                  });
}

/// What the token writes `[B, Hk, Dv]`.
Value LinearAttentionBuilder::buildUpdate(Value state, Value key, Value token) {
  Value value = sliceToken(op.getValue(), token);
  if (!op.getBeta())
    return value;
  Sizes sizes{stateSizes[Batch], stateSizes[Head], stateSizes[ValueElement]};
  Value known = buildContraction(builder, sizes, {key, {0, 1, 3}}, {state, {0, 1, 3, 2}});
  SmallVector<int64_t> loops{0, oneOrAll(op.getBeta(), 1)};
  return buildMap(builder, sizes, builder.getF32Type(),
                  {{value, loopRange(0, 3)}, {known, loopRange(0, 3)}, {sliceToken(op.getBeta(), token), loops}},
                  [](LocBuilder &b, ValueRange args) -> Value {
                    return arith::MulFOp::create(b, args[2], arith::SubFOp::create(b, args[0], args[1]));
                  });
}

/// The state after the token, in the memory of the one before.
Value LinearAttentionBuilder::writeState(Value state, Value decayed, Value key, Value update) {
  auto mapOf = [&](ArrayRef<unsigned> loops) {
    return AffineMap::getMultiDimMapWithTargets(4, loops, builder.getContext());
  };
  SmallVector<AffineMap> maps{mapOf({0, 1, 2, 3}), mapOf({0, 1, 2}), mapOf({0, 1, 3}), mapOf({0, 1, 2, 3})};
  SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
  auto write = [](OpBuilder &nested, Location loc, ValueRange args) {
    LocBuilder b(loc, nested);
    Value written =
        arith::MulFOp::create(b, convertFloat(b, args[1], b.getF32Type()), convertFloat(b, args[2], b.getF32Type()));
    linalg::YieldOp::create(b, arith::AddFOp::create(b, args[0], written).getResult());
  };
  return linalg::GenericOp::create(builder, state.getType(), ValueRange{decayed, key, update}, state, maps, loops,
                                   write)
      .getResult(0);
}

/// What the queries of a token read `[B, Hk, G, Dv]`.
Value LinearAttentionBuilder::buildOutput(Value state, Value token) {
  Value query = expandHeads(builder, sliceToken(op.getQuery(), token), 1, stateSizes[Head]);
  Sizes sizes{stateSizes[Batch], stateSizes[Head], getSize(builder, query, 2), stateSizes[ValueElement]};
  Value sums = buildContraction(builder, sizes, {query, {0, 1, 2, 4}}, {state, {0, 1, 4, 3}});
  return buildMap(builder, sizes, op.getResult().getType().getElementType(), {{sums, loopRange(0, 4)}},
                  [&](LocBuilder &b, ValueRange args) -> Value {
                    return arith::MulFOp::create(b, args[0], constantF32(b, op.getScale().convertToFloat()));
                  });
}

Value LinearAttentionBuilder::insertToken(Value output, Value outputs, Value token) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), outputs);
  Sizes offsets(4, builder.getIndexAttr(0)), strides(4, builder.getIndexAttr(1));
  SmallVector<ReassociationIndices> groups{{0}, {1, 2}, {3}};
  Value row = tensor::CollapseShapeOp::create(builder, output, groups);
  offsets[1] = token;
  sizes[1] = builder.getIndexAttr(1);
  return tensor::InsertSliceOp::create(builder, row, outputs, offsets, sizes, strides);
}

SmallVector<Value> LinearAttentionBuilder::build() {
  Sizes sizes = getResultSizes(builder, op);
  Value outputs = tensor::EmptyOp::create(builder, sizes, op.getResult().getType().getElementType());
  Value zero = arith::ConstantIndexOp::create(builder, 0), one = arith::ConstantIndexOp::create(builder, 1);
  Value state = getFirstState();
  auto loop = scf::ForOp::create(builder, zero, asIndex(builder, sizes[1]), one, ValueRange{outputs, state});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value token = loop.getInductionVar();
  Value decayed = decayState(loop.getRegionIterArg(1), token), key = sliceToken(op.getKey(), token);
  Value update = buildUpdate(decayed, key, token);
  Value next = writeState(loop.getRegionIterArg(1), decayed, key, update);
  Value written = insertToken(buildOutput(next, token), loop.getRegionIterArg(0), token);
  scf::YieldOp::create(builder, ValueRange{written, next});
  return loop.getResults();
}

static SmallVector<Value> decomposeLinearAttention(LocBuilder &builder, LinearAttentionOp op) {
  return LinearAttentionBuilder(builder, op).build();
}

void hone::addLinearAttentionDecomposition(RewritePatternSet &patterns) {
  addDecomposition<LinearAttentionOp>(patterns, decomposeLinearAttention);
}
