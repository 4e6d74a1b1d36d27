// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise nodes, and those that name their axes by attributes or constants.

#include "TransposeRules.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace hone::raising {

namespace {

enum class Kind {
  Broadcast, // all operands are tensors, which broadcast
  Unary,     // the first operand is the tensor
  Axis,      // the same, and attribute `axis` is one of its dimensions
  Concat,    // all operands are tensors, with attribute `axis`
  Reduce,    // the first operand is the tensor, and axes are an attribute or the second operand
  Pad,
  Resize,
  Slice
};

} // namespace

static std::optional<Kind> getKind(Operation *op) {
  static const llvm::StringMap<Kind> kinds = [] {
    llvm::StringMap<Kind> table;
    auto add = [&](Kind kind, std::initializer_list<StringRef> names) {
      for (StringRef name : names)
        table[name] = kind;
    };
    add(Kind::Broadcast, {"Add",  "Sub",         "Mul",   "Div",   "Min",   "Max",     "Sum",
                          "Mean", "Pow",         "PRelu", "Where", "Equal", "Greater", "GreaterOrEqual",
                          "Less", "LessOrEqual", "And",   "Or",    "Xor",   "Mod"});
    add(Kind::Unary,
        {"Abs",      "Cast",     "Ceil",       "Celu",        "Clip",           "Elu",       "Erf",     "Exp",
         "Floor",    "Gelu",     "Identity",   "HardSigmoid", "HardSwish",      "LeakyRelu", "Log",     "Mish",
         "Neg",      "Not",      "Reciprocal", "Relu",        "Round",          "Selu",      "Sigmoid", "Sign",
         "Softplus", "Softsign", "Sqrt",       "Tanh",        "ThresholdedRelu"});
    add(Kind::Axis, {"LogSoftmax", "Softmax", "Split"});
    add(Kind::Concat, {"Concat"});
    add(Kind::Reduce, {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
                       "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"});
    add(Kind::Pad, {"Pad"});
    add(Kind::Resize, {"Resize"});
    add(Kind::Slice, {"Slice"});
    return table;
  }();
  if (!onnxir::isOnnxOp(op) || !isOp(op, onnxir::getOpType(op)))
    return std::nullopt;
  auto found = kinds.find(onnxir::getOpType(op));
  return found == kinds.end() ? std::nullopt : std::optional(found->second);
}

/// The elements of a constant vector of integers.
static std::optional<SmallVector<int64_t>> getConstantIntegers(Value value) {
  Operation *constant = value ? getDefiningOp(value, "Constant") : nullptr;
  auto dense = constant ? constant->getAttrOfType<DenseIntElementsAttr>("value") : DenseIntElementsAttr();
  if (!dense || dense.getType().getRank() != 1)
    return std::nullopt;
  SmallVector<int64_t> elements;
  for (const APInt &element : dense.getValues<APInt>())
    elements.push_back(element.getSExtValue());
  return elements;
}

static bool isEmpty(Value value) {
  RankedTensorType type = getRankedType(value);
  return type && type.hasStaticShape() && type.getNumElements() == 0;
}

/// Whether what the node says of its axes can be said of permuted ones.
static bool hasKnownAxes(Operation *op, Kind kind, int64_t rank) {
  int64_t opset = onnxir::getOpsetVersion(op, "");
  switch (kind) {
  case Kind::Axis: // before, softmax was over all dimensions from the axis on
    return opset >= 13 || isOp(op, "Split");
  case Kind::Reduce:
    return getInteger(op, "keepdims", 1) == 1 && getInteger(op, "noop_with_empty_axes", 0) == 0 &&
           (!getOperand(op, 1) || getConstantIntegers(getOperand(op, 1)));
  case Kind::Pad: {
    auto pads = getConstantIntegers(getOperand(op, 1));
    return pads && static_cast<int64_t>(pads->size()) == 2 * rank && !getOperand(op, 3);
  }
  case Kind::Resize: {
    bool isWhole = !op->hasAttr("axes") && !op->hasAttr("antialias") && !op->hasAttr("keep_aspect_ratio_policy");
    StringRef mapping = op->hasAttr("coordinate_transformation_mode")
                            ? op->getAttrOfType<StringAttr>("coordinate_transformation_mode").getValue()
                            : StringRef();
    bool isRegion = mapping == "tf_crop_and_resize" || (getOperand(op, 1) && !isEmpty(getOperand(op, 1)) && opset < 11);
    return isWhole && opset >= 11 && !isRegion;
  }
  case Kind::Slice:
    return opset >= 10 && getConstantIntegers(getOperand(op, 3)).has_value();
  default:
    return true;
  }
}

