// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loss of distillation: a teacher computes its logits beside those of the entry, and nothing of it is differentiated.

#include "Distillation.h"
#include "Models.h"
#include "Prepare.h"

#include "hone/Analysis/SymbolicAnalysis.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/Lookups.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/DecomposedParts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace hone {

static constexpr llvm::StringLiteral kCannot = "cannot distill";

//===- The teacher ------------------------------------------------------------------------------------------------===//

static StringRef getInputName(func::FuncOp function, unsigned number) {
  auto name = function.getArgAttrOfType<StringAttr>(number, onnxir::kNameAttr);
  return name ? name.getValue() : StringRef();
}

/// The input of `student` that input `number` of `teacher` is: of the same name, or the first one, the tokens.
static Value findInput(func::FuncOp student, func::FuncOp teacher, unsigned number) {
  for (BlockArgument input : student.getArguments())
    if (getInputName(student, input.getArgNumber()) == getInputName(teacher, number))
      return input;
  return number == 0 && student.getNumArguments() > 0 ? Value(student.getArgument(0)) : Value();
}

static LogicalResult checkInput(func::FuncOp student, func::FuncOp teacher, BlockArgument argument, Value input) {
  unsigned number = argument.getArgNumber();
  if (!input || getElementTypeOrSelf(input.getType()) != getElementTypeOrSelf(argument.getType()) ||
      failed(verifyCompatibleShape(input.getType(), argument.getType())))
    return student.emitError() << kCannot << ": the teacher reads '" << getInputName(teacher, number) << "' of type "
                               << argument.getType() << ", which the model does not";
  if (teacher.getArgAttr(number, kLookupRowsAttrName) ==
      student.getArgAttr(cast<BlockArgument>(input).getArgNumber(), kLookupRowsAttrName))
    return success();
  return student.emitError() << kCannot << ": expected the teacher to have the vocabulary of the model";
}

/// What the student calls the sizes of the teacher's inputs.
static llvm::StringMap<std::string> nameSizes(func::FuncOp student, func::FuncOp teacher) {
  llvm::StringMap<std::string> names;
  for (unsigned number = 0; number < teacher.getNumArguments(); ++number) {
    auto input = cast<BlockArgument>(findInput(student, teacher, number));
    auto own = student.getArgAttrOfType<ArrayAttr>(input.getArgNumber(), onnxir::kDimsAttr),
         other = teacher.getArgAttrOfType<ArrayAttr>(number, onnxir::kDimsAttr);
    if (own && other)
      for (auto [name, otherName] : llvm::zip(own.getAsRange<StringAttr>(), other.getAsRange<StringAttr>()))
        names[otherName] = name.str();
  }
  return names;
}

/// Lets the student's calls stay within the tables of the teacher, too. No position is held in its state.
static LogicalResult addLimits(func::FuncOp student, func::FuncOp teacher) {
  auto limits = getPositionLimits(teacher->getAttr(kPositionLimitsAttrName));
  if (!limits)
    return success();
  llvm::StringMap<std::string> names = nameSizes(student, teacher);
  auto all = getPositionLimits(student->getAttr(kPositionLimitsAttrName)).value_or(SmallVector<PositionLimit>());
  for (PositionLimit &limit : *limits) {
    llvm::erase(limit.sizes, analysis::kHeldLengthName);
    for (std::string &size : limit.sizes) {
      auto name = names.find(size);
      if (name == names.end())
        return student.emitError() << kCannot << ": the teacher has a table of " << limit.most << " positions for '"
                                   << size << "', which is no size of the model's inputs";
      size = name->second;
    }
    if (!limit.sizes.empty())
      all.push_back(limit);
  }
  student->setAttr(kPositionLimitsAttrName, toAttribute(all, student.getContext()));
  return success();
}

