// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph without the groups that go: shorter types, and the constants and attributes that say sizes.

#include "hone/Transforms/GroupAnalysis.h"

#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace hone::prunable {

static RankedTensorType withSize(Type type, int64_t axis, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[axis] = size;
  return RankedTensorType::get(shape, tensor.getElementType(), tensor.getEncoding());
}

static Value createConstant(OpBuilder &b, Location loc, DenseElementsAttr value) {
  OperationState state(loc, onnxir::getOperationName("", "Constant"));
  state.addAttribute("value", value);
  state.addTypes(value.getType());
  return b.create(state)->getResult(0);
}

/// `what`: what the integers are to `op`.
static Value createIntegers(OpBuilder &b, Operation *op, StringRef what, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get(static_cast<int64_t>(values.size()), b.getI64Type());
  return createConstant(b, onnxir::nameBeside(op->getLoc(), what), DenseElementsAttr::get(type, values));
}

/// Erases what made an operand, if nothing reads it any more.
static void eraseUnread(Operation *op) {
  bool isComputed = op && onnxir::isOnnxOp(op) && !op->getNumRegions();
  if (!isComputed || !op->use_empty())
    return;
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    eraseUnread(operand.getDefiningOp());
}

static void replaceOperand(Operation *op, unsigned i, Value value) {
  Operation *before = op->getOperand(i).getDefiningOp();
  op->setOperand(i, value);
  eraseUnread(before);
}

namespace {
class Cutter {
public:
  Cutter(const GroupAnalysis &analysis, ArrayRef<bool> isGone) : analysis(analysis), isGone(isGone) {}

  void cutConstant(OpOperand &use, const GroupAxis &groups);
  void cutOperations();

private:
  void cutShape(Operation *op);
  void cutSplit(Operation *op);
  void cutSlice(Operation *op);
  void cutHeads(Operation *op);
  int64_t countKept(const GroupAxis &groups) const { return static_cast<int64_t>(groups.listKept(isGone).size()); }

  const GroupAnalysis &analysis;
  ArrayRef<bool> isGone;
};
} // namespace

void Cutter::cutConstant(OpOperand &use, const GroupAxis &groups) {
  auto elements = cast<DenseElementsAttr>(use.get().getDefiningOp()->getAttr("value"));
  auto type = withSize(elements.getType(), groups.axis, countKept(groups));
  SmallVector<int64_t, 0> kept = groups.listKept(isGone);
  ArrayRef<int64_t> shape = elements.getType().getShape();
  int64_t inner = 1, outer = 1;
  for (auto [dim, size] : llvm::enumerate(shape))
    (static_cast<int64_t>(dim) < groups.axis ? outer : inner) *= static_cast<int64_t>(dim) == groups.axis ? 1 : size;
  SmallVector<Attribute> all(elements.getValues<Attribute>()), left;
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t index : kept)
      for (int64_t k = 0; k < inner; ++k)
        left.push_back(all[(i * shape[groups.axis] + index) * inner + k]);
  OpBuilder b(use.getOwner());
  Operation *whole = use.get().getDefiningOp();
  use.set(createConstant(b, onnxir::nameBeside(whole->getLoc(), "/kept"), DenseElementsAttr::get(type, left)));
  if (!whole->use_empty())
    return;
  use.get().getDefiningOp()->setLoc(whole->getLoc());
  whole->erase();
}

/// `shape` with another element `index`, whoever computes it.
static Value replaceElement(OpBuilder &b, Operation *op, Value shape, int64_t index, int64_t size) {
  auto createNode = [&](StringRef type, ValueRange operands, int64_t count, StringRef what) {
    OperationState state(onnxir::nameBeside(op->getLoc(), what), onnxir::getOperationName("", type));
    state.addOperands(operands);
    if (type == "Concat")
      state.addAttribute("axis", b.getI64IntegerAttr(0));
    state.addTypes(RankedTensorType::get(count, b.getI64Type()));
    return b.create(state)->getResult(0);
  };
  int64_t count = cast<RankedTensorType>(shape.getType()).getDimSize(0);
  SmallVector<Value> pieces;
  auto slice = [&](int64_t begin, int64_t end, StringRef what) {
    if (begin == end)
      return;
    Value axis = createIntegers(b, op, (what + "/axis").str(), 0),
          first = createIntegers(b, op, (what + "/begin").str(), begin),
          last = createIntegers(b, op, (what + "/end").str(), end);
    pieces.push_back(createNode("Slice", {shape, first, last, axis}, end - begin, what));
  };
  slice(0, index, "/before");
  pieces.push_back(createIntegers(b, op, "/kept", size));
  slice(index + 1, count, "/after");
  return createNode("Concat", pieces, count, "/shape");
}

/// The shape of a Reshape or Expand, which is given as a constant, is joined from pieces, or is computed otherwise.
void Cutter::cutShape(Operation *op) {
  const GroupAxis *groups = analysis.find(op->getResult(0));
  std::optional<int64_t> index = groups ? getShapeIndex(op, groups->axis) : std::nullopt;
  if (!index)
    return;
  Value shape = op->getOperand(1);
  std::optional<int64_t> value = getShapeElement(shape, *index);
  if (value && *value <= (onnxir::getOpType(op) == "Expand" ? 1 : 0)) // what is left over, or as the input has it
    return;
  OpBuilder b(op);
  int64_t size = countKept(*groups);
  if (auto integers = getIntegers(shape)) {
    (*integers)[*index] = size;
    replaceOperand(op, 1, createIntegers(b, op, "/shape", *integers));
  } else if (isJoined(shape)) {
    Value kept = createIntegers(b, op, "/kept", size);
    Operation *concat = b.clone(*shape.getDefiningOp());
    concat->setLoc(onnxir::nameBeside(op->getLoc(), "/shape"));
    concat->setOperand(*index, kept);
    replaceOperand(op, 1, concat->getResult(0));
  } else {
    replaceOperand(op, 1, replaceElement(b, op, shape, *index, size));
  }
}

