// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// At its end a function frees all its buffers by one operation. Upstream's simplification compares each of them with each other, over
// again for each that it takes out: with the buffers that are allocated in different places, there is nothing to compare.

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace hone {
#define GEN_PASS_DEF_SPLITDEALLOCATIONS
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;
using bufferization::DeallocOp;

namespace {

struct SplitDeallocations : impl::SplitDeallocationsBase<SplitDeallocations> {
  void runOnOperation() override {
    SmallVector<DeallocOp> all;
    getOperation().walk([&](DeallocOp op) {
      if (op.getMemrefs().size() > 1)
        all.push_back(op);
    });
    if (all.empty())
      return;
    BufferOriginAnalysis origins(getOperation());
    for (DeallocOp op : all)
      split(op, origins);
  }

private:
  void split(DeallocOp op, BufferOriginAnalysis &origins) {
    SmallVector<Value> others(op.getRetained());
    llvm::DenseMap<Value, int> times;
    for (Value buffer : op.getMemrefs()) {
      ++times[buffer];
      if (!buffer.getDefiningOp<memref::AllocOp>())
        others.push_back(buffer);
    }
    auto isAlone = [&](Value buffer) {
      return buffer.getDefiningOp<memref::AllocOp>() && times.lookup(buffer) == 1 &&
             llvm::all_of(others, [&](Value other) {
               std::optional<bool> isSame = origins.isSameAllocation(buffer, other);
               return isSame && !*isSame;
             });
    };
    OpBuilder b(op);
    SmallVector<Value> buffers, conditions;
    for (auto [buffer, condition] : llvm::zip_equal(op.getMemrefs(), op.getConditions())) {
      if (isAlone(buffer)) {
        DeallocOp::create(b, op.getLoc(), ValueRange(buffer), ValueRange(condition), ValueRange());
        ++numSplit;
        continue;
      }
      buffers.push_back(buffer);
      conditions.push_back(condition);
    }
    op.getMemrefsMutable().assign(buffers);
    op.getConditionsMutable().assign(conditions);
    if (buffers.empty() && op.getRetained().empty())
      op.erase();
  }
};

} // namespace
} // namespace hone
