// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If. Its branches are lowered in place, so that they see the values around them; what leaves them has the static sizes that hold in both.
// A value has one rank, so of branches with results of different ranks only those of a squeeze are lowered: the one that squeezes.

#include "Indices.h"
#include "Subgraphs.h"

using namespace mlir;

namespace hone::lowering {

FailureOr<Region *> requireSubgraph(Node &node, StringRef name, size_t inputs, size_t outputs) {
  Region *region = onnxir::getSubgraph(node.op, name);
  if (!region || region->empty() || region->front().empty())
    return node.fail() << "expected a subgraph '" << name << "'";
  Block &block = region->front();
  if (block.getNumArguments() != inputs || block.back().getNumOperands() < outputs)
    return node.fail() << "expected subgraph '" << name << "' to have " << inputs << " inputs and at least " << outputs
                       << " outputs, but got " << block.getNumArguments() << " and " << block.back().getNumOperands();
  return region;
}

/// The type that both values have: sizes are fixed where they agree. Null if element types or ranks differ.
static RankedTensorType joinTypes(Value lhs, Value rhs) {
  auto left = dyn_cast<RankedTensorType>(lhs.getType()), right = dyn_cast<RankedTensorType>(rhs.getType());
  if (!left || !right || left.getRank() != right.getRank() || left.getElementType() != right.getElementType())
    return {};
  SmallVector<int64_t> shape;
  for (auto [l, r] : llvm::zip(left.getShape(), right.getShape()))
    shape.push_back(l == r ? l : ShapedType::kDynamic);
  return RankedTensorType::get(shape, left.getElementType());
}

static void yieldAs(Node &node, Block &block, ArrayRef<Value> values, ArrayRef<Type> types) {
  OpBuilder::InsertionGuard guard(node.b);
  node.b.setInsertionPointToEnd(&block);
  SmallVector<Value> casts;
  for (auto [value, type] : llvm::zip(values, types))
    casts.push_back(value.getType() == type ? value : tensor::CastOp::create(node.b, type, value).getResult());
  scf::YieldOp::create(node.b, casts);
}

/// Sizes of a result that both branches make of the same values outside stay those values.
static void joinSizes(Node &node, Value result, ArrayRef<Size> left, ArrayRef<Size> right) {
  SmallVector<Size> sizes = node.sizes(result);
  for (auto [size, l, r] : llvm::zip(sizes, left, right)) {
    auto outerLeft = node.math.hoist(l, result.getDefiningOp()),
         outerRight = node.math.hoist(r, result.getDefiningOp());
    if (outerLeft && outerRight && node.math.equal(*outerLeft, *outerRight))
      size = *outerLeft;
  }
  node.lowerer.setSizes(result, sizes);
}

static FailureOr<SmallVector<Value>> lowerBranch(Node &node, Region &from, Region &into) {
  OpBuilder::InsertionGuard guard(node.b);
  node.b.createBlock(&into);
  return node.lowerer.inlineRegion(from, {});
}

/// The operation that makes the only value of a subgraph, or null.
static Operation *getMaker(Region &region) {
  Operation &yield = region.front().back();
  return yield.getNumOperands() == 1 ? yield.getOperand(0).getDefiningOp() : nullptr;
}

/// Whether `squeezing` is what squeeze makes of the value that `other` passes on.
static bool isSqueezeOf(Region &squeezing, Region &other) {
  Operation *squeeze = getMaker(squeezing);
  if (!squeeze || squeeze->getName().getStringRef() != "onnx.Squeeze")
    return false;
  Value passed = other.front().back().getOperand(0);
  if (Operation *identity = getMaker(other); identity && identity->getName().getStringRef() == "onnx.Identity")
    passed = identity->getOperand(0);
  return squeeze->getOperand(0) == passed;
}

/// Torch's exporter writes squeeze(dim) as a branch on whether that size is 1. Where only calls say, the branch that squeezes is the one
/// whose result has the rank that the rest was traced with: whether it is taken, or nothing where the branches are not these.
static std::optional<bool> findSqueeze(Region &thenRegion, Region &elseRegion) {
  if (isSqueezeOf(thenRegion, elseRegion))
    return true;
  return isSqueezeOf(elseRegion, thenRegion) ? std::optional(false) : std::nullopt;
}

static LogicalResult inlineTaken(Node &node, Region &region) {
  auto values = node.lowerer.inlineRegion(region, {});
  if (failed(values))
    return failure();
  for (unsigned i = 0; i < node.results(); ++i)
    node.set(i, (*values)[i]);
  return success();
}

static LogicalResult lowerIf(Node &node) {
  auto thenRegion = requireSubgraph(node, "then_branch", 0, node.results());
  auto elseRegion = requireSubgraph(node, "else_branch", 0, node.results());
  auto condition = getScalar(node, 0);
  if (failed(thenRegion) || failed(elseRegion) || failed(condition))
    return failure();
  if (auto taken = node.math.decide(*condition))
    return inlineTaken(node, *taken ? **thenRegion : **elseRegion);
  if (auto squeezes = findSqueeze(**thenRegion, **elseRegion)) {
    Value wanted = arith::ConstantOp::create(node.b, node.b.getBoolAttr(*squeezes));
    node.check(arith::CmpIOp::create(node.b, arith::CmpIPredicate::eq, *condition, wanted),
               "expected the dimension that is squeezed where its size is 1 to have that size");
    return inlineTaken(node, *squeezes ? **thenRegion : **elseRegion);
  }
  // The types of the results are known only once both branches are lowered.
  auto draft = scf::IfOp::create(node.b, TypeRange(), *condition, /*addThenBlock=*/false, /*addElseBlock=*/false);
  auto left = lowerBranch(node, **thenRegion, draft.getThenRegion());
  auto right = failed(left) ? left : lowerBranch(node, **elseRegion, draft.getElseRegion());
  if (failed(left) || failed(right))
    return failure();
  SmallVector<Type> types;
  for (unsigned i = 0; i < node.results(); ++i) {
    RankedTensorType type = joinTypes((*left)[i], (*right)[i]);
    if (!type)
      return node.fail() << "expected both branches to give result " << i << " one element type and rank, but got "
                         << (*left)[i].getType() << " and " << (*right)[i].getType();
    types.push_back(type);
  }
  left->truncate(types.size());
  right->truncate(types.size());
  yieldAs(node, draft.getThenRegion().front(), *left, types);
  yieldAs(node, draft.getElseRegion().front(), *right, types);
  auto result = scf::IfOp::create(node.b, types, *condition, false, false);
  result.getThenRegion().takeBody(draft.getThenRegion());
  result.getElseRegion().takeBody(draft.getElseRegion());
  draft.erase();
  for (unsigned i = 0; i < node.results(); ++i) {
    joinSizes(node, result.getResult(i), node.sizes((*left)[i]), node.sizes((*right)[i]));
    node.set(i, result.getResult(i));
  }
  return success();
}

void addBranchLowerings(LoweringTable &table) { table["onnx.If"] = lowerIf; }

} // namespace hone::lowering
