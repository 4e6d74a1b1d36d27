// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-add-optimizer: @train_step of @gradients. Parameters and moments are slots of a state that each call replaces; what
// optimizers compute of them is in UpdateParameter.cpp.

#include "EntryState.h"
#include "Prepare.h"
#include "ProjectWeight.h"
#include "UpdateParameter.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Transforms/Adjoints.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/RegionUtils.h"

namespace hone {
#define GEN_PASS_DEF_ADDOPTIMIZER
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

namespace {

constexpr llvm::StringLiteral kStep = "train_step", kState = "training", kRate = "learning_rate",
                              kMaskDecay = "mask_decay", kNorm = "gradient_norm", kEvaluate = "evaluate",
                              kAccumulate = "accumulate", kProject = "project", kCannot = "cannot add an optimizer";

/// Makes a step of @gradients, in place.
class TrainingStep {
public:
  TrainingStep(func::FuncOp function, const AddOptimizerOptions &options)
      : function(function), symbols(function->getParentOfType<ModuleOp>()), options(options),
        state(function, kState, kStep) {}

  /// Fails after an error.
  LogicalResult build();
  int64_t numUpdates = 0, numProjected = 0;

private:
  InFlightDiagnostic fail() { return function.emitError() << kCannot << ": "; }
  FailureOr<ParamOp> findParam(unsigned result);
  LogicalResult findParameters();
  LogicalResult addParameter(ParamOp param, unsigned number);
  LogicalResult checkNames();
  UpdateFactors buildFactors(LocBuilder &b, Value norm);
  Value advance(LocBuilder &b, StringRef name, double decay);
  int64_t findVocabulary();
  StringRef getOptimizer(ParamOp param, int64_t vocabulary);
  void buildUpdates(const UpdateFactors &factors);
  void moveEarly(Operation *first);
  func::FuncOp copyFunction(StringRef name);
  void finishCopy(func::FuncOp copy, Value state, Value loss);
  void accumulateGradients();
  void roundGradients();
  void makeProjection();
  /// Whether the second result is the loss without a teacher.
  bool hasHardLoss() { return state.getResultName(1) == kHardLossName; }
  /// Whether the step reads weights as they are, and the loss alone is that of projected ones.
  bool readsDense() { return options.sparseMode == kCast; }

  struct Parameter {
    ParamOp param;
    unsigned number; // of the result that is its gradient
    Value value, gradient;
    uint64_t slot;
    std::optional<Projection> projection; // where the model reads one of `value`
    Value projected;                      // what it, or the update alone, reads
  };

