// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A worklist over the operations around what is marked. Marks are only ever added, so that it ends; what disagrees with a mark, and
// what is read by an operation without a rule, is a blocker.

#include "hone/Transforms/GroupAnalysis.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone::prunable {

SmallVector<int64_t, 0> GroupAxis::listKept(ArrayRef<bool> isGone) const {
  SmallVector<int64_t, 0> kept;
  for (auto [index, group] : llvm::enumerate(groupOf))
    if (group < 0 || !isGone[group])
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

std::string getCutBlocker(ParamOp param) {
  RankedTensorType type = param.getTensorType();
  bool isStored = !type.getEncoding() || isa<StoredAttr>(type.getEncoding());
  if (!type.getElementType().isF32() || !isStored || isa<ConvertedAttr>(param.getStorage()))
    return (param.getSymName() + " does not hold f32 as they are").str();
  return "";
}

SmallVector<int32_t, 0> repeat(ArrayRef<int32_t> groupOf, int64_t count) {
  SmallVector<int32_t, 0> repeated;
  for (int32_t group : groupOf)
    repeated.append(count, group);
  return repeated;
}

SmallVector<int32_t, 0> sampleWhole(ArrayRef<int32_t> groupOf, int64_t count) {
  SmallVector<int32_t, 0> sampled;
  for (size_t i = 0; i < groupOf.size(); i += count) {
    if (groupOf[i] < 0)
      return {};
    sampled.push_back(groupOf[i]);
  }
  return sampled;
}

static std::string getOperationName(Operation *op) {
  return onnxir::isOnnxOp(op) ? onnxir::getOpType(op).str() : op->getName().getStringRef().str();
}

//===- Marks ------------------------------------------------------------------------------------------------------===//

void GroupAnalysis::refuse(const Twine &reason) {
  if (blocker.empty())
    blocker = reason.str();
}

const GroupAxis *GroupAnalysis::find(Value value) const {
  const auto *found = values.find(value);
  return found == values.end() ? nullptr : &found->second;
}

const GroupAxis *GroupAnalysis::find(OpOperand &use) const {
  const auto *found = constants.find(&use);
  return found == constants.end() ? find(use.get()) : &found->second;
}

/// Whether something new is known of it.
bool GroupAnalysis::join(GroupAxis &known, bool isNew, int64_t axis, ArrayRef<int32_t> groupOf) {
  if (isNew) {
    known.axis = axis;
    known.groupOf.assign(groupOf.begin(), groupOf.end());
    return true;
  }
  if (known.axis != axis || known.groupOf.size() != groupOf.size()) {
    refuse("its groups lie along two dimensions of a tensor");
    return false;
  }
  bool isChanged = false;
  for (auto [old, added] : llvm::zip_equal(known.groupOf, groupOf)) {
    if (added < 0 || old == added)
      continue;
    if (old >= 0)
      refuse("an index of a tensor is of two groups");
    else
      isChanged = true, old = added;
  }
  return isChanged;
}

void GroupAnalysis::enqueue(Value value) {
  if (Operation *op = value.getDefiningOp())
    pending.insert(op);
  for (Operation *user : value.getUsers())
    pending.insert(user);
}

/// Whether a tensor of `type` can have these groups.
static bool isOfSize(Type type, int64_t axis, size_t size) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && axis < tensor.getRank() && tensor.getDimSize(axis) == static_cast<int64_t>(size);
}

static bool isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return op && onnxir::isOnnxOp(op) && onnxir::getOpType(op) == "Constant";
}

void GroupAnalysis::mark(Value value, int64_t axis, ArrayRef<int32_t> groupOf) {
  if (!blocker.empty() || llvm::all_of(groupOf, [](int32_t group) { return group < 0; }))
    return;
  if (isConstant(value) || !isOfSize(value.getType(), axis, groupOf.size()))
    return refuse("a tensor that would have its groups cannot");
  auto [entry, isNew] = values.try_emplace(value);
  if (!join(entry->second, isNew, axis, groupOf))
    return;
  GroupAxis known = entry->second; // what follows may move it
  enqueue(value);
  if (auto get = value.getDefiningOp<GetParamOp>())
    return markParam(get.getNameAttr().getAttr(), axis, known.groupOf);
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return;
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function || !SymbolTable::symbolKnownUseEmpty(function, shared.module))
    refuse("a region or a call passes its groups on");
}

void GroupAnalysis::mark(OpOperand &use, int64_t axis, ArrayRef<int32_t> groupOf) {
  if (!isConstant(use.get()))
    return mark(use.get(), axis, groupOf);
  Attribute elements = use.get().getDefiningOp()->getAttr("value");
  if (!isOfSize(use.get().getType(), axis, groupOf.size()) || !isa_and_nonnull<DenseElementsAttr>(elements))
    return refuse("a constant that has its groups cannot be cut");
  auto [entry, isNew] = constants.try_emplace(&use);
  if (join(entry->second, isNew, axis, groupOf))
    pending.insert(use.getOwner());
}

