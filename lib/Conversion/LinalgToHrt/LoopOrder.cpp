// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of the loops of an operation of linalg, and whether and when several threads pay for it.

#include "LoopNest.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace hone {

/// What a call of a mathematical function costs, in operations on scalars.
static constexpr int64_t kFunctionCost = 16;

/// By how much an index of a tensor grows from one number of loop `dim` to the next; nothing where that is not one number.
static std::optional<int64_t> getStep(AffineExpr index, unsigned dim) {
  if (!index.isFunctionOfDim(dim))
    return 0;
  if (isa<AffineDimExpr>(index))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  if (!binary)
    return std::nullopt;
  std::optional<int64_t> left = getStep(binary.getLHS(), dim), right = getStep(binary.getRHS(), dim);
  if (index.getKind() == AffineExprKind::Add && left && right)
    return *left + *right;
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (index.getKind() == AffineExprKind::Mul && left && factor)
    return *left * factor.getValue();
  return std::nullopt;
}

/// The stride of `operand` along loop `dim`, of indices whose steps `getStep` gives.
static std::optional<int64_t> sumStrides(linalg::LinalgOp op, OpOperand &operand,
                                         llvm::function_ref<std::optional<int64_t>(AffineExpr)> getStep) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type)
    return 0;
  SmallVector<int64_t> strides;
  int64_t offset, total = 0;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return std::nullopt;
  for (auto [expr, stride] : llvm::zip(op.getMatchingIndexingMap(&operand).getResults(), strides)) {
    std::optional<int64_t> step = getStep(expr);
    if (step == 0)
      continue;
    if (!step || ShapedType::isDynamic(stride))
      return std::nullopt;
    total += *step * stride;
  }
  return total;
}

std::optional<int64_t> getStride(linalg::LinalgOp op, OpOperand &operand, unsigned dim) {
  return sumStrides(op, operand, [&](AffineExpr index) -> std::optional<int64_t> {
    if (!index.isFunctionOfDim(dim))
      return 0;
    return isa<AffineDimExpr>(index) ? std::optional<int64_t>(1) : std::nullopt;
  });
}

/// Whether each iteration reads or writes another element of `operand`: others stay in the cache where their elements lie apart.
static bool dependsOnAllLoops(linalg::LinalgOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  return map.isProjectedPermutation() && map.getNumResults() == op.getNumLoops();
}

/// How much is gained by making `dim`, a loop of `size` iterations, the innermost loop.
static int64_t getScore(linalg::LinalgOp op, unsigned dim, int64_t size) {
  constexpr int64_t few = 8; // iterations that fill no vector
  bool areFew = !ShapedType::isDynamic(size) && size < few;
  int64_t score = areFew ? -4 : 0;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<int64_t> stride =
        sumStrides(op, operand, [&](AffineExpr index) { return getStep(index, dim); }); // of windows too
    int64_t weight = (op.isDpsInit(&operand) ? 3 : 2) * (dependsOnAllLoops(op, operand) ? 2 : 1);
    if (stride == 1)
      score += weight;
    else if (stride != 0)
      score -= weight;
  }
  return score;
}

LoopOrder LoopOrder::get(linalg::LinalgOp op) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  std::optional<unsigned> innermost;
  int64_t best = 0;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    int64_t score = sizes[dim] == 1 ? std::numeric_limits<int64_t>::min() : getScore(op, dim, sizes[dim]);
    if (innermost && score < best)
      continue;
    innermost = dim;
    best = score;
  }
  LoopOrder order;
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (dim != innermost)
      (iterators[dim] == utils::IteratorType::parallel ? order.outer : order.reductions).push_back(dim);
  if (!innermost)
    return order;
  if (iterators[*innermost] == utils::IteratorType::parallel)
    order.inner = innermost;
  else
    order.reductions.push_back(*innermost);
  return order;
}

static bool writesEachElementOnce(linalg::LinalgOp op) {
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &output) {
    AffineMap map = op.getMatchingIndexingMap(&output);
    return map.isProjectedPermutation() &&
           llvm::all_of(parallel, [&](unsigned dim) { return map.isFunctionOfDim(dim); });
  });
}

bool isParallel(linalg::LinalgOp op) {
  if (!writesEachElementOnce(op))
    return false;
  WalkResult result = op->getRegion(0).walk([](Operation *inner) {
    bool recursive = inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
    bool allowed = recursive || isMemoryEffectFree(inner) || hasSingleEffect<MemoryEffects::Read>(inner);
    return allowed ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

int64_t estimateCost(linalg::LinalgOp op) {
  int64_t cost = 0;
  op->getRegion(0).walk([&](Operation *inner) {
    bool isFunction = isa_and_nonnull<math::MathDialect>(inner->getDialect());
    cost += isFunction ? kFunctionCost : 1;
  });
  return cost;
}

} // namespace hone
