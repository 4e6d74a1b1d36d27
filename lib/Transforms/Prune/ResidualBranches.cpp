// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A branch ends at the first sum of two values that both depend on tokens. What it alone computes is what the residual stream does not
// depend on and nobody else reads; a layer goes if its keys and values are among that.

#include "ResidualBranches.h"

#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/GroupAnalysis.h"
#include "hone/Transforms/Rows.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/BitVector.h"

#include <numeric>

using namespace mlir;

namespace hone::prune {

using namespace prunable;
using onnxir::isNode;

/// The kind of the block of a layer that `op` is, or nothing.
static std::optional<GroupKind> getBlockKind(Operation *op) {
  if (std::optional<InnerGroups> groups = findInnerGroups(op))
    return groups->kind;
  return isNode(op, "GroupQueryAttention") ? std::optional(GroupKind::Heads) : std::nullopt;
}

/// The name of the parameter that a weight is, or null.
static StringAttr getParamName(const std::optional<WeightUse> &weight) {
  auto get = weight ? weight->weight->get().getDefiningOp<GetParamOp>() : GetParamOp();
  return get ? get.getNameAttr().getAttr() : StringAttr();
}

static bool isFixed(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<GetParamOp>(op) || isNode(op, "Constant");
}

/// What becomes of `value` on its way to the residual stream; null where that is not one operation.
static Operation *getNext(Value value) {
  Operation *next = nullptr;
  for (Operation *user : value.getUsers()) {
    if (readsSizes(user))
      continue;
    if (next && next != user)
      return nullptr;
    next = user;
  }
  return next;
}

/// A norm of com.microsoft of the sum of its first two operands.
static bool isSkipNorm(Operation *op) {
  return isNode(op, "SkipSimplifiedLayerNormalization") || isNode(op, "SkipLayerNormalization");
}

/// The sum that such a norm, or an addition, makes; null where nobody asks the norm for it.
static Value getSum(Operation *add) {
  constexpr unsigned kSum = 3; // result of the norms
  if (!isSkipNorm(add))
    return add->getResult(0);
  bool isMade = add->getNumResults() > kSum && isa<RankedTensorType>(add->getResult(kSum).getType());
  return isMade ? add->getResult(kSum) : Value();
}

/// Follows what `source` computes to the sum with the residual stream.
static void findSum(Operation *source, Branch &branch) {
  if (StringAttr last = getParamName(findWriter(source)))
    branch.weight = last;
  Value value = source->getResult(0);
  while (Operation *next = getNext(value)) {
    bool isSum = isSkipNorm(next) || isNode(next, "Add");
    if (isSum && !isFixed(next->getOperand(0)) && !isFixed(next->getOperand(1))) {
      branch.other = next->getOperand(next->getOperand(0) == value ? 1 : 0);
      branch.add = branch.other.getType() == next->getResult(0).getType() ? next : nullptr;
      return;
    }
    StringAttr weight = getParamName(findProduct(next));
    if (!branch.weight)
      branch.weight = weight;
    bool isOnTheWay = weight || isa<NormOpInterface, tensor::CastOp>(next) || isNode(next, "Transpose") ||
                      isNode(next, "Reshape") || isNode(next, "Cast") || isNode(next, "Identity") ||
                      isNode(next, "Add") || isNode(next, "Mul") || isNode(next, "SimplifiedLayerNormalization");
    if (!isOnTheWay || next->getNumResults() != 1)
      return;
    value = next->getResult(0);
  }
}

/// Everything that `value` is computed from.
static void collect(Value value, llvm::SetVector<Operation *> &ops, const llvm::SetVector<Operation *> *without) {
  SmallVector<Value> pending{value};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (op && !(without && without->contains(op)) && ops.insert(op))
      pending.append(op->operand_begin(), op->operand_end());
  }
}

