// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass: models that were channels-last transpose before and after each convolution. What lies between is computed in the other order
// of dimensions where fewer elements are transposed then. Nodes that hang together are moved together or not at all, as each that stays
// would need transpositions of its own.

#include "TransposeRules.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

namespace hone {
#define GEN_PASS_DEF_MOVETRANSPOSES
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

using Permutation = SmallVector<int64_t>;

/// What a size that is not known counts as.
static constexpr int64_t kAssumedSize = 32;

static int64_t countElements(Value value) {
  int64_t count = 1;
  for (int64_t size : getRankedType(value).getShape())
    count = llvm::SaturatingMultiply<uint64_t>(count, ShapedType::isDynamic(size) ? kAssumedSize : size);
  return count;
}

/// Whether `user` only asks for all sizes, which a transposition permutes.
static bool readsSizes(Operation *user) {
  return isOp(user, "Shape") && !user->hasAttr("start") && !user->hasAttr("end");
}

namespace {

/// Movable nodes of a block, in order, that read each other's results.
class Component {
public:
  void add(Operation *op, MovableNode node) {
    ops.insert(op);
    nodes.push_back(std::move(node));
  }
  /// The permutations that it might be moved by: dimension k is dimension p[k] then.
  SmallVector<Permutation> getCandidates() const;
  /// How many elements fewer are transposed where it is moved by `axes`.
  int64_t getGain(const Permutation &axes) const;
  void move(const Permutation &axes);
  Location getLoc() const { return ops.front()->getLoc(); }

private:
  /// Calls `body` once for each tensor that is made elsewhere and no weight which `permuteWeight` takes.
  template <typename Body> void forInputs(Body body) const;
  bool holdsAllUsers(Value value) const {
    return llvm::all_of(value.getUsers(), [&](Operation *user) { return ops.contains(user); });
  }
  Value takeInput(OpBuilder &b, Location loc, Value value, const Permutation &axes);
  void replaceResult(OpBuilder &b, Value result, Value moved, const Permutation &axes);

  llvm::SetVector<Operation *> ops;
  SmallVector<MovableNode> nodes; // of `ops`
  llvm::DenseMap<Value, Value> movedValues;
};

} // namespace

template <typename Body> void Component::forInputs(Body body) const {
  llvm::DenseSet<Value> seen;
  for (auto [op, node] : llvm::zip_equal(ops, nodes))
    for (unsigned number : node.tensors) {
      Value value = op->getOperand(number);
      if (!ops.contains(value.getDefiningOp()) && !isVectorWeight(value, node.rank) && seen.insert(value).second)
        body(value);
    }
}

SmallVector<Permutation> Component::getCandidates() const {
  SmallVector<Permutation> candidates;
  auto add = [&](Permutation permutation) {
    if (!llvm::is_contained(candidates, permutation))
      candidates.push_back(std::move(permutation));
  };
  forInputs([&](Value input) {
    if (auto permutation = getPermutation(input.getDefiningOp()))
      add(*permutation);
  });
  for (Operation *op : ops)
    for (Operation *user : op->getUsers())
      if (auto permutation = getPermutation(user))
        add(invertPermutationVector(*permutation));
  return candidates;
}

int64_t Component::getGain(const Permutation &axes) const {
  int64_t gain = 0;
  Permutation inverse = invertPermutationVector(axes);
  forInputs([&](Value input) {
    auto permutation = getPermutation(input.getDefiningOp());
    bool goes = permutation && holdsAllUsers(input); // or becomes another transposition
    if (permutation == axes)
      gain += goes ? countElements(input) : 0;
    else if (!goes)
      gain -= countElements(input);
  });
  for (Operation *op : ops)
    for (Value result : op->getResults()) {
      bool isNeeded = false; // by nodes that stay and transpose nothing
      for (Operation *user : result.getUsers())
        if (auto permutation = getPermutation(user))
          gain += permutation == inverse ? countElements(result) : 0;
        else
          isNeeded |= !ops.contains(user) && !readsSizes(user);
      gain -= isNeeded ? countElements(result) : 0;
    }
  return gain;
}

Value Component::takeInput(OpBuilder &b, Location loc, Value value, const Permutation &axes) {
  Value &moved = movedValues[value];
  if (!moved)
    moved = getPermutation(value.getDefiningOp()) == axes
                ? value.getDefiningOp()->getOperand(0)
                : OnnxBuilder(b, loc).transpose(value, invertPermutationVector(axes));
  return moved;
}

void Component::replaceResult(OpBuilder &b, Value result, Value moved, const Permutation &axes) {
  movedValues[result] = moved;
  Permutation inverse = invertPermutationVector(axes);
  for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
    if (getPermutation(user) == inverse && user->getResult(0).getType() == moved.getType())
      user->getResult(0).replaceAllUsesWith(moved);
  auto isOutside = [&](OpOperand &use) {
    return !ops.contains(use.getOwner()) && !(isOp(use.getOwner(), "Transpose") && use.getOwner()->use_empty());
  };
  if (!llvm::any_of(result.getUses(), isOutside))
    return;
  Value back = OnnxBuilder(b, result.getLoc()).transpose(moved, axes);
  back.setType(result.getType());
  result.replaceUsesWithIf(back,
                           [&](OpOperand &use) { return use.getOwner() != back.getDefiningOp() && isOutside(use); });
}

void Component::move(const Permutation &axes) {
  for (auto [op, node] : llvm::zip_equal(ops, nodes)) {
    OpBuilder b(op);
    SmallVector<Value> operands(op->getOperands());
    for (unsigned number : node.tensors)
      operands[number] = isVectorWeight(operands[number], node.rank)
                             ? permuteWeight(b, op->getLoc(), operands[number], axes)
                             : takeInput(b, op->getLoc(), operands[number], axes);
    Operation *moved = node.create(b, op, operands, axes);
    for (auto [result, other] : llvm::zip_equal(op->getResults(), moved->getResults()))
      replaceResult(b, result, other, axes);
  }
  for (Operation *op : llvm::reverse(ops)) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      user->erase(); // a transposition that nothing reads
    op->erase();
  }
}

