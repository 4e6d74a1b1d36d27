// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-add-optimizer: @train_step of @gradients. Parameters and moments are slots of a state that each call replaces; what
// optimizers compute of them is in UpdateParameter.cpp.

#include "EntryState.h"
#include "UpdateParameter.h"

#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_ADDOPTIMIZER
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

namespace {

constexpr llvm::StringLiteral kStep = "train_step", kState = "training", kRate = "learning_rate",
                              kNorm = "gradient_norm", kEvaluate = "evaluate", kCannot = "cannot add an optimizer";

/// Makes a step of @gradients, in place.
class TrainingStep {
public:
  TrainingStep(func::FuncOp function, const AddOptimizerOptions &options)
      : function(function), symbols(function->getParentOfType<ModuleOp>()), options(options),
        state(function, kState, kStep) {}

  /// Fails after an error.
  LogicalResult build();
  int64_t numUpdates = 0;

private:
  InFlightDiagnostic fail() { return function.emitError() << kCannot << ": "; }
  FailureOr<ParamOp> findParam(unsigned result);
  LogicalResult findParameters();
  UpdateFactors buildFactors(LocBuilder &b, Value norm);
  Value advance(LocBuilder &b, StringRef name, double decay);
  void buildUpdates(const UpdateFactors &factors);
  void makeEvaluation();

  struct Parameter {
    ParamOp param;
    Value value, gradient;
    uint64_t slot;
  };

  func::FuncOp function;
  SymbolTable symbols;
  const AddOptimizerOptions &options;
  EntryState state;
  SmallVector<Parameter> parameters;
  Value rate;
  func::FuncOp evaluation; // what computes the loss alone, or null
};

} // namespace

//===- Parameters -------------------------------------------------------------------------------------------------===//

/// The parameter whose gradient result `number` is.
FailureOr<ParamOp> TrainingStep::findParam(unsigned number) {
  StringRef name = state.getResultName(number);
  auto param = name.consume_back(kGradientEnding) ? symbols.lookup<ParamOp>(name) : ParamOp();
  if (!param)
    return fail() << "expected result " << number << " to be the gradient of a parameter, but got '"
                  << state.getResultName(number) << "'";
  RankedTensorType type = param.getTensorType();
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  if (!type.getElementType().isF32() || (type.getEncoding() && !(stored && stored.getType().isF32())))
    return fail() << "unsupported parameter '" << name << "' of type " << type
                  << "; supported: parameters that are stored as f32";
  return param;
}

LogicalResult TrainingStep::findParameters() {
  for (unsigned number = 1; number < function.getNumResults(); ++number) {
    FailureOr<ParamOp> param = findParam(number);
    if (failed(param))
      return failure();
    makePlain(*param);
    uint64_t slot =
        state.addSlot(param->getSymName(), param->getTensorType(), FlatSymbolRefAttr::get(param->getSymNameAttr()));
    Value value = state.view(slot);
    replaceReads(function, *param, value);
    if (evaluation)
      replaceReads(evaluation, *param, state.viewIn(evaluation, slot));
    parameters.push_back({*param, value, state.getReturn().getOperand(number), slot});
  }
  return success();
}

//===- The update -------------------------------------------------------------------------------------------------===//

/// 1 - decay^t at step t, which is a mean of ones that begins as 0.
Value TrainingStep::advance(LocBuilder &b, StringRef name, double decay) {
  uint64_t slot = state.addSlot(name, RankedTensorType::get({}, b.getF64Type()));
  Value before = tensor::ExtractOp::create(b, state.view(slot), ValueRange());
  Value now = mixF64(b, before, arith::ConstantOp::create(b, b.getF64FloatAttr(1.0)), decay);
  state.replace(b, slot, tensor::FromElementsOp::create(b, state.getType(slot), now));
  return now;
}

