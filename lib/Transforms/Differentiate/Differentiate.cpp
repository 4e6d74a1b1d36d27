// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-differentiate: @gradients of an entry. What operations contribute they say themselves (DifferentiableOpInterface); this is
// the order.

#include "Distillation.h"
#include "EntryState.h"
#include "LossByRows.h"
#include "Models.h"
#include "Prepare.h"
#include "Products.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/Lookups.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/DecomposedParts.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

namespace {

constexpr llvm::StringLiteral kTargets = "targets", kCrossEntropy = "cross-entropy";

/// What a gradient is taken of: an input, or all reads of a parameter.
struct Source {
  std::string name;
  SmallVector<Value> values;
  bool isAsked;      // by name
  bool isTransposed; // in the model's file
};

/// Makes @gradients of a copy of the entry.
class Gradients {
public:
  Gradients(func::FuncOp function, const DifferentiateOptions &options) : function(function), options(options) {}

  /// Fails after an error, with the function as useless as it then is.
  LogicalResult build();
  int64_t numAdjoints = 0, numGradients = 0;

private:
  func::ReturnOp getReturn() { return cast<func::ReturnOp>(function.getBody().front().getTerminator()); }
  InFlightDiagnostic fail() { return function.emitError() << "cannot differentiate @" << options.entry << ": "; }
  std::string getName(DictionaryAttr attrs, const Twine &otherwise) const;
  LogicalResult findOutput();
  LogicalResult findSources();
  void addSource(Source source);
  Adjoints begin();
  Value addArgument(RankedTensorType type, StringRef name, DictionaryAttr like);
  LogicalResult addSeed();
  LogicalResult addLoss(LocBuilder &b, Value logits, Value targets);
  LogicalResult buildAdjoints(Adjoints &adjoints);
  void mergeLossLoops();
  LogicalResult returnGradients(const Adjoints &adjoints);

  func::FuncOp function;
  const DifferentiateOptions &options;
  Value output, seed;  // what the gradients are of, and the gradient of it
  Value hardLoss;      // with a teacher, the part of the loss that does without
  scf::ForOp lossLoop; // that goes over the rows of the logits, or null
  std::string outputName;
  SmallVector<Source> sources;
};

} // namespace

std::string Gradients::getName(DictionaryAttr attrs, const Twine &otherwise) const {
  auto name = attrs ? attrs.getAs<StringAttr>(onnxir::kNameAttr) : StringAttr();
  return name ? name.str() : otherwise.str();
}

LogicalResult Gradients::findOutput() {
  auto operands = getReturn().getOperands();
  if (options.output < 0 || options.output >= static_cast<int64_t>(operands.size()))
    return fail() << "expected an output from 0 to " << static_cast<int64_t>(operands.size()) - 1 << ", but got "
                  << options.output;
  output = operands[options.output];
  outputName = getName(function.getResultAttrDict(options.output), "output" + Twine(options.output));
  auto type = dyn_cast<RankedTensorType>(output.getType());
  if (!type || !(type.getElementType().isF32() || type.getElementType().isF64()))
    return fail() << "unsupported type " << output.getType() << " of '" << outputName
                  << "'; supported: tensors of f32 and f64";
  return success();
}

//===- What gradients are taken of --------------------------------------------------------------------------------===//

void Gradients::addSource(Source source) {
  bool isChosen = options.of.empty() || llvm::is_contained(options.of, source.name);
  source.isAsked = !options.of.empty();
  if (isChosen && hasGradient(source.values.front().getType()))
    sources.push_back(std::move(source));
}

/// Whether all that is computed of `values` are the tables of rotations: frequencies of RoPE, which are no parameters that are trained.
static bool areRotations(ArrayRef<Value> values) {
  SmallVector<Value> left(values);
  llvm::DenseSet<Value> seen;
  while (!left.empty()) {
    Value value = left.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (auto rope = dyn_cast<RopeOp>(op); rope && use.get() != rope.getX())
        continue;
      if (op->getNumResults() == 0)
        return false;
      for (Value result : op->getResults())
        if (seen.insert(result).second)
          left.push_back(result);
    }
  }
  return true;
}

LogicalResult Gradients::findSources() {
  if (!options.of.empty())
    for (BlockArgument argument : function.getArguments())
      addSource({getName(function.getArgAttrDict(argument.getArgNumber()), "input" + Twine(argument.getArgNumber())),
                 {argument},
                 false,
                 false});
  llvm::StringMap<SmallVector<Value>> reads;
  function.walk([&](GetParamOp get) { reads[get.getName()].push_back(get); });
  for (auto param : function->getParentOfType<ModuleOp>().getOps<ParamOp>()) {
    auto stored = dyn_cast_or_null<StoredAttr>(param.getTensorType().getEncoding());
    if (auto found = reads.find(param.getSymName());
        found != reads.end() && (!options.of.empty() || !areRotations(found->second)))
      addSource({param.getSymName().str(), found->second, false, stored && stored.getTransposed()});
  }
  for (const std::string &name : options.of)
    if (llvm::none_of(sources, [&](const Source &source) { return source.name == name; }))
      return fail() << "it has no parameter and no input of floats '" << name << "'";
  return success();
}

