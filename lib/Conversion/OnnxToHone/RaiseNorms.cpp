// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RMS and layer normalisation of the last dimension, as one operator or spelled out.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_RAISENORMS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-norms";

namespace {

/// A normalised row before its weight: what `x` is and how far it is spelled out.
struct Normalized {
  Value x;
  double epsilon = 0;
  bool centred = false; // layer norm: the mean is subtracted first
};

class NormRaiser {
public:
  explicit NormRaiser(func::FuncOp function) : function(function), analysis(function) {}
  unsigned run();

private:
  bool raiseOperator(Operation *op);
  bool raiseSkip(Operation *op);
  bool raiseSpelledOut(Operation *op);
  std::optional<Normalized> matchNormalized(Value value);
  std::optional<Normalized> matchRootMeanSquare(Value numerator, Value denominator, bool isReciprocal);
  Value matchSquare(Value value);
  std::optional<Value> matchLastMean(Value value);
  bool isRowWeight(Value weight, Value x);
  bool isLastAxis(Operation *op, Value x);
  void emit(Operation *op, Value result, const Normalized &norm, Value weight, Value bias, bool unitOffset);
  Value ones(OpBuilder &b, Location loc, Value x);

  func::FuncOp function;
  SymbolicAnalysis analysis;
  unsigned raised = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// What a norm is made of
//===----------------------------------------------------------------------===//

bool NormRaiser::isRowWeight(Value weight, Value x) {
  return isFloat(weight) && isFloat(x) && getRank(weight) == 1 && getRank(x) >= 1 &&
         !ShapedType::isDynamic(getLastSize(weight)) && getLastSize(weight) == getLastSize(x);
}

bool NormRaiser::isLastAxis(Operation *op, Value x) {
  int64_t axis = getInteger(op, "axis", -1);
  return axis == -1 || axis == getRank(x) - 1;
}

/// `x` of Pow(x, 2) or Mul(x, x).
Value NormRaiser::matchSquare(Value value) {
  value = skipCasts(value);
  if (auto power = matchWithConstant(value, "Pow", analysis); power && power->constant == 2)
    return power->operand;
  Operation *product = getDefiningOp(value, "Mul");
  if (product && product->getOperand(0) == product->getOperand(1))
    return product->getOperand(0);
  return {};
}

/// What the mean over the last dimension, kept as 1, is taken of.
std::optional<Value> NormRaiser::matchLastMean(Value value) {
  Operation *mean = getDefiningOp(skipCasts(value), "ReduceMean");
  if (!mean || getInteger(mean, "keepdims", 1) == 0)
    return std::nullopt;
  auto axes = getIntegers(mean, "axes");
  if (Value operand = getOperand(mean, 1); !axes && operand)
    axes = analysis.getConstants(operand);
  int64_t rank = getRank(mean->getOperand(0));
  if (!axes || axes->size() != 1 || (axes->front() != -1 && axes->front() != rank - 1))
    return std::nullopt;
  return mean->getOperand(0);
}

/// numerator / sqrt(mean(square) + epsilon), where the denominator is given, or its reciprocal.
std::optional<Normalized> NormRaiser::matchRootMeanSquare(Value numerator, Value denominator, bool isReciprocal) {
  denominator = skipCasts(denominator);
  Value inner;
  if (isReciprocal) {
    if (Operation *op = getDefiningOp(denominator, "Reciprocal"))
      inner = op->getOperand(0);
    else if (Operation *op = getDefiningOp(denominator, "Div"); op && analysis.getSplat(op->getOperand(0)) == 1)
      inner = op->getOperand(1);
    else if (auto power = matchWithConstant(denominator, "Pow", analysis); power && power->constant == -0.5)
      inner = {}; // the sum itself is below
    else
      return std::nullopt;
  } else {
    inner = denominator;
  }
  Value sum;
  if (inner) {
    inner = skipCasts(inner);
    if (Operation *root = getDefiningOp(inner, "Sqrt"))
      sum = root->getOperand(0);
    else if (auto power = matchWithConstant(inner, "Pow", analysis); power && power->constant == 0.5)
      sum = power->operand;
    else
      return std::nullopt;
  } else {
    sum = matchWithConstant(denominator, "Pow", analysis)->operand;
  }
  auto withEpsilon = matchWithConstant(skipCasts(sum), "Add", analysis);
  if (!withEpsilon || !(withEpsilon->constant >= 0))
    return std::nullopt;
  auto squared = matchLastMean(withEpsilon->operand);
  Value x = squared ? matchSquare(*squared) : Value();
  if (!x || skipCasts(x) != skipCasts(numerator))
    return std::nullopt;
  return Normalized{skipCasts(x), withEpsilon->constant, false};
}

std::optional<Normalized> NormRaiser::matchNormalized(Value value) {
  value = skipCasts(value);
  std::optional<Normalized> norm;
  if (Operation *product = getDefiningOp(value, "Mul")) {
    norm = matchRootMeanSquare(product->getOperand(0), product->getOperand(1), /*isReciprocal=*/true);
    if (!norm)
      norm = matchRootMeanSquare(product->getOperand(1), product->getOperand(0), /*isReciprocal=*/true);
  } else if (Operation *quotient = getDefiningOp(value, "Div")) {
    norm = matchRootMeanSquare(quotient->getOperand(0), quotient->getOperand(1), /*isReciprocal=*/false);
  }
  if (!norm)
    return std::nullopt;
  // The row that is normalised may itself be what is left after its mean was taken off.
  if (Operation *centred = getDefiningOp(norm->x, "Sub")) {
    auto mean = matchLastMean(centred->getOperand(1));
    if (mean && skipCasts(*mean) == skipCasts(centred->getOperand(0)))
      return Normalized{skipCasts(centred->getOperand(0)), norm->epsilon, true};
  }
  return norm;
}

//===----------------------------------------------------------------------===//
// Raising
//===----------------------------------------------------------------------===//

Value NormRaiser::ones(OpBuilder &b, Location loc, Value x) {
  auto type = RankedTensorType::get({getLastSize(x)}, cast<RankedTensorType>(x.getType()).getElementType());
  return OnnxBuilder(b, loc).constant(DenseElementsAttr::get(type, b.getOneAttr(type.getElementType())));
}

void NormRaiser::emit(Operation *op, Value result, const Normalized &norm, Value weight, Value bias, bool unitOffset) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (!weight)
    weight = ones(b, loc, norm.x);
  auto epsilon = b.getF32FloatAttr(norm.epsilon);
  Value raisedNorm;
  if (norm.centred || bias)
    raisedNorm = LayerNormOp::create(b, loc, norm.x.getType(), norm.x, weight, bias, epsilon);
  else
    raisedNorm =
        RmsNormOp::create(b, loc, norm.x.getType(), norm.x, weight, epsilon, unitOffset ? b.getUnitAttr() : UnitAttr());
  remarkRaised(loc, kPass, norm.centred || bias ? "LayerNorm" : "RmsNorm") << "raised from " << onnxir::getOpType(op);
  replace(result, raisedNorm);
  ++raised;
}

/// LayerNormalization, RMSNormalization and SimplifiedLayerNormalization: (x, weight, bias).
bool NormRaiser::raiseOperator(Operation *op) {
  bool isLayerNorm = isOp(op, "LayerNormalization");
  if (!isLayerNorm && !isOp(op, "RMSNormalization") && !isOp(op, "SimplifiedLayerNormalization", kMicrosoft))
    return false;
  Value x = op->getOperand(0), weight = op->getOperand(1), bias = getOperand(op, 2);
  bool onlyFirst = llvm::all_of(op->getResults().drop_front(), [](Value result) { return result.use_empty(); });
  if (!onlyFirst || !isLastAxis(op, x) || !isRowWeight(weight, x) || (bias && !isRowWeight(bias, x))) {
    remarkMissed(op->getLoc(), kPass, onnxir::getOpType(op))
        << "normalises more than the last dimension, or its mean is used";
    return false;
  }
  emit(op, op->getResult(0), {x, getReal(op, "epsilon", 1e-5), isLayerNorm}, weight, bias, false);
  return true;
}

/// Skip[Simplified]LayerNormalization: (input, skip, weight, beta, bias) or (input, skip, weight, bias), whose fourth result
/// is the sum that is normalised.
bool NormRaiser::raiseSkip(Operation *op) {
  bool isLayerNorm = isOp(op, "SkipLayerNormalization", kMicrosoft);
  if (!isLayerNorm && !isOp(op, "SkipSimplifiedLayerNormalization", kMicrosoft))
    return false;
  Value x = op->getOperand(0), skip = op->getOperand(1), weight = op->getOperand(2);
  Value beta = isLayerNorm ? getOperand(op, 3) : Value(), bias = getOperand(op, isLayerNorm ? 4 : 3);
  bool statistics = false;
  for (unsigned i : {1u, 2u})
    if (Value result = getResult(op, i); result && !result.use_empty())
      statistics = true;
  if (statistics || !isRowWeight(weight, x) || getRank(skip) < 1 || (beta && !isRowWeight(beta, x))) {
    remarkMissed(op->getLoc(), kPass, onnxir::getOpType(op)) << "its statistics are used, or its weight is no row";
    return false;
  }
  OpBuilder b(op);
  OnnxBuilder onnx(b, op->getLoc());
  Value sum = onnx.add(x, skip);
  sum.setType(x.getType());
  if (bias)
    sum = onnx.create("Add", {sum, bias}, x.getType());
  if (Value result = getResult(op, 3))
    replace(result, sum);
  emit(op, op->getResult(0), {sum, getReal(op, "epsilon", isLayerNorm ? 1e-12 : 1e-6), isLayerNorm}, weight, beta,
       false);
  return true;
}

/// Mul(weight, normalised), then Add(bias): the weight may be spelled 1 + w.
bool NormRaiser::raiseSpelledOut(Operation *op) {
  if (!isOp(op, "Mul"))
    return false;
  for (unsigned side : {0u, 1u}) {
    Value weight = skipCasts(op->getOperand(side));
    auto norm = matchNormalized(op->getOperand(1 - side));
    if (!norm || !isFloat(norm->x) || getRank(norm->x) != getRank(op->getResult(0)))
      continue;
    bool unitOffset = false;
    if (auto sum = matchWithConstant(weight, "Add", analysis);
        sum && sum->constant == 1 && isRowWeight(skipCasts(sum->operand), norm->x)) {
      unitOffset = !norm->centred;
      weight = unitOffset ? skipCasts(sum->operand) : weight;
    }
    if (!isRowWeight(weight, norm->x))
      continue;
    Value result = op->getResult(0), bias;
    if (norm->centred && result.hasOneUse())
      if (Operation *user = *result.getUsers().begin(); isOp(user, "Add")) {
        Value other = user->getOperand(user->getOperand(0) == result ? 1 : 0);
        if (isRowWeight(other, norm->x) && isWeight(other)) {
          bias = other;
          op = user;
        }
      }
    emit(op, op->getResult(0), *norm, weight, bias, unitOffset);
    return true;
  }
  return false;
}

unsigned NormRaiser::run() {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (onnxir::isOnnxOp(op))
      (void)(raiseOperator(op) || raiseSkip(op) || raiseSpelledOut(op));
  eraseDead(function);
  return raised;
}

namespace {
struct RaiseNorms : impl::RaiseNormsBase<RaiseNorms> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      numNorms += NormRaiser(function).run();
  }
};
} // namespace

} // namespace hone::raising
