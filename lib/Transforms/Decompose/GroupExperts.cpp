//===- GroupExperts.cpp - a block of experts as blocks of the rows that chose each --------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For gradients: each choice of an expert is a row, and rows are brought into the order of their experts, so that a loop over experts
// multiplies slices of them with slices of the matrices. That is the work of the chosen experts alone, in operations that have adjoints;
// the loop's adjoint computes each block once more and keeps none.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/DecomposedParts.h"
#include "hone/Transforms/ExpertHidden.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace hone;

namespace {

/// N rows of K elements, of which each chooses T experts; the R = N · T choices have numbers, and a place each in the order of experts.
class ExpertGrouper {
public:
  ExpertGrouper(LocBuilder &b, MoeOp op);
  Value build();

private:
  Value collapseTo(Value tensor, int64_t dims);
  Value countChoices(OpFoldResult size, ArrayRef<Operand> operands,
                     llvm::function_ref<Value(LocBuilder &, ValueRange)> counts);
  Value buildFirstPlaces();
  Value buildPlaces();
  Value invert(Value places);
  Value take(Value table, Value rows);
  Value takeExpert(Value tensor, Value expert, int64_t rows);
  Value takeRows(Value tensor, Value first, Value count);
  Value multiply(Value x, Value weights, Value biases, Value expert);
  Value buildBlock(Value rows, Value factors, Value expert);
  Value buildBlocks(Value rows, Value factors);

  LocBuilder &b;
  MoeOp op;
  int64_t experts, width; // their number, and K
  Value x, ids, weights;  // [N, K], [R] and [R, 1]
  Value up, gate, down;
  OpFoldResult choices; // R
};

} // namespace

ExpertGrouper::ExpertGrouper(LocBuilder &b, MoeOp op)
    : b(b), op(op), experts(op.getExpertCount()), width(op.getUp().getType().getDimSize(1)),
      up(getPlain(b, op.getUp())), gate(op.getGate() ? getPlain(b, op.getGate()) : Value()),
      down(getPlain(b, op.getDown())) {
  x = collapseTo(op.getX(), 2);
  ids = collapseTo(op.getExpertIds(), 1);
  choices = getSize(b, ids, 0);
  Value flat = collapseTo(op.getExpertWeights(), 1);
  auto type = cast<RankedTensorType>(flat.getType());
  weights =
      tensor::ExpandShapeOp::create(b, RankedTensorType::get({type.getDimSize(0), 1}, type.getElementType()), flat,
                                    ArrayRef<ReassociationIndices>{{0, 1}}, Sizes{choices, b.getIndexAttr(1)});
}

/// `tensor` with its leading dimensions as one, which is the only one or has the last beside it.
Value ExpertGrouper::collapseTo(Value tensor, int64_t dims) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t leading = type.getRank() - dims + 1;
  if (leading == 0) {
    SmallVector<int64_t> shape{1, type.getDimSize(0)};
    return tensor::ExpandShapeOp::create(b, RankedTensorType::get(shape, type.getElementType()), tensor,
                                         ArrayRef<ReassociationIndices>{{0, 1}},
                                         Sizes{b.getIndexAttr(1), getSize(b, tensor, 0)});
  }
  if (leading == 1)
    return tensor;
  SmallVector<ReassociationIndices> groups{llvm::to_vector<2>(llvm::seq<int64_t>(0, leading))};
  if (dims == 2)
    groups.push_back({leading});
  return tensor::CollapseShapeOp::create(b, tensor, groups);
}

/// For each position of loop 0, the sum over loop 1, all choices, of the numbers that `counts` gives.
Value ExpertGrouper::countChoices(OpFoldResult size, ArrayRef<Operand> operands,
                                  llvm::function_ref<Value(LocBuilder &, ValueRange)> counts) {
  Value empty = tensor::EmptyOp::create(b, {size}, b.getI64Type());
  Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
  Value zeros = linalg::FillOp::create(b, zero, empty).getResult(0);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const Operand &operand : operands) {
    inputs.push_back(operand.tensor);
    maps.push_back(AffineMap::get(2, 0, b.getAffineDimExpr(operand.loops.front()), b.getContext()));
  }
  maps.push_back(AffineMap::get(2, 0, b.getAffineDimExpr(0), b.getContext()));
  SmallVector<utils::IteratorType> loops{utils::IteratorType::parallel, utils::IteratorType::reduction};
  auto step = [&](OpBuilder &nested, Location loc, ValueRange args) {
    LocBuilder inner(loc, nested);
    Value number = counts(inner, args.drop_back());
    linalg::YieldOp::create(inner, ValueRange(arith::AddIOp::create(inner, args.back(), number)));
  };
  return linalg::GenericOp::create(b, zeros.getType(), inputs, zeros, maps, loops, step).getResult(0);
}