  func::FuncOp function;
  SymbolTable symbols;
  const AddOptimizerOptions &options;
  EntryState state;
  SmallVector<Parameter> parameters;
  Value rate, maskDecay;                 // the second may be null
  func::FuncOp evaluation, accumulation; // what computes the loss alone, and what adds up gradients; or null
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

/// The projection of a slot, after the slot is read.
static Value buildProjectionOf(Value view, const Projection &projection) {
  LocBuilder b(view.getLoc(), view.getContext());
  b.setInsertionPointAfterValue(view);
  return buildProjection(b, view, projection);
}

LogicalResult TrainingStep::addParameter(ParamOp param, unsigned number) {
  Parameter added{param, number, {}, {}, 0, {}, {}};
  if (!options.sparseMode.empty() && llvm::is_contained(options.sparse, param.getSymName())) {
    FailureOr<Projection> found = getProjection(function, param, {options.n, options.m}, options.sparseMode);
    if (failed(found))
      return failure();
    added.projection = *found;
  }
  makePlain(param);
  added.slot = state.addSlot(param.getSymName(), param.getTensorType(), FlatSymbolRefAttr::get(param.getSymNameAttr()));
  added.value = state.view(added.slot);
  if (added.projection && !readsDense())
    added.projected = buildProjectionOf(added.value, *added.projection);
  replaceReads(function, param, added.projected ? added.projected : added.value);
  for (func::FuncOp other : {evaluation, accumulation}) {
    if (!other)
      continue;
    Value value = state.viewIn(other, added.slot);
    bool isProjected = added.projection && (other == evaluation || !readsDense());
    replaceReads(other, param, isProjected ? buildProjectionOf(value, *added.projection) : value);
  }
  added.gradient = state.getReturn().getOperand(number); // which may have been a read
  numProjected += added.projection.has_value();
  parameters.push_back(added);
  return success();
}

LogicalResult TrainingStep::findParameters() {
  for (unsigned number = hasHardLoss() ? 2 : 1; number < function.getNumResults(); ++number) {
    FailureOr<ParamOp> param = findParam(number);
    if (failed(param) || failed(addParameter(*param, number)))
      return failure();
  }
  for (const std::string &name : options.sparse)
    if (llvm::none_of(parameters, [&](Parameter &each) { return each.param.getSymName() == name; }))
      return fail() << "no gradient is that of the sparse weight '" << name << "'";
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
  if (maskDecay)
    factors.maskDecay = tensor::ExtractOp::create(b, maskDecay, ValueRange());
  if (readsDense())
    factors.momentKept = arith::SubFOp::create(b, constantF32(b, 1), factors.maskDecay);
  factors.clip = options.maxNorm > 0 ? buildClipFactor(b, norm, options.maxNorm) : Value();
  if (options.optimizer == kAdamW || options.optimizer == kMuon) {
    factors.firstCorrection = advance(b, "adamw.first_correction", options.beta1);
    factors.secondCorrection = advance(b, "adamw.second_correction", options.beta2);
  }
  return factors;
}

/// The number of logits of a position, or -1.
int64_t TrainingStep::findVocabulary() {
  int64_t size = -1;
  function.walk([&](CrossEntropyOp loss) { size = loss.getLogits().getType().getShape().back(); });
  return size;
}

/// Muon is for the matrices of hidden layers: neither for a table of embeddings nor for the last layer, which have the size of the
/// vocabulary, nor for matrices of experts that are one parameter.
StringRef TrainingStep::getOptimizer(ParamOp param, int64_t vocabulary) {
  RankedTensorType type = param.getTensorType();
  if (options.optimizer != kMuon)
    return options.optimizer;
  bool isHidden =
      type.getRank() == 2 && !llvm::is_contained(type.getShape(), vocabulary) && !isa<StackedAttr>(param.getStorage());
  return isHidden ? kMuon : kAdamW;
}

void TrainingStep::buildUpdates(const UpdateFactors &factors) {
  int64_t vocabulary = findVocabulary();
  LocBuilder b = state.atEnd();
  for (Parameter &parameter : parameters) {
    b.setLoc(parameter.param.getLoc());
    SmallVector<uint64_t> places = {parameter.slot};
    SmallVector<Value> held = {parameter.value};
    if (parameter.projection && readsDense())
      parameter.projected = buildProjection(b, parameter.value, *parameter.projection);
    StringRef optimizer = getOptimizer(parameter.param, vocabulary);
    for (StringRef moment : listMoments(optimizer)) {
      places.push_back(state.addSlot(parameter.param.getSymName() + "." + moment, parameter.param.getTensorType()));
      held.push_back(state.view(places.back()));
    }
    for (auto [slot, value] :
         llvm::zip_equal(places, buildUpdate(b, optimizer, options, factors, held, parameter.gradient,
                                             maskDecay ? parameter.projected : Value())))
      state.replace(b, slot, value);
    ++numUpdates;
  }
}

/// The last operation of the function's block that has to come before `op`: what computes its operands, and where its inits are slots,
/// what else reads these. Null if there is none.
static Operation *findLastBefore(Operation *op) {
  Block *block = op->getBlock();
  Operation *last = nullptr;
  auto wait = [&](Operation *other) {
    other = other ? block->findAncestorOpInBlock(*other) : nullptr;
    if (other && other != op && other->isBeforeInBlock(op) && (!last || last->isBeforeInBlock(other)))
      last = other;
  };
  for (Value operand : op->getOperands())
    wait(operand.getDefiningOp());
  visitUsedValuesDefinedAbove(op->getRegions(), [&](OpOperand *use) { wait(use->get().getDefiningOp()); });
  if (auto update = dyn_cast<DestinationStyleOpInterface>(op))
    for (Value init : update.getDpsInits())
      if (init.getDefiningOp<KvViewOp>())
        llvm::for_each(init.getUsers(), wait);
  return last;
}

/// Moves an operation to before what reads its results first.
static void moveToFirstUser(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
    if (!first || inBlock->isBeforeInBlock(first))
      first = inBlock;
  }
  if (first)
    op->moveBefore(first);
}

/// Moves sums of squares, and updates that do not wait for the norm of all gradients, to where the gradients are known, so that these need
/// not be in memory at once: operations from `first` on. What else updates read, such as projections, is computed right before.
void TrainingStep::moveEarly(Operation *first) {
  SmallVector<Operation *> ops;
  for (Operation *op = first; !isa<func::ReturnOp>(op); op = op->getNextNode())
    if (!isa<KvReplaceOp>(op))
      ops.push_back(op);
  llvm::DenseSet<Value> ofGradients;
  for (Parameter &parameter : parameters)
    ofGradients.insert(parameter.gradient);
  SmallVector<Operation *> others;
  Block *block = first->getBlock();
  for (Operation *op : ops) {
    bool readsGradients = llvm::any_of(op->getOperands(), [&](Value value) { return ofGradients.contains(value); });
    visitUsedValuesDefinedAbove(op->getRegions(),
                                [&](OpOperand *use) { readsGradients |= ofGradients.contains(use->get()); });
    if (readsGradients)
      ofGradients.insert(op->result_begin(), op->result_end());
    else
      others.push_back(op);
    Operation *last = findLastBefore(op);
    op->moveBefore(block, last ? std::next(last->getIterator()) : block->begin());
  }
  llvm::for_each(llvm::reverse(others), moveToFirstUser);
}

/// Another entry, with parameters as they are in the file until findParameters().
func::FuncOp TrainingStep::copyFunction(StringRef name) {
  OpBuilder b(function);
  auto copy = cast<func::FuncOp>(b.clone(*function));
  copy.setName(name);
  return copy;
}

static func::ReturnOp getReturn(func::FuncOp function) {
  return cast<func::ReturnOp>(function.getBody().front().getTerminator());
}

/// Lets a copy return the state and a loss.
void TrainingStep::finishCopy(func::FuncOp copy, Value state, Value loss) {
  Builder b(copy.getContext());
  getReturn(copy)->setOperands({state, loss});
  copy.setFunctionType(b.getFunctionType(copy.getArgumentTypes(), {state.getType(), loss.getType()}));
  copy.setAllResultAttrs(ArrayRef{b.getDictionaryAttr({}), function.getResultAttrDict(0)});
  keepUnusedCarried(copy); // gradients that the loss alone does without
}

/// Lets @accumulate add up gradients, and the step take the mean of those and its own.
void TrainingStep::accumulateGradients() {
  LocBuilder b = state.atEnd(), other(function.getLoc(), getReturn(accumulation));
  Value held = accumulation.getArgument(0);
  for (Parameter &parameter : parameters) {
    b.setLoc(parameter.param.getLoc());
    other.setLoc(parameter.param.getLoc());
    uint64_t slot = state.addSlot(parameter.param.getSymName() + ".accumulated", parameter.param.getTensorType());
    auto add = [](LocBuilder &inner, ValueRange old, ValueRange fresh) {
      return SmallVector<Value>{arith::AddFOp::create(inner, old.front(), fresh.front())};
    };
    Value sum = updateElements(other, state.viewIn(accumulation, slot),
                               getReturn(accumulation).getOperand(parameter.number), add)
                    .front();
    held = KvReplaceOp::create(other, held.getType(), held, sum, slot, /*in_place=*/true);
    Value before = state.view(slot);
    SmallVector<int64_t> loops = loopRange(0, parameter.param.getTensorType().getRank());
    parameter.gradient = buildMap(
        b, tensor::getMixedSizes(b, b.getLoc(), before), b.getF32Type(), {{before, loops}, {parameter.gradient, loops}},
        [&](LocBuilder &inner, ValueRange args) -> Value {
          Value both = arith::AddFOp::create(inner, args[0], args[1]);
          return arith::MulFOp::create(inner, both, constantF32(inner, 1.0f / static_cast<float>(options.accumulate)));
        });
    state.replace(b, slot, linalg::FillOp::create(b, constantF32(b, 0), before).getResult(0));
  }
  finishCopy(accumulation, held, getReturn(accumulation).getOperand(0));
}

/// Keeps gradients of matrices in bf16 until the norm of all is known, but for the one that is known last, as that of a table of embeddings
/// is: a rounded copy of it would be one tensor more.
void TrainingStep::roundGradients() {
  auto matrices = llvm::to_vector(llvm::make_filter_range(llvm::make_pointer_range(parameters), [](Parameter *each) {
    return each->param.getTensorType().getRank() >= 2 && each->gradient.getDefiningOp();
  }));
  auto last = llvm::max_element(matrices, [](Parameter *a, Parameter *b) {
    return a->gradient.getDefiningOp()->isBeforeInBlock(b->gradient.getDefiningOp());
  });
  LocBuilder b = state.atEnd();
  for (Parameter *parameter : matrices) {
    if (parameter == *last)
      continue;
    b.setLoc(parameter->param.getLoc());
    Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), parameter->gradient);
    parameter->gradient = buildMap(b, sizes, b.getBF16Type(), {{parameter->gradient, loopRange(0, sizes.size())}},
                                   [](LocBuilder &inner, ValueRange args) -> Value {
                                     return arith::TruncFOp::create(inner, inner.getBF16Type(), args[0]);
                                   });
  }
}

