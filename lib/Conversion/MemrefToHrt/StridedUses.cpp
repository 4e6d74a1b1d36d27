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

bool takesStrides(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto part = dyn_cast<memref::SubViewOp>(op))
    return keepsRank(part) && llvm::all_of(part->getUses(), takesStrides);
  return isa<hrt::KernelOp, linalg::LinalgOp, memref::CopyOp, memref::LoadOp, memref::DimOp>(op);
}

bool readsBuffer(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto part = dyn_cast<memref::SubViewOp>(op))
    return keepsRank(part) && llvm::all_of(part->getUses(), readsBuffer);
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return use.get() == copy.getSource() && use.get() != copy.getTarget();
  if (auto written = dyn_cast<DestinationStyleOpInterface>(op))
    return takesStrides(use) && !written.isDpsInit(&use);
  return isa<memref::LoadOp, memref::DimOp>(op);
}

static void replaceUses(Value buffer, Value view) {
  for (OpOperand &use : llvm::make_early_inc_range(buffer.getUses())) {
    auto part = dyn_cast<memref::SubViewOp>(use.getOwner());
    if (!part) {
      use.set(view);
      continue;
    }
    OpBuilder b(part);
    Value moved = memref::SubViewOp::create(b, part.getLoc(), view, part.getMixedOffsets(), part.getMixedSizes(),
                                            part.getMixedStrides());
    replaceUses(part.getResult(), moved);
    part.erase();
  }
}

void replaceBuffer(memref::AllocOp buffer, Value view) { replaceUses(buffer.getResult(), view); }

} // namespace hone
