//===- DecomposeMlps.cpp - decompositions of gated_mlp, mlp and moe ---------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#include "Decompositions.h"

#include "hone/Transforms/ExpertHidden.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;
using namespace hone;

//===- Activations ------------------------------------------------------------------------------------------------===//

static Value buildSilu(LocBuilder &b, Value x) {
  Value denominator =
      arith::AddFOp::create(b, constantF32(b, 1.0f), math::ExpOp::create(b, arith::NegFOp::create(b, x)));
  return arith::DivFOp::create(b, x, denominator);
}

/// `x/2 (1 + s)`.
static Value buildHalfOf(LocBuilder &b, Value x, Value s) {
  Value half = arith::MulFOp::create(b, x, constantF32(b, 0.5f));
  return arith::MulFOp::create(b, half, arith::AddFOp::create(b, constantF32(b, 1.0f), s));
}

static Value buildGelu(LocBuilder &b, Value x) {
  Value scaled = arith::MulFOp::create(b, x, constantF32(b, static_cast<float>(std::numbers::sqrt2 / 2)));
  return buildHalfOf(b, x, math::ErfOp::create(b, scaled));
}

/// D. Hendrycks, K. Gimpel, 2016, section 2: 0.044715 is theirs.
static Value buildGeluTanh(LocBuilder &b, Value x) {
  Value cube = arith::MulFOp::create(b, x, arith::MulFOp::create(b, x, x));
  Value sum = arith::AddFOp::create(b, x, arith::MulFOp::create(b, cube, constantF32(b, 0.044715f)));
  Value root = constantF32(b, static_cast<float>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
  return buildHalfOf(b, x, math::TanhOp::create(b, arith::MulFOp::create(b, root, sum)));
}

Value hone::buildActivation(LocBuilder &builder, Activation activation, Value x) {
  switch (activation) {
  case Activation::Silu:
    return buildSilu(builder, x);
  case Activation::Gelu:
    return buildGelu(builder, x);
  case Activation::GeluTanh:
    return buildGeluTanh(builder, x);
  case Activation::Relu:
    return arith::MaximumFOp::create(builder, x, constantF32(builder, 0.0f));
  }
  llvm_unreachable("an activation that the enum does not have");
}

//===- gated_mlp, mlp ---------------------------------------------------------------------------------------------===//

Value hone::buildHidden(LocBuilder &builder, Activation activation, Value up, Value gate, Type elements) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), up);
  SmallVector<int64_t> all = loopRange(0, sizes.size());
  SmallVector<Operand> operands{{up, all}};
  if (gate)
    operands.push_back({gate, all});
  return buildMap(builder, sizes, elements, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    if (args.size() == 1)
      return buildActivation(b, activation, args[0]);
    return arith::MulFOp::create(b, buildActivation(b, activation, args[1]), args[0]);
  });
}

/// Limits that are infinite change nothing.
Value hone::buildExpertHidden(LocBuilder &builder, MoeOp op, Value up, Value gate, Type elements) {
  std::optional<Swiglu> swiglu = op.getSwiglu();
  if (!swiglu)
    return buildHidden(builder, op.getActivation(), up, gate, elements);
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), up);
  SmallVector<int64_t> all = loopRange(0, sizes.size());
  SmallVector<Operand> operands{{up, all}, {gate, all}};
  return buildMap(builder, sizes, elements, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    Value limit = constantF32(b, swiglu->limit), least = constantF32(b, -swiglu->limit);
    Value g = arith::MinimumFOp::create(b, args[1], limit);
    Value u = arith::MaximumFOp::create(b, arith::MinimumFOp::create(b, args[0], limit), least);
    Value scaled = arith::MulFOp::create(b, g, constantF32(b, -swiglu->alpha));
    Value denominator = arith::AddFOp::create(b, constantF32(b, 1.0f), math::ExpOp::create(b, scaled));
    Value shifted = arith::AddFOp::create(b, u, constantF32(b, swiglu->offset));
    return arith::MulFOp::create(b, arith::DivFOp::create(b, g, denominator), shifted);
  });
}