/// The sizes of what a transposition makes are those of its operand, permuted.
static void readSizesBefore(Operation *shape, Operation *transpose) {
  OpBuilder b(shape);
  OnnxBuilder builder(b, shape->getLoc());
  Type type = shape->getResult(0).getType();
  Value sizes = builder.create("Shape", transpose->getOperand(0), type);
  Value permuted = builder.create("Gather", {sizes, builder.integers(*getPermutation(transpose))}, type,
                                  builder.integerAttr("axis", 0));
  shape->getResult(0).replaceAllUsesWith(permuted);
  shape->erase();
}

/// Merges transpositions of transpositions, and erases those that change nothing.
static void mergeTransposes(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (readsSizes(&op) && getPermutation(op.getOperand(0).getDefiningOp())) {
      readSizesBefore(&op, op.getOperand(0).getDefiningOp());
      continue;
    }
    auto outer = getPermutation(&op);
    auto inner = outer ? getPermutation(op.getOperand(0).getDefiningOp()) : std::nullopt;
    if (!inner)
      continue;
    Value source = op.getOperand(0).getDefiningOp()->getOperand(0);
    Permutation both = applyPermutation(*inner, *outer);
    if (isIdentityPermutation(both) && source.getType() == op.getResult(0).getType()) {
      op.getResult(0).replaceAllUsesWith(source);
      op.erase();
      continue;
    }
    op.setOperand(0, source);
    op.setAttr("perm", DenseI64ArrayAttr::get(op.getContext(), both));
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOp(&op, "Transpose") && op.use_empty())
      op.erase();
}

static std::vector<Component> findComponents(Block &block) {
  llvm::EquivalenceClasses<Operation *> classes;
  llvm::MapVector<Operation *, MovableNode> movable;
  for (Operation &op : block)
    if (auto node = MovableNode::get(&op)) {
      classes.insert(&op);
      for (unsigned number : node->tensors)
        if (Operation *other = op.getOperand(number).getDefiningOp())
          if (auto found = movable.find(other); found != movable.end() && found->second.rank == node->rank)
            classes.unionSets(&op, other);
      movable.insert({&op, std::move(*node)});
    }
  llvm::MapVector<Operation *, Component> components;
  for (auto &[op, node] : movable)
    components[classes.getLeaderValue(op)].add(op, node);
  std::vector<Component> found;
  for (auto &[leader, component] : components)
    found.push_back(std::move(component));
  return found;
}

namespace {

struct MoveTransposes : impl::MoveTransposesBase<MoveTransposes> {
  void runOnOperation() override {
    getOperation().walk([&](Block *block) {
      if (!llvm::any_of(*block, [](Operation &op) { return isOp(&op, "Transpose"); }))
        return;
      mergeTransposes(*block);
      for (Component &component : findComponents(*block))
        run(component);
      mergeTransposes(*block);
    });
  }

private:
  void run(Component &component) {
    Permutation best;
    int64_t most = 0;
    for (const Permutation &candidate : component.getCandidates())
      if (int64_t gain = component.getGain(candidate); gain > most) {
        most = gain;
        best = candidate;
      }
    Location loc = component.getLoc();
    if (most > 0) {
      component.move(best);
      ++numMoved;
      remarkRaised(loc, "hone-move-transposes", "Moved")
          << ("computed over permuted dimensions, and " + Twine(most) + " elements fewer are transposed").str();
    } else if (!component.getCandidates().empty()) {
      remarkMissed(loc, "hone-move-transposes", "Moved")
          << "stays between transpositions: as many elements would be transposed elsewhere";
    }
  }
};

} // namespace

} // namespace hone::raising