/// Copies what `teacher` computes to the end of `student`. Its state is empty.
static FailureOr<DistilledValues> inlineTeacher(LocBuilder &b, func::FuncOp student, func::FuncOp teacher) {
  IRMapping copies;
  for (BlockArgument argument : teacher.getArguments()) {
    Value input = findInput(student, teacher, argument.getArgNumber());
    if (failed(checkInput(student, teacher, argument, input)))
      return failure();
    copies.map(argument, castTo(b, input, argument.getType()));
  }
  if (failed(addLimits(student, teacher)))
    return failure();
  Block &body = teacher.getBody().front();
  for (Operation &op : body.without_terminator())
    b.clone(op, copies);
  DistilledValues values{copies.lookupOrDefault(body.getTerminator()->getOperand(0)), {}};
  for (Value feature : listFeatures(teacher))
    values.features.push_back(copies.lookupOrDefault(feature));
  return values;
}

SmallVector<Value> listFeatures(func::FuncOp function) {
  SmallVector<Value> read;
  for (Operation &op : function.getBody().front())
    if (auto norm = dyn_cast<NormOpInterface>(op))
      read.push_back(norm.getNormParts().rows->get());
  llvm::erase_if(read, [last = read.empty() ? Value() : read.back()](Value value) {
    return failed(verifyCompatibleShape(value.getType(), last.getType()));
  });
  return read;
}

/// Those of the teacher in the types of the student's.
static LogicalResult castFeatures(LocBuilder &b, func::FuncOp student, ArrayRef<Value> known,
                                  SmallVectorImpl<Value> &features) {
  if (known.empty())
    return student.emitError() << kCannot << ": expected the model to have hidden states, which norms read";
  if (features.size() != known.size())
    return student.emitError() << kCannot << ": expected the teacher to have " << known.size()
                               << " hidden states, but got " << features.size();
  for (auto [value, feature] : llvm::zip_equal(known, features)) {
    auto type = cast<RankedTensorType>(value.getType()), own = cast<RankedTensorType>(feature.getType());
    if (failed(verifyCompatibleShape(type, own)))
      return student.emitError() << kCannot << ": expected hidden states of the teacher to be of type " << type
                                 << ", but got " << own;
    feature = castTo(b, feature, type.clone(own.getElementType()));
  }
  return success();
}

FailureOr<DistilledValues> buildTeacher(LocBuilder &b, func::FuncOp student, StringRef name,
                                        const DistilledValues &values, bool needsFeatures) {
  auto teacher = student->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(name);
  if (!teacher || teacher.isExternal() || !teacher.getBody().hasOneBlock() || teacher.getNumResults() == 0)
    return student.emitError() << kCannot << ": the module has no function @" << name << " with results";
  func::FuncOp copy = teacher.clone();
  llvm::scope_exit erase([&] { copy.erase(); });
  if (failed(emptyState(copy)))
    return failure();
  FailureOr<DistilledValues> found = inlineTeacher(b, student, copy);
  if (failed(found))
    return failure();
  Type expected = values.logits.getType();
  auto type = dyn_cast<RankedTensorType>(found->logits.getType());
  if (!type || !type.getElementType().isF32() || failed(verifyCompatibleShape(type, expected)))
    return student.emitError() << kCannot << ": expected logits of the teacher to be of type " << expected
                               << ", but got " << found->logits.getType();
  found->logits = castTo(b, found->logits, expected);
  if (needsFeatures && failed(castFeatures(b, student, values.features, found->features)))
    return failure();
  return found;
}

/// The sum over all elements of what `step` makes of those of tensors of one shape.
static Value buildSum(LocBuilder &b, ArrayRef<Value> tensors, Step step) {
  SmallVector<int64_t> all = loopRange(0, cast<RankedTensorType>(tensors.front().getType()).getRank());
  return buildReduce(b, Reduction::Sum, {},
                     llvm::map_to_vector(tensors, [&](Value tensor) { return Operand{tensor, all}; }), step);
}