void GroupAnalysis::markParam(StringAttr name, int64_t axis, ArrayRef<int32_t> groupOf) {
  auto [entry, isNew] = params.try_emplace(name);
  if (!join(entry->second, isNew, axis, groupOf))
    return;
  for (GetParamOp read : shared.reads.lookup(name))
    mark(read.getResult(), axis, groupOf);
}

void GroupAnalysis::markSlot(SlotId slot, int64_t axis, ArrayRef<int32_t> groupOf) {
  auto [entry, isNew] = slots.try_emplace(slot);
  if (!join(entry->second, isNew, axis, groupOf))
    return;
  for (Operation *op : shared.slots.lookup(slot)) {
    if (isa<KvReplaceOp>(op))
      return refuse("a state that is replaced as a whole holds them");
    for (Value value : op->getResults())
      if (isa<RankedTensorType>(value.getType()))
        mark(value, axis, groupOf);
  }
}

void GroupAnalysis::run() {
  while (!pending.empty() && blocker.empty()) {
    Operation *op = pending.pop_back_val();
    touched.insert(op);
    visit(op);
  }
  isComplete = true;
  for (size_t i = 0; i < touched.size() && blocker.empty(); ++i)
    visit(touched[i]);
}

//===- Operations -------------------------------------------------------------------------------------------------===//

void GroupAnalysis::visit(Operation *op) {
  if (auto grouped = dyn_cast<GroupedOpInterface>(op))
    return visitGrouped(grouped);
  if (auto append = dyn_cast<KvAppendOp>(op))
    return visitAppend(append);
  if (auto view = dyn_cast<KvViewOp>(op)) {
    if (const GroupAxis *groups = find(view.getResult()))
      markSlot(view.getSlotId(), groups->axis, SmallVector<int32_t, 0>(groups->groupOf));
    return;
  }
  if (isa<tensor::CastOp>(op))
    return visitElementwise(op, *this);
  if (isa<tensor::DimOp>(op))
    return visitTensorDim(op, *this);
  if (isa<GetParamOp, func::ReturnOp>(op))
    return;
  if (onnxir::isOnnxOp(op))
    return visitOnnx(op, *this);
  refuse(getOperationName(op) + " reads or makes what its groups are in");
}

/// Marks what is cut together with a dimension of one of `dims`, whose groups are `known`; whether there is anything.
bool GroupAnalysis::markLinked(Operation *op, ArrayRef<GroupDim> dims, const GroupDim &from, const GroupAxis &known,
                               bool coverAll) {
  SmallVector<int32_t, 0> groups =
      coverAll ? sampleWhole(known.groupOf, from.each) : SmallVector<int32_t, 0>(known.groupOf);
  if (groups.empty())
    return false;
  for (const GroupDim &to : dims) {
    SmallVector<int32_t, 0> groupOf = repeat(groups, to.each);
    if (to.operand)
      mark(*to.operand, to.dim, groupOf);
    else
      mark(op->getResult(to.result), to.dim, groupOf);
  }
  return true;
}

void GroupAnalysis::visitGrouped(GroupedOpInterface op) {
  GroupRules rules = op.getGroupRules();
  if (!rules.blocker.empty())
    return refuse(rules.blocker);
  bool isFollowed = false;
  auto follow = [&](OpOperand *operand, unsigned result, const GroupAxis *found) {
    if (!found)
      return;
    GroupAxis known = *found; // what follows may move it
    for (const SmallVector<GroupDim> &dims : rules.linked)
      for (const GroupDim &dim : dims)
        if (dim.operand == operand && dim.result == result && dim.dim == known.axis) {
          isFollowed |= markLinked(op, dims, dim, known, rules.coverAll);
          return;
        }
    refuse(operand ? rules.blockerOfOperands : rules.blockerOfResults);
  };
  for (OpOperand &use : op->getOpOperands())
    follow(&use, 0, find(use));
  for (OpResult result : op->getResults())
    follow(nullptr, result.getResultNumber(), find(result));
  if (!isFollowed)
    refuseLater(rules.blockerOfOperands);
}

void GroupAnalysis::visitAppend(KvAppendOp append) {
  for (Value value : {Value(append.getFresh()), Value(append.getAll())})
    if (const GroupAxis *found = find(value)) {
      GroupAxis groups = *found;
      mark(append.getFresh(), groups.axis, groups.groupOf);
      mark(append.getAll(), groups.axis, groups.groupOf);
      markSlot(append.getSlotId(), groups.axis, groups.groupOf);
    }
}

} // namespace hone::prunable
