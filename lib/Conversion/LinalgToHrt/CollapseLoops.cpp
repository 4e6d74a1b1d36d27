// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fewer loops for the same operation of linalg on buffers: what is innermost is as long as memory allows, and LLVM vectorizes it.

#include "LoopNest.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace hone {

/// Whether two loops, of which `dim` is the outer, are neighbouring dimensions of every operand that has one of them, in memory too.
static bool areNeighbours(linalg::LinalgOp op, unsigned dim) {
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!map.isFunctionOfDim(dim) && !map.isFunctionOfDim(dim + 1))
      return true;
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !linalg::isDimSequencePreserved(map, {dim, dim + 1}))
      return false;
    SmallVector<ReassociationIndices> groups;
    for (auto [place, index] : llvm::enumerate(map.getResults())) {
      bool joins = cast<AffineDimExpr>(index).getPosition() == dim + 1;
      if (!joins)
        groups.emplace_back();
      groups.back().push_back(static_cast<int64_t>(place));
    }
    return memref::CollapseShapeOp::isGuaranteedCollapsible(type, groups);
  });
}

static SmallVector<ReassociationIndices> findNeighbours(linalg::LinalgOp op) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<ReassociationIndices> groups(1, {0});
  for (unsigned dim = 1; dim < iterators.size(); ++dim) {
    if (iterators[dim] != iterators[dim - 1] || !areNeighbours(op, dim - 1))
      groups.emplace_back();
    groups.back().push_back(dim);
  }
  llvm::erase_if(groups, [](const ReassociationIndices &group) { return group.size() == 1; });
  return groups;
}

/// Reads and writes what is transposed as it lies, so that neighbours in memory are neighbouring dimensions of the operand.
static void readTransposed(linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (OpOperand &operand : op->getOpOperands()) {
    auto transposed = operand.get().getDefiningOp<memref::TransposeOp>();
    if (!transposed)
      continue;
    AffineMap &map = maps[operand.getOperandNumber()], order = transposed.getPermutation();
    SmallVector<AffineExpr> results(map.getNumResults());
    for (auto [i, result] : llvm::enumerate(map.getResults()))
      results[order.getDimPosition(i)] = result;
    map = AffineMap::get(map.getNumDims(), 0, results, op.getContext());
    operand.set(transposed.getIn());
  }
  op.setIndexingMapsAttr(Builder(op.getContext()).getAffineMapArrayAttr(maps));
}

/// The operation with its loops in the order of the dimensions of what has most of them, results first.
static linalg::GenericOp orderLoops(IRRewriter &rewriter, linalg::GenericOp op) {
  AffineMap longest = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (OpOperand *input : op.getDpsInputOperands())
    if (AffineMap map = op.getMatchingIndexingMap(input); map.getNumResults() > longest.getNumResults())
      longest = map;
  SmallVector<unsigned> order;
  for (AffineExpr result : longest.getResults())
    order.push_back(cast<AffineDimExpr>(result).getPosition());
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
    if (!llvm::is_contained(order, dim))
      order.push_back(dim);
  if (llvm::is_sorted(order))
    return op;
  rewriter.setInsertionPoint(op);
  auto ordered = linalg::interchangeGenericOp(rewriter, op, order);
  return succeeded(ordered) ? *ordered : op;
}

linalg::LinalgOp collapseLoops(linalg::LinalgOp op) {
  IRRewriter rewriter(op);
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation())) {
    if (auto dropped = linalg::dropUnitDims(rewriter, generic, linalg::ControlDropUnitDims()); succeeded(dropped)) {
      rewriter.eraseOp(op);
      op = cast<linalg::LinalgOp>(dropped->resultOp.getOperation());
    }
  }
  bool canCollapse =
      !op.hasIndexSemantics() && op.getNumLoops() > 1 &&
      llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isProjectedPermutation(); });
  if (!canCollapse)
    return op;
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation())) {
    readTransposed(generic);
    op = orderLoops(rewriter, generic);
  }
  SmallVector<ReassociationIndices> neighbours = findNeighbours(op);
  if (neighbours.empty())
    return op;
  rewriter.setInsertionPoint(op);
  if (auto general = linalg::generalizeNamedOp(rewriter, op); succeeded(general)) // names fix the number of dimensions
    op = *general;
  auto collapsed = linalg::collapseOpIterationDims(op, neighbours, rewriter);
  if (failed(collapsed))
    return op;
  rewriter.eraseOp(op);
  return collapsed->collapsedOp;
}

} // namespace hone