/// The values that a Concat or a node of attention extends, if they are arguments: pasts.
static SmallVector<BlockArgument> listPasts(Operation *op) {
  SmallVector<BlockArgument> pasts;
  auto add = [&](unsigned operand) {
    if (operand < op->getNumOperands())
      if (auto past = dyn_cast<BlockArgument>(op->getOperand(operand)))
        pasts.push_back(past);
  };
  if (isNode(op, "Concat"))
    add(0);
  // com.microsoft.Attention keeps both in one.
  bool isMicrosoft = onnxir::isOnnxOp(op) && onnxir::getDomain(op) == "com.microsoft";
  unsigned key = isNode(op, "GroupQueryAttention")  ? 3
                 : isNode(op, "MultiHeadAttention") ? 6
                 : isNode(op, "Attention")          ? 4
                                                    : 0;
  if (key != 0) {
    add(key);
    if (!isNode(op, "Attention") || !isMicrosoft)
      add(key + 1);
  }
  return pasts;
}

/// Whether only operations of `branch` read `value`, the sum with the residual stream, or whoever calls.
static bool isReadByItAlone(Value value, const Branch &branch, bool mayBeReturned) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return branch.owned.contains(user) || user == branch.add || llvm::is_contained(branch.appends, user) ||
           (mayBeReturned && isa<func::ReturnOp>(user));
  });
}

/// Leaves in `owned` what is dead without the branch.
static void closeOwned(Branch &branch) {
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    SmallVector<Operation *> ops(branch.owned.getArrayRef());
    for (Operation *op : ops) {
      bool isPresent = !listPasts(op).empty();
      bool isOwned = !isa<KvAppendOp>(op) && llvm::all_of(op->getResults(), [&](Value result) {
        return isReadByItAlone(result, branch, isPresent);
      });
      if (!isOwned)
        isChanged |= branch.owned.remove(op);
    }
  }
}

Branch findBranch(Operation *source, StringAttr weight) {
  Branch branch;
  branch.weight = weight;
  findSum(source, branch);
  if (!branch.add || !branch.weight || !isa<func::FuncOp>(branch.add->getParentOp())) {
    branch.blocker = "what it computes is not added to a residual stream";
    return branch;
  }
  llvm::SetVector<Operation *> stream;
  collect(branch.other, stream, nullptr);
  Value value = branch.add->getOperand(branch.add->getOperand(0) == branch.other ? 1 : 0);
  unsigned bias = isNode(branch.add, "SkipSimplifiedLayerNormalization") ? 3 : 4; // that a norm adds as well
  if (bias < branch.add->getNumOperands())
    collect(branch.add->getOperand(bias), branch.owned, &stream);
  collect(value, branch.owned, &stream);
  for (Operation *op : branch.owned)
    if (auto append = dyn_cast<KvAppendOp>(op))
      branch.appends.push_back(append);
  closeOwned(branch);
  if (!branch.owned.contains(source))
    branch.blocker = "something else reads what it computes";
  for (KvAppendOp append : branch.appends)
    if (!isReadByItAlone(append.getAll(), branch, /*mayBeReturned=*/false))
      branch.blocker = "something else reads its keys or values";
  return branch;
}

/// The branches of `function`, attention and feed-forward by turns.
static SmallVector<Branch, 0> listBranches(func::FuncOp function) {
  SmallVector<Branch, 0> attention, feedForward, branches;
  function.walk([&](Operation *op) {
    if (std::optional<GroupKind> kind = getBlockKind(op))
      (*kind == GroupKind::Heads ? attention : feedForward).push_back(findBranch(op, StringAttr()));
  });
  if (attention.size() != feedForward.size())
    return {};
  for (auto [first, second] : llvm::zip_equal(attention, feedForward)) {
    branches.push_back(std::move(first));
    branches.push_back(std::move(second));
  }
  return branches;
}

static int64_t countOwned(const Branch &branch, const SymbolTable &symbols) {
  int64_t count = 0;
  for (Operation *op : branch.owned)
    if (auto get = dyn_cast<GetParamOp>(op))
      count += symbols.lookup<ParamOp>(get.getName()).getTensorType().getNumElements();
  return count;
}

/// A past that others than the branch ask for its size: another one has the same.
static bool isOnlyMeasured(BlockArgument past, const Branch &branch) {
  return llvm::all_of(past.getUsers(),
                      [&](Operation *user) { return branch.owned.contains(user) || isNode(user, "Shape"); });
}

std::string getPastsBlocker(const Branch &branch) {
  for (Operation *op : branch.owned)
    for (BlockArgument past : listPasts(op))
      if (!isOnlyMeasured(past, branch))
        return "something else reads its past";
  return "";
}

