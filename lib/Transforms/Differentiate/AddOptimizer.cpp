// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-add-optimizer: @train_step of @gradients. Parameters and moments are slots of a state that each call replaces; what
// optimizers compute of them is in UpdateParameter.cpp.

#include "Products.h"
#include "UpdateParameter.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
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

constexpr llvm::StringLiteral kGradients = "gradients", kStep = "train_step", kState = "training",
                              kEnding = ".gradient", kRate = "learning_rate", kNorm = "gradient_norm", kLoss = "loss";

/// Makes a step of @gradients, in place.
class TrainingStep {
public:
  TrainingStep(func::FuncOp function, const AddOptimizerOptions &options)
      : function(function), module(function->getParentOfType<ModuleOp>()), symbols(module), options(options) {}

  /// Fails after an error.
  LogicalResult build();
  int64_t numUpdates = 0;

private:
  func::ReturnOp getReturn() { return cast<func::ReturnOp>(function.getBody().front().getTerminator()); }
  InFlightDiagnostic fail() { return function.emitError() << "cannot add an optimizer: "; }
  StringRef getResultName(unsigned number);
  FailureOr<ParamOp> findParam(unsigned result);
  LogicalResult checkLoss();
  void beginState();
  void makePlain(ParamOp param);
  uint64_t addSlot(const Twine &name, RankedTensorType type, FlatSymbolRefAttr beginning = {});
  Value view(uint64_t slot);
  void replace(LocBuilder &b, uint64_t slot, Value value);
  void readFromState(ParamOp param, Value value);
  LogicalResult findParameters();
  LocBuilder atEnd() { return LocBuilder(function.getLoc(), getReturn()); }
  UpdateFactors buildFactors(LocBuilder &b, Value norm);
  Value advance(LocBuilder &b, StringRef name, double decay);
  void buildUpdates(const UpdateFactors &factors);
  void finish(Value norm);

  struct Parameter {
    ParamOp param;
    Value value, gradient;
    uint64_t slot;
  };

  func::FuncOp function;
  ModuleOp module;
  SymbolTable symbols;
  const AddOptimizerOptions &options;
  SmallVector<SlotAttr> slots;
  SmallVector<Parameter> parameters;
  Value state, rate; // the state as it is so far
  Value loss;
};

} // namespace

StringRef TrainingStep::getResultName(unsigned number) {
  auto name = function.getResultAttrOfType<StringAttr>(number, onnxir::kNameAttr);
  return name ? name.getValue() : StringRef();
}

//===- The state --------------------------------------------------------------------------------------------------===//

uint64_t TrainingStep::addSlot(const Twine &name, RankedTensorType type, FlatSymbolRefAttr beginning) {
  slots.push_back(SlotAttr::get(module.getContext(), name.str(), type, std::nullopt, beginning));
  return slots.size() - 1;
}

/// What a slot is before the call.
Value TrainingStep::view(uint64_t slot) {
  LocBuilder b(function.getLoc(), module.getContext());
  b.setInsertionPointToStart(&function.getBody().front());
  return KvViewOp::create(b, slots[slot].getType(), function.getArgument(0), slot);
}

void TrainingStep::replace(LocBuilder &b, uint64_t slot, Value value) {
  state = KvReplaceOp::create(b, state.getType(), state, value, slot);
}

void TrainingStep::beginState() {
  auto type = KvType::get(module.getContext(), FlatSymbolRefAttr::get(module.getContext(), kState));
  (void)function.insertArgument(0, type, {}, function.getLoc());
  state = function.getArgument(0);
  Builder b(module.getContext());
  auto name = b.getDictionaryAttr(b.getNamedAttr(onnxir::kNameAttr, b.getStringAttr(kRate)));
  unsigned number = function.getNumArguments();
  (void)function.insertArgument(number, RankedTensorType::get({}, b.getF32Type()), name, function.getLoc());
  rate = function.getArgument(number);
}

//===- Parameters -------------------------------------------------------------------------------------------------===//

/// The parameter whose gradient result `number` is.
FailureOr<ParamOp> TrainingStep::findParam(unsigned number) {
  StringRef name = getResultName(number);
  auto param = name.consume_back(kEnding) ? symbols.lookup<ParamOp>(name) : ParamOp();
  if (!param)
    return fail() << "expected result " << number << " to be the gradient of a parameter, but got '"
                  << getResultName(number) << "'";
  RankedTensorType type = param.getTensorType();
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  if (!type.getElementType().isF32() || (type.getEncoding() && !(stored && stored.getType().isF32())))
    return fail() << "unsupported parameter '" << name << "' of type " << type
                  << "; supported: parameters that are stored as f32";
  return param;
}

/// Gives a parameter the shape that it has in the file; what reads it transposes then.
void TrainingStep::makePlain(ParamOp param) {
  auto stored = dyn_cast_or_null<StoredAttr>(param.getTensorType().getEncoding());
  if (!stored)
    return;
  RankedTensorType plain = getPlanes(param.getTensorType()).front().type;
  Attribute storage = param.getPlaneStorage().front();
  param.setType(plain);
  param.setStorageAttr(storage);
  module.walk([&](GetParamOp get) {
    if (get.getName() != param.getSymName())
      return;
    LocBuilder b(get.getLoc(), get);
    Value read = GetParamOp::create(b, plain, get.getNameAttr());
    Value value = stored.getTransposed() ? transposeLast(b, read) : read;
    for (Operation *user : llvm::make_early_inc_range(get->getUsers()))
      if (auto unpack = dyn_cast<UnpackOp>(user)) {
        unpack.replaceAllUsesWith(value);
        unpack.erase();
      }
    get.replaceAllUsesWith(value);
    get.erase();
  });
}

