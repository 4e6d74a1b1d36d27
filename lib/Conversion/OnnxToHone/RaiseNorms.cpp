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
  bool raiseFactored(Operation *op);
  std::optional<Value> matchShift(Value shift, Value scale, Value x);
  bool isScaledMean(Value value, Value scale, Value x, bool negated);
  std::optional<Normalized> matchNormalized(Value value);
  std::optional<Normalized> matchDeviation(Value root, bool isReciprocal);
  std::optional<Normalized> matchMeanSquare(Value value);
  std::optional<WithConstant> matchRoot(Value root, bool isReciprocal);
  bool isCentred(Value value, Value x);
  Value matchSquare(Value value);
  std::optional<Value> matchLastMean(Value value);
  bool isRowWeight(Value weight, Value x);
  Value getRow(OpBuilder &b, Value weight, Value x);
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

/// A weight of one row, which may have dimensions of 1 before, as `isRowWeight` wants it; null where it is none.
Value NormRaiser::getRow(OpBuilder &b, Value weight, Value x) {
  RankedTensorType type = getRankedType(weight);
  if (isRowWeight(weight, x) || !type || !isWeight(weight))
    return isRowWeight(weight, x) ? weight : Value();
  if (type.getRank() < 1 || !type.hasStaticShape() || type.getNumElements() != getLastSize(x) ||
      type.getShape().back() != getLastSize(x) || !isFloat(weight))
    return {};
  OnnxBuilder onnx(b, weight.getLoc());
  auto row = RankedTensorType::get({getLastSize(x)}, type.getElementType());
  if (auto value = weight.getDefiningOp()->getAttrOfType<DenseElementsAttr>("value"))
    return onnx.constant(value.reshape(row));
  return onnx.reshape(weight, row.getShape(), row.getShape());
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
  value = skipCasts(value);
  constexpr int64_t kPooledRank = 3; // a pool over all that follows channels is one over the last dimension
  if (Operation *pool = getDefiningOp(value, "GlobalAveragePool"); pool && getRank(value) == kPooledRank)
    return pool->getOperand(0);
  Operation *mean = getDefiningOp(value, "ReduceMean");
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

/// Whether `value` is x - mean(x), of which x is given.
bool NormRaiser::isCentred(Value value, Value x) {
  Operation *difference = getDefiningOp(skipCasts(value), "Sub");
  auto mean = difference ? matchLastMean(difference->getOperand(1)) : std::nullopt;
  return mean && skipCasts(*mean) == x && skipCasts(difference->getOperand(0)) == x;
}

/// sum + epsilon of sqrt(sum + epsilon), or of its reciprocal.
std::optional<WithConstant> NormRaiser::matchRoot(Value root, bool isReciprocal) {
  root = skipCasts(root);
  auto power = matchWithConstant(root, "Pow", analysis);
  if (isReciprocal && power && power->constant == -0.5)
    return matchWithConstant(skipCasts(power->operand), "Add", analysis);
  if (isReciprocal) {
    Operation *reciprocal = getDefiningOp(root, "Reciprocal"), *quotient = getDefiningOp(root, "Div");
    if (quotient && analysis.getSplat(quotient->getOperand(0)) != 1)
      return std::nullopt;
    if (!reciprocal && !quotient)
      return std::nullopt;
    root = skipCasts(reciprocal ? reciprocal->getOperand(0) : quotient->getOperand(1));
    power = matchWithConstant(root, "Pow", analysis);
  }
  if (Operation *op = getDefiningOp(root, "Sqrt"))
    return matchWithConstant(skipCasts(op->getOperand(0)), "Add", analysis);
  if (power && power->constant == 0.5)
    return matchWithConstant(skipCasts(power->operand), "Add", analysis);
  return std::nullopt;
}

/// The row whose mean square `value` is, or whose variance: the mean square of x - mean(x), or that of x less the square of its mean,
/// which rounding may make negative and some models then limit.
std::optional<Normalized> NormRaiser::matchMeanSquare(Value value) {
  value = skipCasts(value);
  if (Operation *limited = getDefiningOp(value, "Max"))
    if (auto limit = matchWithConstant(value, "Max", analysis); limit && limit->constant == 0)
      value = skipCasts(limited->getOperand(0));
  if (Operation *difference = getDefiningOp(value, "Sub")) {
    auto squared = matchLastMean(difference->getOperand(0));
    Value x = squared ? skipCasts(matchSquare(*squared)) : Value(), mean = matchSquare(difference->getOperand(1));
    auto of = mean ? matchLastMean(mean) : std::nullopt;
    if (!x || !of || skipCasts(*of) != x)
      return std::nullopt;
    return Normalized{x, 0, true};
  }
  auto squared = matchLastMean(value);
  Value x = squared ? matchSquare(*squared) : Value();
  if (!x)
    return std::nullopt;
  x = skipCasts(x);
  // The row that is normalised may itself be what is left after its mean was taken off.
  if (Operation *difference = getDefiningOp(x, "Sub"))
    if (Value whole = skipCasts(difference->getOperand(0)); isCentred(x, whole))
      return Normalized{whole, 0, true};
  return Normalized{x, 0, false};
}

/// What `root` is the root of, or with `isReciprocal` one over that.
std::optional<Normalized> NormRaiser::matchDeviation(Value root, bool isReciprocal) {
  auto withEpsilon = matchRoot(root, isReciprocal);
  if (!withEpsilon || !(withEpsilon->constant >= 0))
    return std::nullopt;
  auto norm = matchMeanSquare(withEpsilon->operand);
  if (norm)
    norm->epsilon = withEpsilon->constant;
  return norm;
}

std::optional<Normalized> NormRaiser::matchNormalized(Value value) {
  value = skipCasts(value);
  Operation *op = value.getDefiningOp();
  if (!op || (!isOp(op, "Mul") && !isOp(op, "Div")))
    return std::nullopt;
  bool isProduct = isOp(op, "Mul");
  for (unsigned side : {0u, 1u}) {
    auto norm = side == 0 || isProduct ? matchDeviation(op->getOperand(1 - side), isProduct) : std::nullopt;
    if (!norm)
      continue;
    Value numerator = skipCasts(op->getOperand(side));
    if (norm->centred ? isCentred(numerator, norm->x) : numerator == norm->x)
      return norm;
  }
  return std::nullopt;
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

/// x * scale + (bias - mean(x) * scale) with scale = weight / deviation(x), as TensorFlow writes it; the mean may be negated instead.
bool NormRaiser::raiseFactored(Operation *op) {
  if (!isOp(op, "Add"))
    return false;
  for (unsigned side : {0u, 1u}) {
    Operation *product = getDefiningOp(op->getOperand(side), "Mul");
    if (!product)
      continue;
    for (unsigned factor : {0u, 1u}) {
      Value x = skipCasts(product->getOperand(factor)), scale = product->getOperand(1 - factor);
      Operation *weighted = getDefiningOp(scale, "Mul");
      if (!weighted)
        continue;
      for (unsigned which : {0u, 1u}) {
        auto norm = matchDeviation(weighted->getOperand(which), /*isReciprocal=*/true);
        auto shift =
            norm && norm->centred && norm->x == x ? matchShift(op->getOperand(1 - side), scale, x) : std::nullopt;
        if (!shift || !isFloat(x) || getRank(x) != getRank(op->getResult(0)))
          continue;
        OpBuilder b(op);
        Value weight = getRow(b, weighted->getOperand(1 - which), x), bias = *shift ? getRow(b, *shift, x) : Value();
        if (!weight || (*shift && !bias))
          continue;
        emit(op, op->getResult(0), *norm, weight, bias, false);
        return true;
      }
    }
  }
  return false;
}

/// Whether `value` is mean(x) * scale, or with `negated` -mean(x) * scale.
bool NormRaiser::isScaledMean(Value value, Value scale, Value x, bool negated) {
  Operation *product = getDefiningOp(value, "Mul");
  if (!product || (product->getOperand(0) != scale && product->getOperand(1) != scale))
    return false;
  Value mean = product->getOperand(product->getOperand(0) == scale ? 1 : 0);
  if (negated) {
    Operation *negation = getDefiningOp(mean, "Neg");
    mean = negation ? negation->getOperand(0) : Value();
  }
  auto of = mean ? matchLastMean(mean) : std::nullopt;
  return of && skipCasts(*of) == x;
}

/// The bias of bias - mean(x) * scale, or of -mean(x) * scale + bias, null in -mean(x) * scale alone.
std::optional<Value> NormRaiser::matchShift(Value shift, Value scale, Value x) {
  if (isScaledMean(shift, scale, x, /*negated=*/true))
    return Value();
  if (Operation *difference = getDefiningOp(shift, "Sub"))
    return isScaledMean(difference->getOperand(1), scale, x, /*negated=*/false)
               ? std::optional<Value>(difference->getOperand(0))
               : std::nullopt;
  if (Operation *sum = getDefiningOp(shift, "Add"))
    for (unsigned side : {0u, 1u})
      if (isScaledMean(sum->getOperand(side), scale, x, /*negated=*/true))
        return sum->getOperand(1 - side);
  return std::nullopt;
}

unsigned NormRaiser::run() {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (onnxir::isOnnxOp(op))
      (void)(raiseOperator(op) || raiseSkip(op) || raiseSpelledOut(op) || raiseFactored(op));
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