/// @project, after which slots are what the model read of them.
void TrainingStep::makeProjection() {
  LocBuilder b(function.getLoc(), function);
  Type type = function.getArgument(0).getType();
  auto project = func::FuncOp::create(b, kProject, b.getFunctionType(type, type));
  b.setInsertionPointToStart(project.addEntryBlock());
  Value held = project.getArgument(0), result = held;
  for (Parameter &parameter : parameters) {
    if (!parameter.projection)
      continue;
    b.setLoc(parameter.param.getLoc());
    Value value = KvViewOp::create(b, state.getType(parameter.slot), held, parameter.slot);
    result = KvReplaceOp::create(b, type, result, buildProjection(b, value, *parameter.projection), parameter.slot);
  }
  func::ReturnOp::create(b, result);
}

LogicalResult TrainingStep::checkNames() {
  std::pair<bool, StringRef> entries[] = {
      {options.evaluate, kEvaluate}, {options.accumulate > 1, kAccumulate}, {!options.sparseMode.empty(), kProject}};
  for (auto [isMade, name] : entries)
    if (isMade && symbols.lookup(name))
      return fail() << "the model has a symbol @" << name;
  return success();
}

LogicalResult TrainingStep::build() {
  if (failed(state.begin(kCannot)) || failed(checkNames()))
    return failure();
  if (options.evaluate)
    evaluation = copyFunction(kEvaluate);
  if (options.accumulate > 1)
    accumulation = copyFunction(kAccumulate);
  rate = state.addNumber(kRate);
  if (!options.sparseMode.empty() && options.sparseMode != kSSte)
    maskDecay = state.addNumber(kMaskDecay);
  if (failed(findParameters()))
    return failure();
  Value loss = state.getReturn().getOperand(0);
  if (evaluation)
    finishCopy(evaluation, evaluation.getArgument(0), getReturn(evaluation).getOperand(hasHardLoss() ? 1 : 0));
  if (accumulation)
    accumulateGradients();
  LocBuilder b = state.atEnd();
  Operation *before = state.getReturn()->getPrevNode();
  if (options.roundGradients && options.maxNorm > 0)
    roundGradients();
  Value norm = buildNorm(b, llvm::map_to_vector(parameters, [](Parameter &parameter) { return parameter.gradient; }));
  buildUpdates(buildFactors(b, norm));
  moveEarly(before->getNextNode());
  LocBuilder end = state.atEnd();
  Value normTensor = tensor::FromElementsOp::create(end, RankedTensorType::get({}, end.getF32Type()), norm);
  state.finish({{loss, kLossName}, {normTensor, kNorm}});
  if (!options.sparseMode.empty())
    makeProjection();
  for (func::FuncOp other : {evaluation, accumulation})
    if (other)
      other.setPublic();
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
  AddOptimizerOptions options{
      optimizer, weightDecay, maxNorm,   roundGradients, keepZeros, sparseMode, llvm::to_vector(sparse),
      n,         m,           maskDecay, accumulate,     evaluate,  momentum,   beta1,
      beta2,     epsilon};
  if (failed(checkOptimizer(module.getLoc(), options)))
    return failure();
  FailureOr<func::FuncOp> gradients = findGradients(module, kCannot);
  if (failed(gradients))
    return failure();
  TrainingStep step(*gradients, options);
  if (failed(step.build()))
    return failure();
  numUpdates += step.numUpdates;
  numProjected += step.numProjected;
  remark::passed(gradients->getLoc(), remark::RemarkOpts::name("AddedOptimizer").category("hone-add-optimizer"))
      << (optimizer + " updates " + Twine(step.numUpdates) + " parameters in each call").str();
  if (step.numProjected > 0)
    remark::passed(gradients->getLoc(), remark::RemarkOpts::name("ProjectedWeights").category("hone-add-optimizer"))
        << (sparseMode + " projects " + Twine(step.numProjected) + " of them to " + Twine(n) + ":" + Twine(m)).str();
  return success();
}

} // namespace hone
