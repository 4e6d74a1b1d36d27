// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expansions of one dimension into several whose sizes are known only at run time, as casts with computed strides.

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace hone {
#define GEN_PASS_DEF_LOWEREXPANSIONS
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

Value multiply(OpBuilder &b, Location loc, Value lhs, OpFoldResult rhs) {
  Value factor = getValueOrCreateConstantIndexOp(b, loc, rhs);
  return arith::MulIOp::create(b, loc, lhs, factor);
}

/// Upstream's -expand-strided-metadata knows a group with at most one dynamic size.
bool hasUncertainGroup(memref::ExpandShapeOp expand) {
  return llvm::any_of(expand.getReassociationIndices(), [&](ArrayRef<int64_t> group) {
    return llvm::count_if(group, [&](int64_t dim) { return expand.getResultType().isDynamicDim(dim); }) > 1;
  });
}

/// Of the same type, without a cast: a copy reads through casts, and would no longer be one of contiguous memory.
Value lower(OpBuilder &b, memref::ExpandShapeOp expand) {
  Location loc = expand.getLoc();
  auto source = memref::ExtractStridedMetadataOp::create(b, loc, expand.getSrc());
  MemRefType type = expand.getResultType();
  auto [known, offset] = type.getStridesAndOffset();
  SmallVector<OpFoldResult> sizes = expand.getMixedOutputShape(), strides(type.getRank());
  for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices())) {
    Value stride = source.getStrides()[dim];
    for (int64_t inner : llvm::reverse(group)) {
      bool isKnown = !ShapedType::isDynamic(known[inner]);
      strides[inner] = isKnown ? OpFoldResult(b.getIndexAttr(known[inner])) : OpFoldResult(stride);
      stride = multiply(b, loc, stride, sizes[inner]);
    }
  }
  OpFoldResult begin = ShapedType::isDynamic(offset) ? OpFoldResult(source.getOffset()) : b.getIndexAttr(offset);
  return memref::ReinterpretCastOp::create(b, loc, type, source.getBaseBuffer(), begin, sizes, strides);
}

struct LowerExpansions : impl::LowerExpansionsBase<LowerExpansions> {
  void runOnOperation() override {
    getOperation()->walk([&](memref::ExpandShapeOp expand) {
      if (!hasUncertainGroup(expand))
        return;
      OpBuilder b(expand);
      expand.replaceAllUsesWith(lower(b, expand));
      expand.erase();
      ++numLowered;
    });
  }
};

} // namespace
} // namespace hone
