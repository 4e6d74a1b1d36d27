// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A worklist over the operations around what is marked. Marks are only ever added, so that it ends; what disagrees with a mark, and
// what is read by an operation without a rule, is an obstacle.

#include "hone/Transforms/UnitAnalysis.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone::units {

SmallVector<int64_t, 0> UnitAxis::listKept(ArrayRef<bool> isGone) const {
  SmallVector<int64_t, 0> kept;
  for (auto [index, unit] : llvm::enumerate(unitOf))
    if (unit < 0 || !isGone[unit])
      kept.push_back(static_cast<int64_t>(index));
  return kept;
}

SharedUses::SharedUses(ModuleOp module) : module(module) {
  module.walk([&](Operation *op) {
    if (auto get = dyn_cast<GetParamOp>(op))
      reads[get.getNameAttr().getAttr()].push_back(get);
    else if (auto append = dyn_cast<KvAppendOp>(op))
      slots[append.getSlotId()].push_back(append);
    else if (auto view = dyn_cast<KvViewOp>(op))
      slots[view.getSlotId()].push_back(view);
    else if (auto replacement = dyn_cast<KvReplaceOp>(op))
      slots[replacement.getSlotId()].push_back(replacement);
  });
}

int64_t countElements(const SharedUses &shared) {
  int64_t count = 0;
  for (auto param : ModuleOp(shared.module).getOps<ParamOp>())
    if (shared.reads.contains(param.getSymNameAttr()) && isa<FloatType>(param.getTensorType().getElementType()))
      count += param.getTensorType().getNumElements();
  return count;
}

std::string getObstacleToCut(ParamOp param) {
  RankedTensorType type = param.getTensorType();
  bool isStored = !type.getEncoding() || isa<StoredAttr>(type.getEncoding());
  if (!type.getElementType().isF32() || !isStored || isa<ConvertedAttr>(param.getStorage()))
    return (param.getSymName() + " does not hold f32 as they are").str();
  return "";
}

SmallVector<int32_t, 0> repeat(ArrayRef<int32_t> unitOf, int64_t count) {
  SmallVector<int32_t, 0> repeated;
  for (int32_t unit : unitOf)
    repeated.append(count, unit);
  return repeated;
}

SmallVector<int32_t, 0> sampleWhole(ArrayRef<int32_t> unitOf, int64_t count) {
  SmallVector<int32_t, 0> sampled;
  for (size_t i = 0; i < unitOf.size(); i += count) {
    if (unitOf[i] < 0)
      return {};
    sampled.push_back(unitOf[i]);
  }
  return sampled;
}

static std::string getOperationName(Operation *op) {
  return onnxir::isOnnxOp(op) ? onnxir::getOpType(op).str() : op->getName().getStringRef().str();
}

//===- Marks ------------------------------------------------------------------------------------------------------===//

void UnitAnalysis::refuse(const Twine &reason) {
  if (obstacle.empty())
    obstacle = reason.str();
}

const UnitAxis *UnitAnalysis::find(Value value) const {
  const auto *found = values.find(value);
  return found == values.end() ? nullptr : &found->second;
}

const UnitAxis *UnitAnalysis::find(OpOperand &use) const {
  const auto *found = constants.find(&use);
  return found == constants.end() ? find(use.get()) : &found->second;
}

/// Whether something new is known of it.
bool UnitAnalysis::join(UnitAxis &known, bool isNew, int64_t axis, ArrayRef<int32_t> unitOf) {
  if (isNew) {
    known.axis = axis;
    known.unitOf.assign(unitOf.begin(), unitOf.end());
    return true;
  }
  if (known.axis != axis || known.unitOf.size() != unitOf.size()) {
    refuse("its units lie along two dimensions of a tensor");
    return false;
  }
  bool isChanged = false;
  for (auto [old, added] : llvm::zip_equal(known.unitOf, unitOf)) {
    if (added < 0 || old == added)
      continue;
    if (old >= 0)
      refuse("an index of a tensor is of two units");
    else
      isChanged = true, old = added;
  }
  return isChanged;
}

void UnitAnalysis::enqueue(Value value) {
  if (Operation *op = value.getDefiningOp())
    pending.insert(op);
  for (Operation *user : value.getUsers())
    pending.insert(user);
}

/// Whether a tensor of `type` can have these units.
static bool isOfSize(Type type, int64_t axis, size_t size) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && axis < tensor.getRank() && tensor.getDimSize(axis) == static_cast<int64_t>(size);
}

static bool isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return op && onnxir::isOnnxOp(op) && onnxir::getOpType(op) == "Constant";
}