Adjoints Gradients::begin() {
  Adjoints adjoints;
  for (const Source &source : sources)
    for (Value value : source.values)
      adjoints.want(value);
  adjoints.wantResults(function.getBody().front());
  return adjoints;
}

//===- Where gradients come from ----------------------------------------------------------------------------------===//

Value Gradients::addArgument(RankedTensorType type, StringRef name, DictionaryAttr like) {
  Builder b(function.getContext());
  NamedAttrList attrs;
  attrs.set(onnxir::kNameAttr, b.getStringAttr(name));
  if (auto dims = like ? like.getAs<ArrayAttr>(onnxir::kDimsAttr) : ArrayAttr())
    attrs.set(onnxir::kDimsAttr, b.getArrayAttr(dims.getValue().take_front(type.getRank())));
  unsigned number = function.getNumArguments();
  (void)function.insertArgument(number, type, attrs.getDictionary(b.getContext()), function.getLoc());
  return function.getArgument(number);
}

/// The gradient that is given: of the output, or 1 of the loss that is made of it.
LogicalResult Gradients::addSeed() {
  LocBuilder b(function.getLoc(), getReturn());
  auto type = cast<RankedTensorType>(output.getType());
  DictionaryAttr attrs = function.getResultAttrDict(options.output);
  if (options.loss.empty()) {
    seed = addArgument(type, (Twine(outputName) + kGradientEnding).str(), attrs);
    return success();
  }
  if (options.loss != kCrossEntropy)
    return fail() << "unsupported loss '" << options.loss << "'; supported: " << kCrossEntropy;
  if (type.getRank() == 0 || !type.getElementType().isF32())
    return fail() << "expected '" << outputName << "' to be logits of f32 for the loss " << kCrossEntropy
                  << ", but got " << type;
  auto ids = RankedTensorType::get(type.getShape().drop_back(), b.getI64Type());
  Value targets = addArgument(ids, kTargets, attrs);
  if (int64_t rows = type.getShape().back(); !ShapedType::isDynamic(rows))
    function.setArgAttr(cast<BlockArgument>(targets).getArgNumber(), kLookupRowsAttrName,
                        LookupRows{rows, 0}.toAttribute(b.getContext()));
  if (failed(addLoss(b, output, targets)))
    return failure();
  seed = arith::ConstantOp::create(
      b, DenseElementsAttr::get(cast<RankedTensorType>(output.getType()), b.getF32FloatAttr(1.0f)));
  return success();
}

LogicalResult Gradients::addLoss(LocBuilder &b, Value logits, Value targets) {
  DistilledValues values{logits, listFeatures(function)}, reference;
  if (!options.teacher.empty()) {
    FailureOr<DistilledValues> teacher =
        buildTeacher(b, function, options.teacher, values, /*needsFeatures=*/options.featureWeight > 0);
    if (failed(teacher))
      return failure();
    reference = *teacher;
  }
  LogitLosses losses = buildLogitLosses(b, logits, targets, reference.logits, options.temperature, options.mostLogits);
  lossLoop = losses.loop;
  output = losses.crossEntropy;
  if (options.teacher.empty())
    return success();
  hardLoss = output;
  output = buildDistillationLoss(b, hardLoss, losses.divergence, values, reference,
                                 {options.distillWeight, options.temperature, options.featureWeight});
  return success();
}

//===- Reverse mode -----------------------------------------------------------------------------------------------===//

LogicalResult Gradients::buildAdjoints(Adjoints &adjoints) {
  LocBuilder b(function.getLoc(), getReturn());
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front().without_terminator())
    ops.push_back(&op);
  adjoints.add(b, output, seed);
  FailureOr<int64_t> built = hone::buildAdjoints(b, ops, adjoints);
  numAdjoints += succeeded(built) ? *built : 0;
  return built;
}

/// The first loop after that of the losses is its adjoint.
void Gradients::mergeLossLoops() {
  if (!lossLoop)
    return;
  for (Operation *op = lossLoop->getNextNode(); op; op = op->getNextNode())
    if (auto backward = dyn_cast<scf::ForOp>(op))
      return mergeIntoAdjoint(lossLoop, backward);
}

