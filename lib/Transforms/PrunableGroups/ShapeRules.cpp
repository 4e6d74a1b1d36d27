// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of groups that a graph computes with: where they lead to, and the shapes that say them.

#include "Rules.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace hone::prunable {

int64_t getInteger(Operation *op, StringRef name, int64_t otherwise) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr ? attr.getInt() : otherwise;
}

/// The one element of a Shape that a Gather or Slice takes, of a size that is known.
static std::optional<int64_t> getTakenSize(Operation *op) {
  Operation *shape = op->getOperand(0).getDefiningOp();
  if (!isNode(shape, "Shape") || shape->hasAttr("start") || shape->hasAttr("end"))
    return std::nullopt;
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto taken = getIntegers(op->getOperand(1));
  RankedTensorType of = getType(shape->getOperand(0));
  if (!result || !result.hasStaticShape() || result.getNumElements() != 1 || !taken || taken->size() != 1 || !of)
    return std::nullopt;
  int64_t axis = countFromFront(taken->front(), of.getRank());
  return axis >= 0 && axis < of.getRank() && !of.isDynamicDim(axis) ? std::optional(of.getDimSize(axis)) : std::nullopt;
}

std::optional<SmallVector<int64_t>> getIntegers(Value value) {
  Operation *op = value.getDefiningOp();
  if (isNode(op, "Squeeze") || isNode(op, "Unsqueeze"))
    return getIntegers(op->getOperand(0));
  if (isNode(op, "Gather") || (isNode(op, "Slice") && op->getNumOperands() <= 4))
    if (std::optional<int64_t> size = getTakenSize(op))
      return SmallVector<int64_t>{*size};
  if (!isNode(op, "Constant"))
    return std::nullopt;
  auto elements = dyn_cast_or_null<DenseIntElementsAttr>(op->getAttr("value"));
  if (!elements)
    return std::nullopt;
  SmallVector<int64_t> integers;
  for (const APInt &element : elements.getValues<APInt>())
    integers.push_back(element.getSExtValue());
  return integers;
}

//===- Shapes that are given --------------------------------------------------------------------------------------===//

std::optional<int64_t> getShapeIndex(Operation *op, int64_t axis) {
  RankedTensorType shape = getType(op->getOperand(1));
  if (!shape || shape.getRank() != 1 || shape.isDynamicDim(0))
    return std::nullopt;
  int64_t index = axis + shape.getDimSize(0) - getType(op->getResult(0)).getRank();
  return index < 0 ? std::nullopt : std::optional(index);
}

bool isJoined(Value shape) {
  Operation *concat = shape.getDefiningOp();
  return isNode(concat, "Concat") && llvm::all_of(concat->getOperands(), [](Value piece) {
           return getType(piece) && getType(piece).hasStaticShape() && getType(piece).getNumElements() == 1;
         });
}

std::optional<int64_t> getShapeElement(Value shape, int64_t index) {
  if (auto integers = getIntegers(shape))
    return (*integers)[index];
  auto piece = isJoined(shape) ? getIntegers(shape.getDefiningOp()->getOperand(index)) : std::nullopt;
  return piece ? std::optional(piece->front()) : std::nullopt;
}

//===- Where numbers lead to --------------------------------------------------------------------------------------===//

namespace {
/// Follows element `index` of integers, the number of groups, through the operations that compute shapes.
class NumberUses {
public:
  explicit NumberUses(const GroupAnalysis &analysis) : analysis(analysis) {}

  /// Whether all that is computed from it are the sizes of groups of a Reshape or Expand: these are set to what is left.
  bool areSizesOfGroups(Value integers, int64_t index) {
    return llvm::all_of(integers.getUses(), [&](OpOperand &use) { return isSizeOfGroups(use, index); });
  }

private:
  bool isSizeOfGroups(OpOperand &use, int64_t index);
  bool isTakenSizeOfGroups(Operation *op, int64_t index);
  bool isJoinedSizeOfGroups(OpOperand &use, int64_t index);