void UnitAnalysis::mark(Value value, int64_t axis, ArrayRef<int32_t> unitOf) {
  if (!obstacle.empty() || llvm::all_of(unitOf, [](int32_t unit) { return unit < 0; }))
    return;
  if (isConstant(value) || !isOfSize(value.getType(), axis, unitOf.size()))
    return refuse("a tensor that would have its units cannot");
  auto [entry, isNew] = values.try_emplace(value);
  if (!join(entry->second, isNew, axis, unitOf))
    return;
  UnitAxis known = entry->second; // what follows may move it
  enqueue(value);
  if (auto get = value.getDefiningOp<GetParamOp>())
    return markParam(get.getNameAttr().getAttr(), axis, known.unitOf);
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return;
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function || !SymbolTable::symbolKnownUseEmpty(function, shared.module))
    refuse("a region or a call passes its units on");
}

void UnitAnalysis::mark(OpOperand &use, int64_t axis, ArrayRef<int32_t> unitOf) {
  if (!isConstant(use.get()))
    return mark(use.get(), axis, unitOf);
  Attribute elements = use.get().getDefiningOp()->getAttr("value");
  if (!isOfSize(use.get().getType(), axis, unitOf.size()) || !isa_and_nonnull<DenseElementsAttr>(elements))
    return refuse("a constant that has its units cannot be cut");
  auto [entry, isNew] = constants.try_emplace(&use);
  if (join(entry->second, isNew, axis, unitOf))
    pending.insert(use.getOwner());
}

void UnitAnalysis::markParam(StringAttr name, int64_t axis, ArrayRef<int32_t> unitOf) {
  auto [entry, isNew] = params.try_emplace(name);
  if (!join(entry->second, isNew, axis, unitOf))
    return;
  for (GetParamOp read : shared.reads.lookup(name))
    mark(read.getResult(), axis, unitOf);
}

void UnitAnalysis::markSlot(SlotId slot, int64_t axis, ArrayRef<int32_t> unitOf) {
  auto [entry, isNew] = slots.try_emplace(slot);
  if (!join(entry->second, isNew, axis, unitOf))
    return;
  for (Operation *op : shared.slots.lookup(slot)) {
    if (isa<KvReplaceOp>(op))
      return refuse("a state that is replaced as a whole holds them");
    for (Value value : op->getResults())
      if (isa<RankedTensorType>(value.getType()))
        mark(value, axis, unitOf);
  }
}

void UnitAnalysis::run() {
  while (!pending.empty() && obstacle.empty()) {
    Operation *op = pending.pop_back_val();
    touched.insert(op);
    visit(op);
  }
  isSettled = true;
  for (size_t i = 0; i < touched.size() && obstacle.empty(); ++i)
    visit(touched[i]);
}

//===- Operations -------------------------------------------------------------------------------------------------===//

void UnitAnalysis::visit(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return visitLinear(linear);
  if (isa<GatedMlpOp, MlpOp>(op))
    return visitMlp(op);
  if (auto attention = dyn_cast<AttentionOp>(op))
    return visitAttention(attention);
  if (auto append = dyn_cast<KvAppendOp>(op))
    return visitAppend(append);
  if (auto view = dyn_cast<KvViewOp>(op)) {
    if (const UnitAxis *units = find(view.getResult()))
      markSlot(view.getSlotId(), units->axis, SmallVector<int32_t, 0>(units->unitOf));
    return;
  }
  if (isa<RmsNormOp, LayerNormOp, RopeOp>(op))
    return visitNorm(op);
  if (isa<tensor::CastOp>(op))
    return visitElementwise(op, *this);
  if (isa<tensor::DimOp>(op))
    return visitTensorDim(op, *this);
  if (isa<GetParamOp, func::ReturnOp>(op))
    return;
  if (onnxir::isOnnxOp(op))
    return visitOnnx(op, *this);
  refuse(getOperationName(op) + " reads or makes what its units are in");
}

void UnitAnalysis::visitLinear(LinearOp linear) {
  int64_t last = linear.getX().getType().getRank() - 1;
  // What is summed over: the last dimension of x and the columns of the weight.
  auto link = [&](Value a, int64_t axisOfA, Value b, int64_t axisOfB) {
    for (auto [from, fromAxis, to, toAxis] : {std::tuple(a, axisOfA, b, axisOfB), std::tuple(b, axisOfB, a, axisOfA)})
      if (const UnitAxis *units = to ? find(from) : nullptr; units && units->axis == fromAxis)
        mark(to, toAxis, SmallVector<int32_t, 0>(units->unitOf));
  };
  link(linear.getX(), last, linear.getWeight(), 1);
  link(linear.getResult(), last, linear.getWeight(), 0);
  if (const UnitAxis *units = find(linear.getResult()); units && linear.getBias())
    mark(linear.getBiasMutable()[0], 0, SmallVector<int32_t, 0>(units->unitOf));
  if (linear.getBias() && find(linear.getBias()))
    mark(linear.getResult(), last, SmallVector<int32_t, 0>(find(linear.getBias())->unitOf));
  for (Value value : {Value(linear.getX()), Value(linear.getResult())})
    if (const UnitAxis *units = find(value); units && units->axis != last)
      refuse("a product keeps its units apart");
}