static Value asNumber(LocBuilder &b, Value isTrue) { return arith::ExtUIOp::create(b, b.getI64Type(), isTrue); }

/// Where the choices of each expert begin, `[E + 1]`: how many there are of those before. One that no expert has is after all.
Value ExpertGrouper::buildFirstPlaces() {
  return countChoices(b.getIndexAttr(experts + 1), {{ids, {1}}}, [](LocBuilder &inner, ValueRange args) {
    Value expert = linalg::IndexOp::create(inner, 0);
    Value id = arith::IndexCastOp::create(inner, inner.getIndexType(), args[0]);
    return asNumber(inner, arith::CmpIOp::create(inner, arith::CmpIPredicate::ult, id, expert));
  });
}

/// The place of each choice `[R]`: those of one expert keep their order.
Value ExpertGrouper::buildPlaces() {
  return countChoices(choices, {{ids, {0}}, {ids, {1}}}, [](LocBuilder &inner, ValueRange args) {
    Value own = linalg::IndexOp::create(inner, 0), other = linalg::IndexOp::create(inner, 1);
    Value isLess = arith::CmpIOp::create(inner, arith::CmpIPredicate::ult, args[1], args[0]);
    Value isSame = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, args[1], args[0]);
    Value isBefore = arith::CmpIOp::create(inner, arith::CmpIPredicate::ult, other, own);
    return asNumber(inner, arith::OrIOp::create(inner, isLess, arith::AndIOp::create(inner, isSame, isBefore)));
  });
}

/// The choice at each place.
Value ExpertGrouper::invert(Value places) {
  return countChoices(choices, {{places, {1}}}, [](LocBuilder &inner, ValueRange args) -> Value {
    Value place = arith::IndexCastOp::create(inner, inner.getI64Type(), linalg::IndexOp::create(inner, 0));
    Value choice = arith::IndexCastOp::create(inner, inner.getI64Type(), linalg::IndexOp::create(inner, 1));
    Value isHere = arith::CmpIOp::create(inner, arith::CmpIPredicate::eq, args[0], place);
    return arith::MulIOp::create(inner, asNumber(inner, isHere), choice);
  });
}

Value ExpertGrouper::take(Value table, Value rows) {
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<int64_t> shape(cast<RankedTensorType>(rows.getType()).getShape());
  shape.push_back(type.getDimSize(1));
  return EmbeddingOp::create(b, RankedTensorType::get(shape, type.getElementType()), rows, table);
}

/// The `rows` rows of an expert.
Value ExpertGrouper::takeExpert(Value tensor, Value expert, int64_t rows) {
  int64_t columns = cast<RankedTensorType>(tensor.getType()).getDimSize(1);
  Value first = arith::MulIOp::create(b, expert, arith::ConstantIndexOp::create(b, rows));
  Sizes offsets{first, b.getIndexAttr(0)}, sizes{b.getIndexAttr(rows), b.getIndexAttr(columns)},
      strides(2, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, tensor, offsets, sizes, strides);
}

Value ExpertGrouper::takeRows(Value tensor, Value first, Value count) {
  Sizes offsets{first, b.getIndexAttr(0)}, sizes{count, getSize(b, tensor, 1)}, strides(2, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, tensor, offsets, sizes, strides);
}

Value ExpertGrouper::multiply(Value rows, Value matrices, Value biases, Value expert) {
  int64_t outputs = cast<RankedTensorType>(matrices.getType()).getDimSize(0) / experts;
  auto type = cast<RankedTensorType>(rows.getType());
  Value bias;
  if (biases)
    bias = tensor::CollapseShapeOp::create(b, takeExpert(biases, expert, 1), ArrayRef<ReassociationIndices>{{0, 1}});
  return LinearOp::create(b, RankedTensorType::get({type.getDimSize(0), outputs}, type.getElementType()), rows,
                          takeExpert(matrices, expert, outputs), bias);
}