UpdateFactors TrainingStep::buildFactors(LocBuilder &b, Value norm) {
  UpdateFactors factors;
  factors.rate = tensor::ExtractOp::create(b, rate, ValueRange());
  factors.clip = options.maxNorm > 0 ? buildClipFactor(b, norm, options.maxNorm) : Value();
  if (options.optimizer == kAdamW) {
    factors.firstCorrection = advance(b, "adamw.first_correction", options.beta1);
    factors.secondCorrection = advance(b, "adamw.second_correction", options.beta2);
  }
  return factors;
}

void TrainingStep::buildUpdates(const UpdateFactors &factors) {
  LocBuilder b = state.atEnd();
  for (Parameter &parameter : parameters) {
    b.setLoc(parameter.param.getLoc());
    SmallVector<uint64_t> places = {parameter.slot};
    SmallVector<Value> operands = {parameter.value, parameter.gradient};
    for (StringRef moment : listMoments(options.optimizer)) {
      places.push_back(state.addSlot(parameter.param.getSymName() + "." + moment, parameter.param.getTensorType()));
      operands.push_back(state.view(places.back()));
    }
    for (auto [slot, value] : llvm::zip_equal(places, buildUpdate(b, options, factors, operands)))
      state.replace(b, slot, value);
    ++numUpdates;
  }
}

/// @evaluate, with parameters as they are in the file until findParameters().
void TrainingStep::makeEvaluation() {
  OpBuilder b(function);
  evaluation = cast<func::FuncOp>(b.clone(*function));
  evaluation.setName(kEvaluate);
  auto end = cast<func::ReturnOp>(evaluation.getBody().front().getTerminator());
  end->setOperands({evaluation.getArgument(0), end.getOperand(0)});
  evaluation.setFunctionType(b.getFunctionType(evaluation.getArgumentTypes(), end.getOperandTypes()));
  evaluation.setAllResultAttrs(ArrayRef{b.getDictionaryAttr({}), function.getResultAttrDict(0)});
}

LogicalResult TrainingStep::build() {
  if (failed(state.begin(kCannot)))
    return failure();
  if (options.evaluate && symbols.lookup(kEvaluate))
    return fail() << "the model has a symbol @" << kEvaluate;
  if (options.evaluate)
    makeEvaluation();
  rate = state.addNumber(kRate);
  if (failed(findParameters()))
    return failure();
  Value loss = state.getReturn().getOperand(0);
  LocBuilder b = state.atEnd();
  Value norm = buildNorm(b, llvm::map_to_vector(parameters, [](Parameter &parameter) { return parameter.gradient; }));
  buildUpdates(buildFactors(b, norm));
  LocBuilder end = state.atEnd();
  Value normTensor = tensor::FromElementsOp::create(end, RankedTensorType::get({}, end.getF32Type()), norm);
  state.finish({{loss, kLossName}, {normTensor, kNorm}});
  if (evaluation)
    evaluation.setPublic();
  return success();
}

namespace {
struct AddOptimizer : impl::AddOptimizerBase<AddOptimizer> {
  using AddOptimizerBase::AddOptimizerBase;

  void runOnOperation() override {
    if (failed(addStep()))
      signalPassFailure();
  }

private:
  LogicalResult addStep();
};
} // namespace

LogicalResult AddOptimizer::addStep() {
  ModuleOp module = getOperation();
  AddOptimizerOptions options{optimizer, weightDecay, maxNorm, keepZeros, evaluate, momentum, beta1, beta2, epsilon};
  if (failed(checkOptimizer(module.getLoc(), options)))
    return failure();
  FailureOr<func::FuncOp> gradients = findGradients(module, kCannot);
  if (failed(gradients))
    return failure();
  TrainingStep step(*gradients, options);
  if (failed(step.build()))
    return failure();
  numUpdates += step.numUpdates;
  remark::passed(gradients->getLoc(), remark::RemarkOpts::name("AddedOptimizer").category("hone-add-optimizer"))
      << (optimizer + " updates " + Twine(step.numUpdates) + " parameters in each call").str();
  return success();
}

} // namespace hone