std::pair<Value, Value> hone::splitFusedRows(LocBuilder &builder, MoeOp op, Value rows) {
  Sizes sizes = tensor::getMixedSizes(builder, builder.getLoc(), rows);
  bool isAlternate = op.getFused() == FusedRows::Alternate;
  auto take = [&](int64_t first) -> Value {
    SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0)),
        steps(sizes.size(), builder.getIndexAttr(1));
    SmallVector<OpFoldResult> part = sizes;
    part.back() = builder.getIndexAttr(op.getHiddenSize());
    offsets.back() = builder.getIndexAttr(first);
    steps.back() = builder.getIndexAttr(isAlternate ? 2 : 1);
    return tensor::ExtractSliceOp::create(builder, rows, offsets, part, steps);
  };
  Value gate = take(0);
  return {gate, take(isAlternate ? 1 : op.getHiddenSize())};
}

static Value decomposeGatedMlp(LocBuilder &builder, GatedMlpOp op) {
  Value x = op.getX();
  Type elements = op.getX().getType().getElementType();
  Value gate = buildLinear(builder, x, op.getGate(), op.getGateBias());
  Value up = buildLinear(builder, x, op.getUp(), op.getUpBias());
  Value hidden = buildHidden(builder, op.getActivation(), up, gate, elements);
  return roundTo(builder, buildLinear(builder, hidden, op.getDown(), op.getDownBias()), elements);
}

static Value decomposeMlp(LocBuilder &builder, MlpOp op) {
  Type elements = op.getX().getType().getElementType();
  Value up = buildLinear(builder, op.getX(), op.getUp(), op.getUpBias());
  Value hidden = buildHidden(builder, op.getActivation(), up, /*gate=*/nullptr, elements);
  return roundTo(builder, buildLinear(builder, hidden, op.getDown(), op.getDownBias()), elements);
}

//===- moe --------------------------------------------------------------------------------------------------------===//

namespace {

/// A layer of the experts: `rows` of the matrix are an expert's, of which `count` are read, `step` apart from `first` on.
struct ExpertLayer {
  Value weights, bias;
  int64_t rows, first, step, count;
};

/// Loops are those of expert_ids `[…, T]`, then a row of an expert's matrix, then a column.
class MoeBuilder {
public:
  MoeBuilder(LocBuilder &builder, MoeOp op)
      : builder(builder), op(op), f32(builder.getF32Type()),
        sizes(tensor::getMixedSizes(builder, builder.getLoc(), op.getExpertIds())),
        lastExpert(arith::ConstantIndexOp::create(builder, op.getExpertCount() - 1)) {
    row = sizes.size();
    chosen = loopRange(0, row);
  }
  Value build();

private:
  Value buildProducts(Value x, ArrayRef<int64_t> leading, const ExpertLayer &layer);
  Value buildSum(Value blocks);

  /// The expert's number, or that of the last expert if there is none of this number.
  Value clamp(LocBuilder &b, Value id) {
    return arith::MinUIOp::create(b, arith::IndexCastOp::create(b, b.getIndexType(), id), lastExpert);
  }

  LocBuilder &builder;
  MoeOp op;
  Type f32;
  Sizes sizes;
  Value lastExpert;
  int64_t row;
  SmallVector<int64_t> chosen;
};

} // namespace

static Value buildMultiple(LocBuilder &b, Value index, int64_t factor, Value plus) {
  Value product = arith::MulIOp::create(b, index, arith::ConstantIndexOp::create(b, factor));
  return arith::AddIOp::create(b, product, plus);
}