/// The block of an expert times the factors of its rows: those multiply what is between its layers, so that the gradients of the factors
/// need no result of the block.
Value ExpertGrouper::buildBlock(Value rows, Value factors, Value expert) {
  Value upRows = multiply(rows, up, op.getUpBias(), expert), gateRows;
  if (gate)
    gateRows = multiply(rows, gate, op.getGateBias(), expert);
  if (op.getFused())
    std::tie(gateRows, upRows) = splitFusedRows(b, op, upRows);
  Type elements = op.getX().getType().getElementType();
  Value hidden = buildExpertHidden(b, op, upRows, gateRows, elements);
  auto scale = [&](Value tensor) {
    return buildMap(
        b, tensor::getMixedSizes(b, b.getLoc(), tensor), elements, {{tensor, {0, 1}}, {factors, {0, Repeated}}},
        [](LocBuilder &inner, ValueRange args) -> Value { return arith::MulFOp::create(inner, args[0], args[1]); });
  };
  Value block = multiply(scale(hidden), down, {}, expert);
  if (!op.getDownBias())
    return block;
  Value bias = takeExpert(op.getDownBias(), expert, 1);
  return buildMap(b, tensor::getMixedSizes(b, b.getLoc(), block), elements,
                  {{block, {0, 1}}, {factors, {0, Repeated}}, {bias, {Repeated, 1}}},
                  [](LocBuilder &inner, ValueRange args) -> Value {
                    return arith::AddFOp::create(inner, args[0], arith::MulFOp::create(inner, args[1], args[2]));
                  });
}

/// The blocks of all rows, in the order of experts; zeros for choices of no expert.
Value ExpertGrouper::buildBlocks(Value rows, Value factors) {
  Type elements = op.getX().getType().getElementType();
  Value firsts = buildFirstPlaces();
  Value empty = tensor::EmptyOp::create(b, Sizes{choices, b.getIndexAttr(width)}, elements);
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(elements));
  Value zeros = linalg::FillOp::create(b, none, empty).getResult(0);
  Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ForOp::create(b, zero, arith::ConstantIndexOp::create(b, experts), one, zeros);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value expert = loop.getInductionVar(), blocks = loop.getRegionIterArg(0);
  auto placeOf = [&](Value number) -> Value {
    return arith::IndexCastOp::create(b, b.getIndexType(), tensor::ExtractOp::create(b, firsts, number));
  };
  Value first = placeOf(expert), end = placeOf(arith::AddIOp::create(b, expert, one));
  Value count = arith::SubIOp::create(b, end, first);
  Value block = buildBlock(takeRows(rows, first, count), takeRows(factors, first, count), expert);
  Sizes offsets{first, b.getIndexAttr(0)}, sizes{count, b.getIndexAttr(width)}, strides(2, b.getIndexAttr(1));
  scf::YieldOp::create(b, ValueRange(tensor::InsertSliceOp::create(b, block, blocks, offsets, sizes, strides)));
  return loop.getResult(0);
}

Value ExpertGrouper::build() {
  Value places = buildPlaces(), order = invert(places);
  Sizes chosen = tensor::getMixedSizes(b, b.getLoc(), op.getExpertIds());
  Value perRow = asIndex(b, chosen.back());
  auto rowOf = [&](OpBuilder &nested, Location loc, ValueRange args) {
    LocBuilder inner(loc, nested);
    Value each = arith::IndexCastOp::create(inner, inner.getI64Type(), perRow);
    linalg::YieldOp::create(inner, ValueRange(arith::DivUIOp::create(inner, args[0], each)));
  };
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(1));
  Value empty = tensor::EmptyOp::create(b, {choices}, b.getI64Type());
  Value rows = linalg::GenericOp::create(b, empty.getType(), order, empty, maps,
                                         ArrayRef<utils::IteratorType>{utils::IteratorType::parallel}, rowOf)
                   .getResult(0);
  Value blocks = take(buildBlocks(take(x, rows), take(weights, order)), places);
  Type elements = op.getX().getType().getElementType();
  chosen.push_back(b.getIndexAttr(width));
  int64_t rank = chosen.size();
  SmallVector<ReassociationIndices> groups{llvm::to_vector<2>(llvm::seq<int64_t>(0, rank - 1)), {rank - 1}};
  auto type = RankedTensorType::get(decomposeMixedValues(chosen).first, elements);
  Value perChoice = tensor::ExpandShapeOp::create(b, type, blocks, groups, chosen);
  Sizes results(chosen);
  results.erase(results.end() - 2);
  SmallVector<int64_t> loops = with(loopRange(0, rank - 2), {rank - 1, rank - 2});
  Value sum = buildReduce(b, Reduction::Sum, results, {{perChoice, loops}},
                          [](LocBuilder &, ValueRange args) { return args[0]; });
  return roundTo(b, sum, elements);
}

void hone::groupExperts(RewriterBase &rewriter, MoeOp op) {
  rewriter.setInsertionPoint(op);
  LocBuilder builder(op.getLoc(), rewriter);
  Value value = ExpertGrouper(builder, op).build();
  if (value.getType() != op.getType())
    value = tensor::CastOp::create(builder, op.getType(), value);
  rewriter.replaceOp(op, value);
}
