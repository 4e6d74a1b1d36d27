// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Uses of buffers by kernels and loops, and of parts of buffers.

#include "StridedUses.h"

#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace hone {

/// Whether a part has a dimension for each of the buffer's.
static bool keepsRank(memref::SubViewOp part) {
  return part.getType().getRank() == part.getSourceType().getRank() && part.getDroppedDims().none();
}

/// Whether nothing but dimensions of size 1 are added, which is possible with any strides.
static bool addsUnits(memref::ExpandShapeOp view) {
  ArrayRef<int64_t> shape = view.getResultType().getShape();
  return llvm::all_of(view.getReassociationIndices(), [&](const ReassociationIndices &dims) {
    return llvm::count_if(dims, [&](int64_t dim) { return shape[dim] == 1; }) + 1 >= static_cast<int64_t>(dims.size());
  });
}

bool isStridedView(Operation *op) {
  if (auto part = dyn_cast<memref::SubViewOp>(op))
    return keepsRank(part);
  auto expand = dyn_cast<memref::ExpandShapeOp>(op);
  return expand && addsUnits(expand);
}

bool takesStrides(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isStridedView(op))
    return llvm::all_of(op->getUses(), takesStrides);
  return isa<hrt::KernelOp, linalg::LinalgOp, memref::CopyOp, memref::LoadOp, memref::DimOp>(op);
}

bool readsBuffer(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isStridedView(op))
    return llvm::all_of(op->getUses(), readsBuffer);
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return use.get() == copy.getSource() && use.get() != copy.getTarget();
  if (auto written = dyn_cast<DestinationStyleOpInterface>(op))
    return takesStrides(use) && !written.isDpsInit(&use);
  return isa<memref::LoadOp, memref::DimOp>(op);
}

/// The view that `op` is of its operand, of `source`.
static Value createView(Operation *op, Value source) {
  OpBuilder b(op);
  if (auto part = dyn_cast<memref::SubViewOp>(op))
    return memref::SubViewOp::create(b, op->getLoc(), source, part.getMixedOffsets(), part.getMixedSizes(),
                                     part.getMixedStrides());
  auto expand = cast<memref::ExpandShapeOp>(op);
  auto groups = expand.getReassociationIndices();
  auto type = memref::ExpandShapeOp::computeExpandedType(cast<MemRefType>(source.getType()),
                                                         expand.getResultType().getShape(), groups);
  return memref::ExpandShapeOp::create(b, op->getLoc(), *type, source, groups, expand.getMixedOutputShape());
}

static void replaceUses(Value buffer, Value by) {
  for (OpOperand &use : llvm::make_early_inc_range(buffer.getUses())) {
    Operation *op = use.getOwner();
    if (!isStridedView(op)) {
      use.set(by);
      continue;
    }
    replaceUses(op->getResult(0), createView(op, by));
    op->erase();
  }
}

void replaceBuffer(memref::AllocOp buffer, Value view) { replaceUses(buffer.getResult(), view); }

} // namespace hone
