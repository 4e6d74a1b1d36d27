// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-integrate-gradients: @path_step of @gradients, which adds up gradients along a line between two values of the weights.

#include "EntryState.h"
#include "Products.h"

#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_INTEGRATEGRADIENTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

namespace {

constexpr llvm::StringLiteral kStep = "path_step", kState = "path", kEnd = ".path_end", kPosition = "position",
                              kShare = "share", kSlope = "slope", kCannot = "cannot integrate gradients";

/// Makes a step along the path of @gradients, in place.
class PathStep {
public:
  explicit PathStep(func::FuncOp function)
      : function(function), symbols(function->getParentOfType<ModuleOp>()), state(function, kState, kStep) {}

  /// Fails after an error.
  LogicalResult build();
  int64_t numIntegrals = 0;

private:
  struct Weight {
    ParamOp param;
    Value begin, end, gradient;
  };

  LogicalResult findWeights();
  LogicalResult addWeight(ParamOp param, ParamOp end, Value gradient);
  Value buildElements(LocBuilder &b, ArrayRef<Value> operands, Step step);
  void buildIntegral(LocBuilder &b, Weight &weight, Value share);

  func::FuncOp function;
  SymbolTable symbols;
  EntryState state;
  SmallVector<Weight> weights;
  Value position;
};

} // namespace

/// The f32 tensor of what `step` gives for the elements of tensors of one shape.
Value PathStep::buildElements(LocBuilder &b, ArrayRef<Value> operands, Step step) {
  auto type = cast<RankedTensorType>(operands.front().getType());
  SmallVector<Operand> all;
  for (Value operand : operands)
    all.push_back({operand, loopRange(0, type.getRank())});
  return buildMap(b, tensor::getMixedSizes(b, b.getLoc(), operands.front()), b.getF32Type(), all, step);
}

/// Reads the weight where it is on the path: w + s (e - w).
LogicalResult PathStep::addWeight(ParamOp param, ParamOp end, Value gradient) {
  makePlain(param);
  makePlain(end);
  if (param.getTensorType() != end.getTensorType() || !param.getTensorType().getElementType().isF32() ||
      param.getTensorType().getEncoding())
    return end.emitError() << kCannot << ": expected @" << end.getSymName() << " and @" << param.getSymName()
                           << " to be of the same type of f32 without an encoding, but got " << end.getTensorType()
                           << " and " << param.getTensorType();
  LocBuilder b(param.getLoc(), function.getContext());
  b.setInsertionPointAfter(position.getDefiningOp());
  auto read = GetParamOp::create(b, param.getTensorType(), param.getSymName());
  Value last = GetParamOp::create(b, end.getTensorType(), end.getSymName());
  Value at = buildElements(b, {read, last}, [&](LocBuilder &nested, ValueRange args) -> Value {
    Value whole = arith::SubFOp::create(nested, args[1], args[0]);
    return arith::AddFOp::create(nested, args[0], arith::MulFOp::create(nested, position, whole));
  });
  replaceReads(function, param, at, read);
  weights.push_back({param, read, last, gradient});
  return success();
}

LogicalResult PathStep::findWeights() {
  for (unsigned number = 1; number < function.getNumResults(); ++number) {
    StringRef name = state.getResultName(number);
    auto param = name.consume_back(kGradientEnding) ? symbols.lookup<ParamOp>(name) : ParamOp();
    auto end = param ? symbols.lookup<ParamOp>((name + kEnd).str()) : ParamOp();
    if (end && failed(addWeight(param, end, state.getReturn().getOperand(number))))
      return failure();
  }
  if (weights.empty())
    return function.emitError() << kCannot << ": no parameter P with a gradient has a parameter P" << kEnd
                                << " where its path ends";
  return success();
}

/// Adds share · (e - w) · g to what earlier steps have left.
void PathStep::buildIntegral(LocBuilder &b, Weight &weight, Value share) {
  uint64_t slot = state.addSlot(weight.param.getSymName(), weight.param.getTensorType());
  SmallVector<Value> inputs = {weight.begin, weight.end, weight.gradient};
  auto add = [&](LocBuilder &nested, ValueRange held, ValueRange args) {
    Value whole = arith::SubFOp::create(nested, args[1], args[0]);
    Value part = arith::MulFOp::create(nested, arith::MulFOp::create(nested, share, whole), args[2]);
    return SmallVector<Value>{arith::AddFOp::create(nested, held.front(), part)};
  };
  state.replace(b, slot, updateElements(b, state.view(slot), inputs, add).front());
  ++numIntegrals;
}

LogicalResult PathStep::build() {
  if (failed(state.begin(kCannot)))
    return failure();
  Value positionInput = state.addNumber(kPosition), shareInput = state.addNumber(kShare);
  LocBuilder b(function.getLoc(), function.getContext());
  b.setInsertionPointToStart(&function.getBody().front());
  Value share = tensor::ExtractOp::create(b, shareInput, ValueRange());
  position = tensor::ExtractOp::create(b, positionInput, ValueRange());
  if (failed(findWeights()))
    return failure();
  Value loss = state.getReturn().getOperand(0);
  LocBuilder end = state.atEnd();
  Value slope = constantF64(end, 0);
  for (Weight &weight : weights) {
    end.setLoc(weight.param.getLoc());
    buildIntegral(end, weight, share);
    Value part =
        sumAll(end, {weight.begin, weight.end, weight.gradient}, [](LocBuilder &nested, ValueRange args) -> Value {
          return arith::MulFOp::create(nested, arith::SubFOp::create(nested, args[1], args[0]), args[2]);
        });
    slope = arith::AddFOp::create(end, slope, tensor::ExtractOp::create(end, part, ValueRange()));
  }
  Value result = tensor::FromElementsOp::create(end, RankedTensorType::get({}, end.getF64Type()), slope);
  state.finish({{loss, kLossName}, {result, kSlope}});
  return success();
}

namespace {
struct IntegrateGradients : impl::IntegrateGradientsBase<IntegrateGradients> {
  using IntegrateGradientsBase::IntegrateGradientsBase;

  void runOnOperation() override {
    if (failed(addStep()))
      signalPassFailure();
  }

private:
  LogicalResult addStep();
};
} // namespace

LogicalResult IntegrateGradients::addStep() {
  ModuleOp module = getOperation();
  FailureOr<func::FuncOp> gradients = findGradients(module, kCannot);
  if (failed(gradients))
    return failure();
  PathStep step(*gradients);
  if (failed(step.build()))
    return failure();
  numIntegrals += step.numIntegrals;
  remark::passed(gradients->getLoc(),
                 remark::RemarkOpts::name("IntegratedGradients").category("hone-integrate-gradients"))
      << ("the path goes through " + Twine(step.numIntegrals) + " parameters").str();
  return success();
}

} // namespace hone
