// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks do together is a kernel of its own (include/hone/runtime/collectives.h). A program makes the same calls in the same
// order on all ranks: it is the same program, and nothing in it depends on the rank.

#include "Collectives.h"

#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/runtime/collectives.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

/// The kernel's result has the sizes of its input but for those that the type of the result knows.
static void replaceWithKernel(Operation *op, Value call, const Twine &name, ArrayRef<int64_t> ints) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  Value input = op->getOperand(0);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, input);
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!type.isDynamicDim(dim))
      sizes[dim] = b.getIndexAttr(type.getDimSize(dim));
  Value init = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  auto kernel = hrt::KernelOp::create(b, loc, init.getType(), call, b.getStringAttr(name), input, init,
                                      b.getDenseI64ArrayAttr(ints), b.getDenseF64ArrayAttr({}));
  Value result = kernel.getResult(0);
  if (result.getType() != type)
    result = tensor::CastOp::create(b, loc, type, result);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

static LogicalResult lower(Operation *op, Value call, StringRef prefix) {
  if (auto reduce = dyn_cast<shard::AllReduceOp>(op)) {
    auto type = dyn_cast<RankedTensorType>(reduce.getResult().getType());
    if (!type || !type.getElementType().isF32() || reduce.getInput().getType() != type ||
        reduce.getReduction() != shard::ReductionKind::Sum)
      return op->emitError() << "unsupported reduction over ranks to " << reduce.getResult().getType()
                             << "; supported: sums of tensors of f32";
    replaceWithKernel(op, call, prefix + HONE_ALL_REDUCE, {});
  } else if (auto gather = dyn_cast<shard::AllGatherOp>(op)) {
    replaceWithKernel(op, call, prefix + HONE_ALL_GATHER, gather.getGatherAxis().getSExtValue());
  } else if (auto slice = dyn_cast<shard::AllSliceOp>(op)) {
    replaceWithKernel(op, call, prefix + HONE_ALL_SLICE, slice.getSliceAxis().getSExtValue());
  } else {
    return op->emitError() << "unsupported operation " << op->getName()
                           << " over ranks; supported: shard.all_gather, shard.all_reduce, shard.all_slice";
  }
  return success();
}

LogicalResult lowerCollectives(func::FuncOp entry, StringRef prefix) {
  Value call = entry.getArgument(0);
  WalkResult result = entry.walk([&](Operation *op) {
    if (!isa_and_nonnull<shard::ShardDialect>(op->getDialect()))
      return WalkResult::advance();
    return failed(lower(op, call, prefix)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

void eraseGrids(ModuleOp module) {
  for (auto grid : llvm::make_early_inc_range(module.getOps<shard::GridOp>()))
    grid.erase();
}

} // namespace hone
