// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which positions neighbouring threads take, and how many at once. Memory is read in lines of 128 bytes that a warp shares: lanes
// must be neighbours where operands are contiguous.

#include "Combiners.h"
#include "ThreadNest.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace hone {

/// What one instruction reads and writes at most.
static constexpr int64_t kVectorBytes = 16;
/// Elements that a thread takes at most: more take registers that other threads need.
static constexpr int64_t kMostWidth = 8;

bool isVectorized(linalg::LinalgOp op, OpOperand &operand, unsigned dim) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  return type && getStride(op, operand, dim) == 1 && !type.getElementType().isInteger(1) &&
         type.getElementType().isIntOrFloat();
}

static int64_t getBytes(OpOperand &operand) {
  return cast<MemRefType>(operand.get().getType()).getElementTypeBitWidth() / 8;
}

/// Whether rows of `operand` along `dim` begin at multiples of `width` elements. Memory that the runtime gives is aligned.
static bool isAligned(linalg::LinalgOp op, OpOperand &operand, unsigned dim, int64_t width) {
  auto type = cast<MemRefType>(operand.get().getType());
  if (op.getMatchingIndexingMap(&operand).getResults().back() != getAffineDimExpr(dim, op.getContext()))
    return false;
  if (type.getLayout().isIdentity())
    return !type.isDynamicDim(type.getRank() - 1) && type.getDimSize(type.getRank() - 1) % width == 0;
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) && !ShapedType::isDynamic(offset) &&
         offset % width == 0 && llvm::all_of(ArrayRef(strides).drop_back(), [&](int64_t stride) {
           return !ShapedType::isDynamic(stride) && stride % width == 0;
         });
}

/// How many elements along `dim` a thread can take: a power of two that all operands which are contiguous there allow.
static int64_t getWidth(linalg::LinalgOp op, unsigned dim) {
  int64_t size = op.getStaticLoopRanges()[dim], width = 1;
  if (ShapedType::isDynamic(size))
    return 1;
  for (OpOperand &operand : op->getOpOperands())
    if (isVectorized(op, operand, dim))
      width = std::max(width, kVectorBytes / std::max<int64_t>(getBytes(operand), 1));
  width = std::min(width, kMostWidth);
  auto fits = [&](int64_t width) {
    return size % width == 0 && llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
             return !isVectorized(op, operand, dim) || isAligned(op, operand, dim, width);
           });
  };
  while (width > 1 && !fits(width))
    width /= 2;
  bool storesVectors =
      llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &output) { return isVectorized(op, output, dim); });
  return storesVectors ? width : 1;
}

ThreadPlan ThreadPlan::get(linalg::LinalgOp op) {
  LoopOrder order = LoopOrder::get(op);
  ThreadPlan plan;
  plan.parallel = order.outer;
  plan.reductions = order.reductions;
  if (order.inner)
    plan.parallel.push_back(*order.inner);
  if (plan.reductions.empty()) {
    if (order.inner)
      plan.width = getWidth(op, *order.inner);
    return plan;
  }
  int64_t terms = op.getStaticLoopRanges()[plan.reductions.back()];
  bool isLong = ShapedType::isDynamic(terms) || terms >= kWarpLanes;
  plan.byWarp = !order.inner && isLong && succeeded(getCombiners(op));
  return plan;
}

} // namespace hone