LogicalResult Gradients::returnGradients(const Adjoints &adjoints) {
  LocBuilder b(function.getLoc(), getReturn());
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attrs;
  auto add = [&](Value value, const Twine &name) {
    values.push_back(value);
    attrs.push_back(b.getDictionaryAttr(b.getNamedAttr(onnxir::kNameAttr, b.getStringAttr(name))));
  };
  if (!options.loss.empty())
    add(output, kLossName);
  if (hardLoss)
    add(hardLoss, kHardLossName);
  for (const Source &source : sources) {
    Adjoints sum; // over the reads of a parameter
    Value whole = source.values.front();
    sum.want(whole);
    for (Value value : source.values)
      if (Value gradient = adjoints.get(value))
        sum.add(b, whole, gradient);
    Value gradient = sum.get(whole);
    if (!gradient && source.isAsked)
      return fail() << "'" << outputName << "' does not depend on '" << source.name << "'";
    if (!gradient)
      continue;
    add(source.isTransposed ? transposeLast(b, gradient) : gradient, source.name + kGradientEnding);
    ++numGradients;
  }
  if (numGradients == 0)
    return fail() << "'" << outputName << "' depends on no parameter";
  getReturn()->setOperands(values);
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(), TypeRange(ValueRange(values))));
  function.setAllResultAttrs(attrs);
  return success();
}

LogicalResult Gradients::build() {
  if (failed(emptyState(function)))
    return failure();
  splitForAdjoints(function);
  if (failed(findOutput()) || failed(findSources()) || failed(addSeed()))
    return failure();
  getReturn()->setOperands(hardLoss ? ValueRange{output, hardLoss} : ValueRange{output});
  if (failed(prepareForAdjoints(function.getBody().front(), [&] { return begin(); })))
    return failure();
  output = getReturn().getOperand(0); // which may be made otherwise now
  hardLoss = hardLoss ? getReturn().getOperand(1) : Value();
  Adjoints adjoints = begin();
  if (failed(buildAdjoints(adjoints)) || failed(returnGradients(adjoints)))
    return failure();
  eraseUnused(function);
  mergeLossLoops();
  return success();
}

namespace {
struct Differentiate : impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<HoneDialect, arith::ArithDialect, linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                    tensor::TensorDialect>();
    registerAdjoints(registry);
  }

  void runOnOperation() override {
    if (failed(addGradients()))
      signalPassFailure();
  }

private:
  LogicalResult checkLossOptions(const DifferentiateOptions &options);
  LogicalResult addGradients();
};
} // namespace

LogicalResult Differentiate::checkLossOptions(const DifferentiateOptions &options) {
  auto fail = [&] { return getOperation().emitError(); };
  if (!options.teacher.empty() && options.loss.empty())
    return fail() << "expected a loss with a teacher";
  if (!(options.distillWeight >= 0 && options.distillWeight <= 1))
    return fail() << "expected distill-weight to be 0 to 1, but got " << options.distillWeight;
  if (!(options.temperature > 0 && std::isfinite(options.temperature)))
    return fail() << "expected temperature to be above 0, but got " << options.temperature;
  if (!(options.featureWeight >= 0 && std::isfinite(options.featureWeight)))
    return fail() << "expected feature-weight to be 0 or more, but got " << options.featureWeight;
  if (options.mostLogits < 0)
    return fail() << "expected most-logits to be 0 or more, but got " << options.mostLogits;
  return success();
}

LogicalResult Differentiate::addGradients() {
  ModuleOp module = getOperation();
  auto forward = module.lookupSymbol<func::FuncOp>(entry.empty() ? "forward" : StringRef(entry));
  if (!forward && entry.empty())
    forward = module.lookupSymbol<func::FuncOp>("main");
  if (!forward || forward.isExternal() || !forward.getBody().hasOneBlock())
    return module.emitError() << "cannot differentiate: the model has no entry '"
                              << (entry.empty() ? "main" : StringRef(entry)) << "'";
  if (module.lookupSymbol(kGradientsEntry))
    return module.emitError() << "cannot make an entry '" << kGradientsEntry << "': the model has one";
  DifferentiateOptions options{
      forward.getSymName().str(), output, loss, teacher, distillWeight, temperature, featureWeight, mostLogits,
      llvm::to_vector(of)};
  if (failed(checkLossOptions(options)))
    return failure();
  OpBuilder b(forward);
  b.setInsertionPointAfter(forward);
  auto function = cast<func::FuncOp>(b.clone(*forward));
  function.setName(kGradientsEntry);
  Gradients gradients(function, options);
  if (failed(gradients.build()))
    return function.erase(), failure();
  numAdjoints += gradients.numAdjoints;
  numGradients += gradients.numGradients;
  remark::passed(forward.getLoc(), remark::RemarkOpts::name("Differentiated").category("hone-differentiate"))
      << (Twine(gradients.numAdjoints) + " operations have adjoints, for the gradients of " +
          Twine(gradients.numGradients) + " parameters and inputs")
             .str();
  return success();
}

} // namespace hone