static std::string getBlocker(const Branch &branch, const SharedUses &shared, const SymbolTable &symbols,
                              const MeasuredInputs &inputs) {
  if (!branch.blocker.empty())
    return branch.blocker;
  for (KvAppendOp append : branch.appends)
    if (llvm::any_of(shared.slots.lookup(append.getSlotId()), llvm::IsaPred<KvViewOp>))
      return "something else reads its slots";
  if (std::string blocker = getPastsBlocker(branch); !blocker.empty())
    return blocker;
  auto weight = symbols.lookup<ParamOp>(branch.weight);
  if (std::string blocker = getCutBlocker(weight); !blocker.empty())
    return blocker;
  return inputs.has(weight) ? "" : ("nothing was measured of the inputs of " + branch.weight.getValue()).str();
}

SmallVector<ResidualLayer> findLayers(ModuleOp module, const MeasuredInputs &inputs) {
  SmallVector<ResidualLayer> layers;
  SymbolTable symbols(module);
  SharedUses shared(module);
  for (auto function : module.getOps<func::FuncOp>()) {
    SmallVector<Branch, 0> branches = listBranches(function);
    if (branches.empty())
      continue;
    if (!layers.empty() && branches.size() != 2 * layers.size())
      return {};
    bool isFirst = layers.empty();
    for (auto [number, branch] : llvm::enumerate(branches)) {
      if (isFirst && number % 2 == 0)
        layers.push_back({branch.add ? branch.add->getLoc() : function.getLoc(), {}, {}, 0, {}});
      ResidualLayer &layer = layers[number / 2];
      if (isFirst) {
        layer.weights.push_back(branch.weight);
        layer.elements += countOwned(branch, symbols);
      } else if (layer.weights[number % 2] != branch.weight) {
        return {};
      }
      if (layer.blocker.empty())
        layer.blocker = getBlocker(branch, shared, symbols, inputs);
      layer.branches.push_back(std::move(branch));
    }
  }
  return layers;
}

FailureOr<double> measureTables(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::SetVector<StringAttr> tables;
  module.walk([&](WeightedOpInterface op) {
    if (StringAttr table = getParamName(findLookup(op)))
      tables.insert(table);
  });
  double sum = 0;
  for (StringAttr name : tables) {
    auto param = symbols.lookup<ParamOp>(name);
    if (!getCutBlocker(param).empty())
      continue;
    FailureOr<std::vector<float>> elements = readElements(param);
    if (failed(elements))
      return failure();
    sum += std::inner_product(elements->begin(), elements->end(), elements->begin(), 0.0) /
           static_cast<double>(std::max<int64_t>(param.getTensorType().getDimSize(0), 1));
  }
  return sum;
}

//===- Removal ----------------------------------------------------------------------------------------------------===//

namespace {
/// What goes of the signature of one function.
struct Removal {
  llvm::SetVector<BlockArgument> pasts;
  llvm::SetVector<unsigned> results;
  SmallVector<Operation *> norms; // that took the place of others
};
} // namespace

/// The norm of `skip` without what it adds to `stream`.
static Operation *createNorm(Operation *skip, Value stream) {
  bool isSimplified = isNode(skip, "SkipSimplifiedLayerNormalization");
  OpBuilder b(skip);
  OperationState state(onnxir::nameBeside(skip->getLoc(), "/norm"),
                       isSimplified ? onnxir::getOperationName("com.microsoft", "SimplifiedLayerNormalization")
                                    : onnxir::getOperationName("", "LayerNormalization"));
  state.addOperands({stream, skip->getOperand(2)});
  if (!isSimplified && skip->getNumOperands() > 3)
    state.addOperands(skip->getOperand(3));
  state.addAttribute("axis", b.getI64IntegerAttr(-1));
  if (Attribute epsilon = skip->getAttr("epsilon"))
    state.addAttribute("epsilon", epsilon);
  state.addTypes(skip->getResult(0).getType());
  return b.create(state);
}