/// The f32 products `[…, T, count]` of the rows of x, rounded if the encoding of the weights says so, with rows of each chosen
/// expert, plus the bias unless that is null.
Value MoeBuilder::buildProducts(Value x, ArrayRef<int64_t> leading, const ExpertLayer &layer) {
  EncodedReader weights(builder, layer.weights);
  x = roundActivations(builder, x, layer.weights);
  Sizes resultSizes = sizes;
  resultSizes.push_back(builder.getIndexAttr(layer.count));
  int64_t column = row + 1;
  auto rowOf = [&](LocBuilder &b) {
    return buildMultiple(b, linalg::IndexOp::create(b, row), layer.step,
                         arith::ConstantIndexOp::create(b, layer.first));
  };
  SmallVector<Operand> operands{{x, with(leading, {column})}, {op.getExpertIds(), chosen}};
  Value sum = buildReduce(builder, Reduction::Sum, resultSizes, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    Value place[] = {buildMultiple(b, clamp(b, args[1]), layer.rows, rowOf(b)), linalg::IndexOp::create(b, column)};
    return arith::MulFOp::create(b, args[0], convertFloat(b, weights.read(b, place), f32));
  });
  if (!layer.bias)
    return sum;
  operands = {{sum, loopRange(0, column)}, {op.getExpertIds(), chosen}};
  return buildMap(builder, resultSizes, f32, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    SmallVector<Value> place{clamp(b, args[1]), rowOf(b)};
    return arith::AddFOp::create(b, args[0], extractF32(b, layer.bias, place));
  });
}

/// The sum of the blocks `[…, T, K]` of the chosen experts that exist, each times its weight.
Value MoeBuilder::buildSum(Value blocks) {
  int64_t leading = row - 1, result = leading, choice = row;
  Sizes resultSizes = getResultSizes(builder, op);
  SmallVector<int64_t> perChoice = with(loopRange(0, leading), {choice});
  SmallVector<Operand> operands{
      {blocks, with(perChoice, {result})}, {op.getExpertWeights(), perChoice}, {op.getExpertIds(), perChoice}};
  return buildReduce(builder, Reduction::Sum, resultSizes, operands, [&](LocBuilder &b, ValueRange args) -> Value {
    Value id = arith::IndexCastOp::create(b, b.getIndexType(), args[2]);
    Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, id, lastExpert);
    Value weighted = arith::MulFOp::create(b, args[0], args[1]);
    return arith::SelectOp::create(b, exists, weighted, constantF32(b, 0.0f));
  });
}

Value MoeBuilder::build() {
  Type elements = op.getX().getType().getElementType();
  ArrayRef<int64_t> leading = ArrayRef(chosen).drop_back();
  int64_t width = op.getHiddenSize(), outputs = op.getUp().getType().getDimSize(1);
  ExpertLayer up{op.getUp(), op.getUpBias(), width, 0, 1, width};
  ExpertLayer gate{op.getGate(), op.getGateBias(), width, 0, 1, width};
  if (std::optional<FusedRows> fused = op.getFused()) {
    bool isAlternate = *fused == FusedRows::Alternate;
    gate = {op.getUp(), op.getUpBias(), 2 * width, 0, isAlternate ? 2 : 1, width};
    up = gate;
    up.first = isAlternate ? 1 : width;
  }
  Value upRows = buildProducts(op.getX(), leading, up);
  Value gateRows = gate.weights ? buildProducts(op.getX(), leading, gate) : Value();
  Value hidden = buildExpertHidden(builder, op, upRows, gateRows, elements);
  Value blocks = buildProducts(hidden, chosen, {op.getDown(), op.getDownBias(), outputs, 0, 1, outputs});
  return roundTo(builder, buildSum(blocks), elements);
}

static Value decomposeMoe(LocBuilder &builder, MoeOp op) { return MoeBuilder(builder, op).build(); }

void hone::addMlpDecompositions(RewritePatternSet &patterns) {
  addDecomposition<GatedMlpOp>(patterns, decomposeGatedMlp);
  addDecomposition<MlpOp>(patterns, decomposeMlp);
  addDecomposition<MoeOp>(patterns, decomposeMoe);
}