void TrainingStep::readFromState(ParamOp param, Value value) {
  function.walk([&](GetParamOp get) {
    if (get.getName() != param.getSymName())
      return;
    get.replaceAllUsesWith(value);
    get.erase();
  });
}

LogicalResult TrainingStep::checkLoss() {
  if (function.getNumResults() < 2 || getResultName(0) != kLoss)
    return fail() << "expected @" << kGradients << " to have a loss and gradients of parameters";
  loss = getReturn().getOperand(0);
  return success();
}

LogicalResult TrainingStep::findParameters() {
  for (unsigned number = 1; number < function.getNumResults(); ++number) {
    FailureOr<ParamOp> param = findParam(number);
    if (failed(param))
      return failure();
    makePlain(*param);
    uint64_t slot =
        addSlot(param->getSymName(), param->getTensorType(), FlatSymbolRefAttr::get(param->getSymNameAttr()));
    Value value = view(slot);
    readFromState(*param, value);
    parameters.push_back({*param, value, getReturn().getOperand(number), slot});
  }
  return success();
}

//===- The update -------------------------------------------------------------------------------------------------===//

/// 1 - decay^t at step t, which is a mean of ones that begins as 0.
Value TrainingStep::advance(LocBuilder &b, StringRef name, double decay) {
  uint64_t slot = addSlot(name, RankedTensorType::get({}, b.getF64Type()));
  Value before = tensor::ExtractOp::create(b, view(slot), ValueRange());
  Value now = mixF64(b, before, arith::ConstantOp::create(b, b.getF64FloatAttr(1.0)), decay);
  replace(b, slot, tensor::FromElementsOp::create(b, slots[slot].getType(), now));
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
  LocBuilder b = atEnd();
  for (Parameter &parameter : parameters) {
    b.setLoc(parameter.param.getLoc());
    SmallVector<uint64_t> places = {parameter.slot};
    SmallVector<Value> operands = {parameter.value, parameter.gradient};
    for (StringRef moment : listMoments(options.optimizer)) {
      places.push_back(addSlot(parameter.param.getSymName() + "." + moment, parameter.param.getTensorType()));
      operands.push_back(view(places.back()));
    }
    for (auto [slot, value] : llvm::zip_equal(places, buildUpdate(b, options, factors, operands)))
      replace(b, slot, value);
    ++numUpdates;
  }
}

void TrainingStep::finish(Value norm) {
  LocBuilder b = atEnd();
  Value normTensor = tensor::FromElementsOp::create(b, RankedTensorType::get({}, b.getF32Type()), norm);
  SmallVector<Value> results = {state, loss, normTensor};
  auto named = [&](StringRef name) {
    return b.getDictionaryAttr(b.getNamedAttr(onnxir::kNameAttr, b.getStringAttr(name)));
  };
  getReturn()->setOperands(results);
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(), TypeRange(ValueRange(results))));
  function.setAllResultAttrs(ArrayRef{b.getDictionaryAttr({}), named(kLoss), named(kNorm)});
  function.setName(kStep);
  for (auto other : module.getOps<func::FuncOp>())
    if (other != function)
      other.setPrivate();
  b.setInsertionPoint(function);
  SmallVector<Attribute> all(slots.begin(), slots.end());
  StateOp::create(b, kState, b.getArrayAttr(all));
}

LogicalResult TrainingStep::build() {
  for (StringRef name : {StringRef(kStep), StringRef(kState)})
    if (symbols.lookup(name))
      return fail() << "the model has a symbol @" << name;
  if (failed(checkLoss()))
    return failure();
  beginState();
  if (failed(findParameters()))
    return failure();
  LocBuilder b = atEnd();
  Value norm = buildNorm(b, llvm::map_to_vector(parameters, [](Parameter &parameter) { return parameter.gradient; }));
  buildUpdates(buildFactors(b, norm));
  finish(norm);
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
  AddOptimizerOptions options{optimizer, weightDecay, maxNorm, momentum, beta1, beta2, epsilon};
  if (failed(checkOptimizer(module.getLoc(), options)))
    return failure();
  auto gradients = module.lookupSymbol<func::FuncOp>(kGradients);
  if (!gradients || gradients.isExternal())
    return module.emitError() << "cannot add an optimizer: the model has no entry '" << kGradients << "'";
  TrainingStep step(gradients, options);
  if (failed(step.build()))
    return failure();
  numUpdates += step.numUpdates;
  remark::passed(gradients.getLoc(), remark::RemarkOpts::name("AddedOptimizer").category("hone-add-optimizer"))
      << (optimizer + " updates " + Twine(step.numUpdates) + " parameters in each call").str();
  return success();
}

} // namespace hone