static void removeBranch(const Branch &branch, Removal &removal) {
  for (KvAppendOp append : branch.appends)
    append.getNext().replaceAllUsesWith(append.getState());
  if (isSkipNorm(branch.add)) {
    removal.norms.push_back(createNorm(branch.add, branch.other));
    branch.add->getResult(0).replaceAllUsesWith(removal.norms.back()->getResult(0));
  }
  if (Value sum = getSum(branch.add))
    sum.replaceAllUsesWith(branch.other);
  for (Operation *op : branch.owned) {
    for (BlockArgument past : listPasts(op))
      removal.pasts.insert(past);
    for (OpOperand &use : op->getUses())
      if (isa<func::ReturnOp>(use.getOwner()))
        removal.results.insert(use.getOperandNumber());
  }
}

/// Erases operations whose results nobody uses any more, users first.
static void eraseDead(const Branch &branch) {
  SmallVector<Operation *> ops(branch.owned.getArrayRef());
  ops.append(branch.appends.begin(), branch.appends.end());
  branch.add->erase();
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (Operation *&op : ops)
      if (op && op->use_empty()) {
        op->erase();
        op = nullptr;
        isChanged = true;
      }
  }
}

static void eraseResults(func::FuncOp function, const Removal &removal) {
  Operation *end = function.getBody().back().getTerminator();
  llvm::BitVector results(end->getNumOperands());
  for (unsigned result : removal.results)
    results.set(result);
  end->eraseOperands(results);
  (void)function.eraseResults(results);
}

/// Once nobody else reads them.
static void erasePasts(func::FuncOp function, const Removal &removal) {
  llvm::BitVector arguments(function.getNumArguments());
  for (BlockArgument past : removal.pasts)
    arguments.set(past.getArgNumber());
  // Who asks a past that goes for its length asks another one, which is as long.
  for (BlockArgument past : removal.pasts)
    for (BlockArgument other : function.getArguments())
      if (other.getType() == past.getType() && !removal.pasts.contains(other)) {
        past.replaceAllUsesWith(other);
        break;
      }
  (void)function.eraseArguments(arguments);
}

/// Numbers the slots of each state that stay by their order.
static void renumberSlots(ModuleOp module, const llvm::SetVector<SlotId> &gone) {
  llvm::DenseMap<SlotId, int64_t> numberOf;
  for (auto state : module.getOps<StateOp>()) {
    SmallVector<Attribute> left;
    for (auto [number, slot] : llvm::enumerate(state.getSlots())) {
      SlotId id(state.getSymNameAttr(), number);
      numberOf[id] = static_cast<int64_t>(left.size());
      if (!gone.contains(id))
        left.push_back(slot);
    }
    state.setSlotsAttr(ArrayAttr::get(module.getContext(), left));
  }
  module.walk([&](Operation *op) {
    if (auto append = dyn_cast<KvAppendOp>(op))
      append.setSlot(numberOf[append.getSlotId()]);
    else if (auto view = dyn_cast<KvViewOp>(op))
      view.setSlot(numberOf[view.getSlotId()]);
    else if (auto replacement = dyn_cast<KvReplaceOp>(op))
      replacement.setSlot(numberOf[replacement.getSlotId()]);
  });
}

void removeLayers(ArrayRef<const ResidualLayer *> layers, ModuleOp module) {
  SmallVector<const Branch *> branches;
  for (const ResidualLayer *layer : layers)
    for (const Branch &branch : layer->branches)
      branches.push_back(&branch);
  removeBranches(branches, module);
}

void removeBranches(ArrayRef<const Branch *> branches, ModuleOp module) {
  llvm::MapVector<Operation *, Removal> removals;
  llvm::SetVector<SlotId> slots;
  // The residual stream of a later layer may be the sum of an earlier one: replace from the last on.
  for (const Branch *branch : llvm::reverse(branches)) {
    for (KvAppendOp append : branch->appends)
      slots.insert(append.getSlotId());
    removeBranch(*branch, removals[branch->add->getParentOp()]);
  }
  for (const auto &[function, removal] : removals)
    eraseResults(cast<func::FuncOp>(function), removal);
  for (const Branch *branch : branches)
    eraseDead(*branch);
  for (const auto &[function, removal] : removals)
    for (Operation *norm : removal.norms) // of a branch that is gone too
      if (norm->use_empty())
        norm->erase();
  for (const auto &[function, removal] : removals)
    erasePasts(cast<func::FuncOp>(function), removal);
  renumberSlots(module, slots);
}

} // namespace hone::prune
