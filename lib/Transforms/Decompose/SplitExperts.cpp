//===- SplitExperts.cpp - a block of experts as blocks for all rows ---------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For those who look at the inputs of each expert: every expert is a feed-forward block of ordinary products, whose inputs are
// zeros in the rows that did not choose it. That takes as many times the work as there are experts for one that is chosen.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/ExpertHidden.h"

using namespace mlir;
using namespace hone;

namespace {

class ExpertSplitter {
public:
  ExpertSplitter(LocBuilder &builder, MoeOp op)
      : builder(builder), op(op), up(getWeight(op.getUp())), gate(getWeight(op.getGate())),
        down(getWeight(op.getDown())), rank(op.getX().getType().getRank()) {}
  Value build();

private:
  Value getWeight(Value weight);
  Value buildPerRow(int64_t expert, Value factors);
  Value keepChosen(Value x, Value chosen);
  Value multiply(Value x, Value weights, Value biases, int64_t expert);
  Value buildBlock(int64_t expert, Value chosen);

  LocBuilder &builder;
  MoeOp op;
  Value up, gate, down;
  int64_t rank;
};

} // namespace

/// The plain matrices of all experts; null if `weight` is.
Value ExpertSplitter::getWeight(Value weight) {
  if (!weight || !cast<RankedTensorType>(weight.getType()).getEncoding())
    return weight;
  return UnpackOp::create(builder, weight);
}

/// For each row, the sum of `factors` `[…, T]` of the choices that are the expert, or their number where those are null.
Value ExpertSplitter::buildPerRow(int64_t expert, Value factors) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), op.getExpertIds());
  SmallVector<int64_t> all = loopRange(0, rank);
  SmallVector<Operand> operands{{op.getExpertIds(), all}};
  if (factors)
    operands.push_back({factors, all});
  return buildReduce(builder, Reduction::Sum, ArrayRef(sizes).drop_back(), operands,
                     [&](LocBuilder &b, ValueRange args) -> Value {
                       Value wanted = arith::ConstantOp::create(b, b.getIntegerAttr(args[0].getType(), expert));
                       Value isChosen = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, args[0], wanted);
                       Value factor = args.size() == 1 ? constantF32(b, 1.0f) : args[1];
                       return arith::SelectOp::create(b, isChosen, factor, constantF32(b, 0.0f));
                     });
}

/// The rows of x that chose the expert, and zeros in place of the others.
Value ExpertSplitter::keepChosen(Value x, Value chosen) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), x);
  SmallVector<Operand> operands{{x, loopRange(0, rank)}, {chosen, loopRange(0, rank - 1)}};
  return buildMap(builder, sizes, cast<RankedTensorType>(x.getType()).getElementType(), operands,
                  [](LocBuilder &b, ValueRange args) -> Value {
                    Value zero = constantF32(b, 0.0f);
                    Value isChosen = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, args[1], zero);
                    return arith::SelectOp::create(b, isChosen, args[0], zero);
                  });
}

Value ExpertSplitter::multiply(Value x, Value weights, Value biases, int64_t expert) {
  auto type = cast<RankedTensorType>(weights.getType());
  int64_t rows = type.getDimSize(0) / op.getExpertCount(), columns = type.getDimSize(1);
  auto index = [&](int64_t value) { return builder.getIndexAttr(value); };
  auto part = [&](Value tensor, ArrayRef<int64_t> shape, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
    auto some = RankedTensorType::get(shape, cast<RankedTensorType>(tensor.getType()).getElementType());
    SmallVector<OpFoldResult> steps(2, index(1));
    return tensor::ExtractSliceOp::create(builder, some, tensor, offsets, sizes, steps);
  };
  Value matrix = part(weights, {rows, columns}, {index(expert * rows), index(0)}, {index(rows), index(columns)});
  Value bias = biases ? Value(part(biases, {rows}, {index(expert), index(0)}, {index(1), index(rows)})) : Value();
  auto input = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = rows;
  return LinearOp::create(builder, RankedTensorType::get(shape, input.getElementType()), x, matrix, bias);
}

Value ExpertSplitter::buildBlock(int64_t expert, Value chosen) {
  Value x = keepChosen(op.getX(), chosen);
  Value upRows = multiply(x, up, op.getUpBias(), expert), gateRows;
  if (gate)
    gateRows = multiply(x, gate, op.getGateBias(), expert);
  if (op.getFused())
    std::tie(gateRows, upRows) = splitFusedRows(builder, op, upRows);
  Value hidden = buildExpertHidden(builder, op, upRows, gateRows, op.getX().getType().getElementType());
  return multiply(keepChosen(hidden, chosen), down, op.getDownBias(), expert);
}

Value ExpertSplitter::build() {
  Type elements = op.getX().getType().getElementType();
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), op.getX());
  SmallVector<int64_t> all = loopRange(0, rank), leading = loopRange(0, rank - 1);
  Value sum;
  for (int64_t expert = 0; expert < op.getExpertCount(); ++expert) {
    Value block = buildBlock(expert, buildPerRow(expert, /*factors=*/nullptr));
    SmallVector<Operand> operands{{block, all}, {buildPerRow(expert, op.getExpertWeights()), leading}};
    if (sum)
      operands.push_back({sum, all});
    sum = buildMap(builder, sizes, builder.getF32Type(), operands, [](LocBuilder &b, ValueRange args) -> Value {
      Value weighted = arith::MulFOp::create(b, args[0], args[1]);
      return args.size() == 2 ? weighted : arith::AddFOp::create(b, weighted, args[2]);
    });
  }
  return roundTo(builder, sum, elements);
}

void hone::splitMoe(RewriterBase &rewriter, MoeOp op) {
  rewriter.setInsertionPoint(op);
  LocBuilder builder(op.getLoc(), rewriter);
  Value value = ExpertSplitter(builder, op).build();
  if (value.getType() != op.getType())
    value = tensor::CastOp::create(builder, op.getType(), value);
  rewriter.replaceOp(op, value);
}