  const GroupAnalysis &analysis;
};
} // namespace

static int64_t countElements(Value value) {
  RankedTensorType type = getType(value);
  return type && type.hasStaticShape() ? type.getNumElements() : -1;
}

bool NumberUses::isTakenSizeOfGroups(Operation *op, int64_t index) {
  int64_t count = countElements(op->getOperand(0));
  auto first = getIntegers(op->getOperand(1));
  if (!first || count < 0)
    return false;
  if (isNode(op, "Gather")) {
    for (auto [i, taken] : llvm::enumerate(*first))
      if (countFromFront(taken, count) == index && !areSizesOfGroups(op->getResult(0), static_cast<int64_t>(i)))
        return false;
    return true;
  }
  auto end = getIntegers(op->getOperand(2));
  bool hasSteps = op->getNumOperands() > 4 && getIntegers(op->getOperand(4)) != SmallVector<int64_t>{1};
  if (!end || first->size() != 1 || hasSteps)
    return false;
  int64_t begin = countFromFront(first->front(), count);
  return index < begin || index >= countFromFront(end->front(), count) ||
         areSizesOfGroups(op->getResult(0), index - begin);
}

bool NumberUses::isJoinedSizeOfGroups(OpOperand &use, int64_t index) {
  Operation *concat = use.getOwner();
  for (Value piece : concat->getOperands().take_front(use.getOperandNumber())) {
    if (countElements(piece) < 0)
      return false;
    index += countElements(piece);
  }
  return areSizesOfGroups(concat->getResult(0), index);
}

bool NumberUses::isSizeOfGroups(OpOperand &use, int64_t index) {
  static const llvm::StringSet<> elementwise = {"Squeeze", "Unsqueeze", "Cast", "Identity", "Add",
                                                "Sub",     "Mul",       "Div",  "Equal",    "Where"};
  Operation *user = use.getOwner();
  if (!onnxir::isOnnxOp(user))
    return false;
  StringRef name = onnxir::getOpType(user);
  if (name == "Shape") // how many numbers there are stays
    return true;
  bool isSameList = countElements(user->getResult(0)) == countElements(use.get()) && countElements(use.get()) >= 0;
  if (name == "Reshape" && use.getOperandNumber() == 0)
    return isSameList && areSizesOfGroups(user->getResult(0), index);
  if (name == "Reshape" || name == "Expand") {
    const GroupAxis *groups = analysis.find(user->getResult(0));
    return use.getOperandNumber() == 1 && groups && getShapeIndex(user, groups->axis) == index;
  }
  if (name == "Gather" || name == "Slice")
    return use.getOperandNumber() == 0 && isTakenSizeOfGroups(user, index);
  if (name == "Concat")
    return isJoinedSizeOfGroups(use, index);
  return elementwise.contains(name) && isSameList && areSizesOfGroups(user->getResult(0), index);
}

void visitTensorDim(Operation *op, GroupAnalysis &analysis) {
  auto dim = cast<tensor::DimOp>(op);
  const GroupAxis *groups = analysis.find(dim.getSource());
  if (groups && dim.getConstantIndex() != groups->axis)
    return;
  analysis.refuse("the number of its groups is computed with");
}

void visitShape(Operation *op, GroupAnalysis &analysis) {
  const GroupAxis *groups = analysis.find(op->getOperand(0));
  int64_t first = countFromFront(getInteger(op, "start", 0), getType(op->getOperand(0)).getRank());
  int64_t index = groups ? groups->axis - first : -1;
  if (index < 0 || index >= getType(op->getResult(0)).getDimSize(0))
    return;
  if (!NumberUses(analysis).areSizesOfGroups(op->getResult(0), index))
    analysis.refuseLater("the number of its groups is computed with");
}

} // namespace hone::prunable
