// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers that are copied to a part of another one, as operands of a concatenation are, are that part from the beginning.

#include "StridedUses.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"

namespace hone {
#define GEN_PASS_DEF_PLACESLICES
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether a place has at least a vector of channels, which may lie one after the other: others are rather copied than stored one by one.
bool hasWholeVectors(memref::SubViewOp part) {
  constexpr int64_t lanes = 16;
  ArrayRef<int64_t> shape = part.getType().getShape();
  return shape.size() > 2 && !ShapedType::isDynamic(shape[1]) && shape[1] >= lanes;
}

/// Whether the parts have a dimension in which one ends before the other begins, or both take every nth place and none is the same.
bool areDisjoint(memref::SubViewOp a, memref::SubViewOp b) {
  for (unsigned dim = 0; dim < a.getMixedOffsets().size(); ++dim) {
    auto begin = [dim](memref::SubViewOp op) { return getConstantIntValue(op.getMixedOffsets()[dim]); };
    auto size = [dim](memref::SubViewOp op) { return getConstantIntValue(op.getMixedSizes()[dim]); };
    auto stride = [dim](memref::SubViewOp op) { return getConstantIntValue(op.getMixedStrides()[dim]); };
    if (!begin(a) || !begin(b) || !stride(a) || stride(a) != stride(b))
      continue;
    if (*stride(a) > 1 && hasWholeVectors(a) && (*begin(a) - *begin(b)) % *stride(a) != 0)
      return true;
    if (*stride(a) == 1 && size(a) && size(b) &&
        (*begin(a) + *size(a) <= *begin(b) || *begin(b) + *size(b) <= *begin(a)))
      return true;
  }
  return false;
}

/// The parts that a buffer is put together of; nothing where it is written in any other way than by copies to disjoint parts.
std::optional<SmallVector<memref::SubViewOp>> getParts(memref::AllocOp whole) {
  SmallVector<memref::SubViewOp> parts;
  for (OpOperand &use : whole->getUses()) {
    if (readsBuffer(use))
      continue;
    auto part = dyn_cast<memref::SubViewOp>(use.getOwner());
    if (!part)
      return std::nullopt;
    bool isRead = llvm::all_of(part->getUses(), readsBuffer);
    bool isTarget = part->hasOneUse() && isa<memref::CopyOp>(*part->user_begin());
    if (!isRead && !isTarget)
      return std::nullopt;
    if (!isRead)
      parts.push_back(part);
  }
  for (auto [i, part] : llvm::enumerate(parts))
    for (memref::SubViewOp other : ArrayRef(parts).take_front(i))
      if (!areDisjoint(part, other))
        return std::nullopt;
  return parts;
}

struct PlaceSlices : impl::PlaceSlicesBase<PlaceSlices> {
  void runOnOperation() override {
    DominanceInfo dominance(getOperation());
    SmallVector<memref::AllocOp> all;
    getOperation().walk([&](memref::AllocOp alloc) { all.push_back(alloc); });
    for (memref::AllocOp whole : all) {
      if (placed.contains(whole))
        continue;
      if (auto parts = getParts(whole))
        for (memref::SubViewOp part : *parts)
          numPlaced += place(whole, part, dominance);
    }
  }

private:
  DenseSet<Operation *> placed;

  /// Whether nothing but copies to its parts uses the buffer before `copy`.
  static bool isReadBefore(memref::AllocOp whole, memref::CopyOp copy) {
    return llvm::any_of(whole->getUsers(), [&](Operation *user) {
      Operation *op = copy->getBlock()->findAncestorOpInBlock(*user);
      return !op || (!isa<memref::SubViewOp, memref::DimOp>(user) && op->isBeforeInBlock(copy));
    });
  }

  bool place(memref::AllocOp whole, memref::SubViewOp part, const DominanceInfo &dominance) {
    auto copy = cast<memref::CopyOp>(*part->user_begin());
    auto alloc = copy.getSource().getDefiningOp<memref::AllocOp>();
    if (!alloc || alloc == whole || alloc->getBlock() != copy->getBlock() || whole->getBlock() != copy->getBlock() ||
        isReadBefore(whole, copy))
      return false;
    for (OpOperand &use : alloc->getUses()) {
      Operation *op = copy->getBlock()->findAncestorOpInBlock(*use.getOwner());
      if (!takesStrides(use) || (copy->isBeforeInBlock(op) && !readsBuffer(use)))
        return false;
    }
    // The part has to be there when the buffer would be.
    SmallVector<Operation *> moved;
    for (Operation *op : {whole.getOperation(), part.getOperation()})
      if (alloc->isBeforeInBlock(op))
        moved.push_back(op);
    for (Operation *op : moved)
      for (Value operand : op->getOperands())
        if (operand != whole.getResult() && !dominance.properlyDominates(operand, alloc))
          return false;
    for (Operation *op : moved)
      op->moveBefore(alloc);
    replaceBuffer(alloc, part.getResult());
    copy.erase();
    placed.insert(alloc);
    alloc.erase();
    return true;
  }
};

} // namespace
} // namespace hone