/// Operands of `op` with the hidden channels of a feed-forward block, and the dimensions that they have there.
static SmallVector<std::pair<OpOperand *, int64_t>> listHidden(Operation *op) {
  SmallVector<std::pair<OpOperand *, int64_t>> hidden;
  auto add = [&](MutableOperandRange operands, int64_t axis) {
    for (OpOperand &operand : operands)
      hidden.emplace_back(&operand, axis);
  };
  auto addShared = [&](auto mlp) {
    hidden.emplace_back(&mlp.getUpMutable(), 0);
    hidden.emplace_back(&mlp.getDownMutable(), 1);
    add(mlp.getUpBiasMutable(), 0);
  };
  if (auto gated = dyn_cast<GatedMlpOp>(op)) {
    addShared(gated);
    hidden.emplace_back(&gated.getGateMutable(), 0);
    add(gated.getGateBiasMutable(), 0);
  } else {
    addShared(cast<MlpOp>(op));
  }
  return hidden;
}

void UnitAnalysis::visitMlp(Operation *op) {
  SmallVector<std::pair<OpOperand *, int64_t>> hidden = listHidden(op);
  for (OpOperand &operand : op->getOpOperands()) {
    const UnitAxis *units = find(operand);
    if (!units)
      continue;
    auto *place = llvm::find_if(hidden, [&](auto entry) { return entry.first == &operand; });
    if (place == hidden.end() || place->second != units->axis)
      return refuse("a feed-forward block keeps its units apart");
    SmallVector<int32_t, 0> unitOf(units->unitOf);
    for (auto [other, axis] : hidden)
      mark(*other, axis, unitOf);
  }
  if (find(op->getResult(0)))
    refuse("a feed-forward block makes its units");
}

void UnitAnalysis::visitAttention(AttentionOp attention) {
  int64_t heads = attention.getQuery().getType().getDimSize(1), shared = attention.getKey().getType().getDimSize(1);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(shared))
    return refuse("attention has a number of heads that is not known");
  auto isAHead = [&](OpOperand &use) {
    return &use == &attention.getKeyMutable() || &use == &attention.getValueMutable();
  };
  // What each operand has for a head: nothing, where a dimension of the bias is repeated.
  auto getAxis = [&](OpOperand &use) -> std::optional<int64_t> {
    auto type = cast<RankedTensorType>(use.get().getType());
    int64_t axis = type.getRank() == 4 ? 1 : 0;
    bool hasHeads = type.getRank() == 4 || use.get() == attention.getAlibi() || use.get() == attention.getSinks();
    return hasHeads && type.getDimSize(axis) != 1 ? std::optional(axis) : std::nullopt;
  };
  SmallVector<int32_t, 0> unitOf;
  auto read = [&](const UnitAxis *units, int64_t axis, int64_t perHead) {
    if (units && units->axis != axis)
      refuse("attention mixes its units");
    else if (units && unitOf.empty())
      unitOf = sampleWhole(units->unitOf, perHead);
  };
  for (OpOperand &use : attention->getOpOperands())
    read(find(use), getAxis(use).value_or(-1), isAHead(use) ? 1 : heads / shared);
  read(find(attention.getResult()), 1, heads / shared);
  if (unitOf.empty())
    return refuseLater("attention mixes its units");
  SmallVector<int32_t, 0> ofQueries = repeat(unitOf, heads / shared);
  for (OpOperand &use : attention->getOpOperands())
    if (std::optional<int64_t> axis = getAxis(use); axis && !(shared == 1 && isAHead(use)))
      mark(use, *axis, isAHead(use) ? unitOf : ofQueries);
  mark(attention.getResult(), 1, ofQueries);
}

/// Operations that treat rows one by one, and read all of a row.
void UnitAnalysis::visitNorm(Operation *op) {
  Value x = op->getOperand(0), result = op->getResult(0);
  int64_t last = cast<RankedTensorType>(x.getType()).getRank() - 1;
  for (OpOperand &use : op->getOpOperands().drop_front())
    if (find(use))
      return refuse("a norm or rotation has its units in one row");
  for (auto [from, to] : {std::pair(x, result), std::pair(result, x)})
    if (const UnitAxis *units = find(from)) {
      if (units->axis == last)
        return refuse("a norm or rotation has its units in one row");
      mark(to, units->axis, SmallVector<int32_t, 0>(units->unitOf));
    }
}

void UnitAnalysis::visitAppend(KvAppendOp append) {
  for (Value value : {Value(append.getFresh()), Value(append.getAll())})
    if (const UnitAxis *found = find(value)) {
      UnitAxis units = *found;
      mark(append.getFresh(), units.axis, units.unitOf);
      mark(append.getAll(), units.axis, units.unitOf);
      markSlot(append.getSlotId(), units.axis, units.unitOf);
    }
}

} // namespace hone::units