std::optional<SmallVector<int64_t>> getPermutation(Operation *op) {
  if (!op || !isOp(op, "Transpose") || getRank(op->getResult(0)) < 0 || getRank(op->getOperand(0)) < 0)
    return std::nullopt;
  if (auto given = getIntegers(op, "perm"))
    return given;
  return llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, getRank(op->getResult(0)))));
}

bool isVectorWeight(Value value, int64_t rank) {
  RankedTensorType type = getRankedType(value);
  return type && isWeight(value) && !type.getEncoding() && type.hasStaticShape() && type.getRank() <= rank &&
         llvm::count_if(type.getShape(), [](int64_t size) { return size != 1; }) <= 1;
}

Value permuteWeight(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> axes) {
  RankedTensorType type = getRankedType(value);
  const int64_t *size = llvm::find_if(type.getShape(), [](int64_t size) { return size != 1; });
  if (size == type.getShape().end())
    return value;
  SmallVector<int64_t> shape(axes.size(), 1);
  shape[axes[axes.size() - type.getRank() + (size - type.getShape().begin())]] = *size;
  OnnxBuilder builder(b, loc);
  Operation *constant = getDefiningOp(value, "Constant");
  if (auto dense = constant ? constant->getAttrOfType<DenseElementsAttr>("value") : DenseElementsAttr())
    return builder.constant(dense.reshape(RankedTensorType::get(shape, type.getElementType())));
  return builder.reshape(value, shape, shape);
}

std::optional<MovableNode> MovableNode::get(Operation *op) {
  std::optional<Kind> kind = getKind(op);
  if (!kind || op->getNumResults() == 0 || op->getNumRegions() != 0)
    return std::nullopt;
  MovableNode node{getRank(op->getResult(0)), {}};
  if (node.rank < 2 || !llvm::all_of(op->getResults(), [&](Value result) { return getRank(result) == node.rank; }))
    return std::nullopt;
  bool takesAll = *kind == Kind::Broadcast || *kind == Kind::Concat;
  for (unsigned number = 0; number < (takesAll ? op->getNumOperands() : 1); ++number) {
    Value operand = getOperand(op, number);
    if (!operand ||
        (getRank(operand) != node.rank && !(*kind == Kind::Broadcast && isVectorWeight(operand, node.rank))))
      return std::nullopt;
    node.tensors.push_back(number);
  }
  if (!hasKnownAxes(op, *kind, node.rank))
    return std::nullopt;
  return node;
}

/// Sizes or scales of each dimension, for the permuted ones.
static Value permuteVector(OnnxBuilder &builder, Value vector, ArrayRef<int64_t> axes) {
  Value order = builder.integers(invertPermutationVector(axes));
  return builder.create("Gather", {vector, order}, vector.getType(), builder.integerAttr("axis", 0));
}

Operation *MovableNode::create(OpBuilder &b, Operation *op, SmallVector<Value> operands, ArrayRef<int64_t> axes) const {
  OnnxBuilder builder(b, op->getLoc());
  NamedAttrList attributes(op->getAttrDictionary());
  auto permuteAxis = [&](int64_t axis) { return axes[axis < 0 ? axis + rank : axis]; };
  Kind kind = *getKind(op);
  if (kind == Kind::Axis || kind == Kind::Concat) {
    int64_t byDefault = isOp(op, "Split") ? 0 : -1;
    attributes.set("axis", b.getI64IntegerAttr(permuteAxis(getInteger(op, "axis", byDefault))));
  }
  if (auto given = kind == Kind::Reduce ? getIntegers(op, "axes") : std::nullopt)
    attributes.set("axes", b.getDenseI64ArrayAttr(llvm::map_to_vector(*given, permuteAxis)));
  if (Value given = kind == Kind::Reduce ? getOperand(op, 1) : kind == Kind::Slice ? getOperand(op, 3) : Value())
    operands[kind == Kind::Reduce ? 1 : 3] =
        builder.integers(llvm::map_to_vector(*getConstantIntegers(given), permuteAxis));
  if (kind == Kind::Pad) {
    SmallVector<int64_t> pads = *getConstantIntegers(operands[1]), permuted(pads.size());
    for (int64_t i = 0; i < 2 * rank; ++i)
      permuted[axes[i % rank] + i / rank * rank] = pads[i];
    operands[1] = builder.integers(permuted);
  }
  if (kind == Kind::Resize)
    for (unsigned number : {2u, 3u})
      if (Value vector = getOperand(op, number); vector && !isEmpty(vector))
        operands[number] = permuteVector(builder, vector, axes);
  OperationState state(op->getLoc(), op->getName(), operands, {}, attributes);
  for (Value result : op->getResults()) {
    RankedTensorType type = getRankedType(result);
    SmallVector<int64_t> shape = applyPermutation(type.getShape(), invertPermutationVector(axes));
    state.addTypes(RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  }
  return b.create(state);
}

} // namespace hone::raising