/// ‖S - R‖² / ‖R‖², a tensor of one f32.
static Value buildFeatureError(LocBuilder &b, Value feature, Value reference) {
  Value error = buildSum(b, {feature, reference}, [](LocBuilder &inner, ValueRange args) -> Value {
    Value difference = arith::SubFOp::create(inner, args[0], args[1]);
    return arith::MulFOp::create(inner, difference, difference);
  });
  Value square = buildSum(b, {reference}, [](LocBuilder &inner, ValueRange args) -> Value {
    return arith::MulFOp::create(inner, args[0], args[0]);
  });
  return buildMap(b, {}, b.getF32Type(), {{error, {}}, {square, {}}}, [](LocBuilder &inner, ValueRange args) -> Value {
    // Hidden states that are all 0 have no error where the student has them too.
    Value divisor = arith::MaximumFOp::create(inner, args[1], constantF32(inner, std::numeric_limits<float>::min()));
    return arith::DivFOp::create(inner, args[0], divisor);
  });
}

Value buildDistillationLoss(LocBuilder &b, Value crossEntropy, Value divergence, const DistilledValues &values,
                            const DistilledValues &reference, const DistillationLoss &loss) {
  double scale = loss.weight * loss.temperature * loss.temperature;
  SmallVector<Operand> parts = {{crossEntropy, {}}, {divergence, {}}};
  SmallVector<double> factors = {1 - loss.weight, scale};
  if (loss.featureWeight > 0)
    for (auto [feature, known] : llvm::zip_equal(values.features, reference.features)) {
      parts.push_back({buildFeatureError(b, feature, known), {}});
      factors.push_back(loss.featureWeight / static_cast<double>(values.features.size()));
    }
  return buildMap(b, {}, b.getF32Type(), parts, [&](LocBuilder &inner, ValueRange args) -> Value {
    Value sum;
    for (auto [part, factor] : llvm::zip_equal(args, factors)) {
      Value scaled = arith::MulFOp::create(inner, part, constantF32(inner, static_cast<float>(factor)));
      sum = sum ? arith::AddFOp::create(inner, sum, scaled) : scaled;
    }
    return sum;
  });
}

//===- The adjoint ------------------------------------------------------------------------------------------------===//

namespace {
/// The difference of the probabilities over the temperature, each a share of the mean.
struct KlDivergenceModel : DifferentiableOpInterface::ExternalModel<KlDivergenceModel, KlDivergenceOp> {
  bool hasAdjoint(Operation *op, const Adjoints &adjoints) const {
    return !adjoints.isWanted(cast<KlDivergenceOp>(op).getReference());
  }

  LogicalResult buildAdjoint(Operation *op, ImplicitLocOpBuilder &b, Adjoints &adjoints) const {
    auto divergence = cast<KlDivergenceOp>(op);
    float factor = 1.0f / divergence.getTemperature().convertToFloat();
    Value logits = buildScaled(b, divergence.getLogits(), factor),
          reference = buildScaled(b, divergence.getReference(), factor);
    Sizes sizes = tensor::getMixedSizes(b, b.getLoc(), logits);
    Value count = arith::ConstantIndexOp::create(b, 1);
    for (OpFoldResult size : ArrayRef(sizes).drop_back())
      count = arith::MulIOp::create(b, count, asIndex(b, size));
    Value rows = asF32(b, count), scale = constantF32(b, factor);
    auto step = [&](LocBuilder &inner, ValueRange args) -> Value {
      Value found = math::ExpOp::create(inner, arith::SubFOp::create(inner, args[0], args[2]));
      Value known = math::ExpOp::create(inner, arith::SubFOp::create(inner, args[1], args[3]));
      Value share = arith::DivFOp::create(inner, arith::MulFOp::create(inner, args[4], scale), rows);
      return arith::MulFOp::create(inner, arith::SubFOp::create(inner, found, known), share);
    };
    int64_t rank = sizes.size() - 1;
    SmallVector<int64_t> row = loopRange(0, rank), all = loopRange(0, rank + 1);
    adjoints.add(b, divergence.getLogits(),
                 buildMap(b, sizes, b.getF32Type(),
                          {{logits, all},
                           {reference, all},
                           {buildLogSumExp(b, logits), row},
                           {buildLogSumExp(b, reference), row},
                           {adjoints.get(divergence.getResult()), {}}},
                          step));
    return success();
  }
};
} // namespace

void registerDistillationAdjoint(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, HoneDialect *) { KlDivergenceOp::attachInterface<KlDivergenceModel>(*context); });
}

} // namespace hone