/// The types of the parts are their sizes already.
void Cutter::cutSplit(Operation *op) {
  const GroupAxis *groups = analysis.find(op->getOperand(0));
  auto axis = op->getAttrOfType<IntegerAttr>("axis");
  auto rank = cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
  int64_t split = axis ? axis.getInt() : 0;
  if (!groups || (split < 0 ? split + rank : split) != groups->axis)
    return;
  SmallVector<int64_t> sizes;
  for (Type part : op->getResultTypes())
    sizes.push_back(cast<RankedTensorType>(part).getDimSize(groups->axis));
  OpBuilder b(op);
  if (op->hasAttr("split")) { // before opset 13
    op->setAttr("split", b.getDenseI64ArrayAttr(sizes));
    return;
  }
  op->removeAttr("num_outputs");
  op->setOperands({op->getOperand(0), createIntegers(b, op, "/sizes", sizes)});
}

void Cutter::cutSlice(Operation *op) {
  const GroupAxis *groups = analysis.find(op->getOperand(0));
  auto axes = getIntegers(op->getOperand(3));
  auto part = cast<RankedTensorType>(op->getResult(0).getType());
  if (!groups || axes->size() != 1 || (axes->front() + part.getRank()) % part.getRank() != groups->axis)
    return;
  int64_t start = getIntegers(op->getOperand(1))->front();
  SmallVector<int64_t, 0> kept = groups->listKept(isGone);
  int64_t begin = llvm::lower_bound(kept, start) - kept.begin();
  OpBuilder b(op);
  replaceOperand(op, 1, createIntegers(b, op, "/begin", begin));
  replaceOperand(op, 2, createIntegers(b, op, "/end", begin + part.getDimSize(groups->axis)));
}

/// Attributes that say numbers of heads, by the share that is left of what the node makes.
void Cutter::cutHeads(Operation *op) {
  const GroupAxis *groups = analysis.find(op->getResult(0));
  if (!groups)
    return;
  int64_t after = cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(groups->axis),
          before = static_cast<int64_t>(groups->groupOf.size());
  for (StringRef name : {"num_heads", "kv_num_heads", "q_num_heads"})
    if (auto heads = op->getAttrOfType<IntegerAttr>(name))
      op->setAttr(name, OpBuilder(op).getI64IntegerAttr(heads.getInt() * after / before));
}

void Cutter::cutOperations() {
  // Listed first: what computed a shape is erased with it.
  SmallVector<std::pair<Operation *, void (Cutter::*)(Operation *)>> cuts;
  using Cut = void (Cutter::*)(Operation *);
  static const llvm::StringMap<Cut> known = {{"Reshape", &Cutter::cutShape},
                                             {"Expand", &Cutter::cutShape},
                                             {"Split", &Cutter::cutSplit},
                                             {"Slice", &Cutter::cutSlice},
                                             {"Attention", &Cutter::cutHeads},
                                             {"MultiHeadAttention", &Cutter::cutHeads},
                                             {"GroupQueryAttention", &Cutter::cutHeads},
                                             {"RotaryEmbedding", &Cutter::cutHeads}};
  for (Operation *op : analysis.touched)
    if (Cut cut = onnxir::isOnnxOp(op) ? known.lookup(onnxir::getOpType(op)) : nullptr)
      cuts.emplace_back(op, cut);
  for (auto [op, cut] : cuts)
    (this->*cut)(op);
}

void cutGroups(const GroupAnalysis &analysis, ArrayRef<bool> isGone, ModuleOp module) {
  auto cutType = [&](Type type, const GroupAxis &groups) {
    return withSize(type, groups.axis, static_cast<int64_t>(groups.listKept(isGone).size()));
  };
  Cutter cutter(analysis, isGone);
  for (const auto &[value, groups] : analysis.values)
    Value(value).setType(cutType(value.getType(), groups));
  for (const auto &[use, groups] : analysis.constants)
    cutter.cutConstant(*use, groups);
  cutter.cutOperations();
  for (const auto &[id, groups] : analysis.slots) {
    auto state = module.lookupSymbol<StateOp>(id.first);
    SmallVector<Attribute> slots(state.getSlots().getValue());
    SlotAttr slot = state.getSlotAttr(id.second);
    slots[id.second] = SlotAttr::get(module.getContext(), slot.getName(), cutType(slot.getType(), groups),
                                     slot.getAxis(), slot.getBeginning());
    state.setSlotsAttr(ArrayAttr::get(module.getContext(), slots));
  }
}

void updateFunctions(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    Block &body = function.getBody().front();
    function.setType(FunctionType::get(module.getContext(), body.getArgumentTypes(),
                                       function.getBody().back().getTerminator()->getOperandTypes()));
  }
}

} // namespace hone::prunable
