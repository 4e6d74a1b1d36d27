// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers that are copied to an output when they are complete, and not used after that, are the output from the beginning.

#include "Aliases.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace hone {
#define GEN_PASS_DEF_PLACEOUTPUTS
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether anything but `copy` and what frees the buffer comes after the copy.
bool isUsedAfter(const Aliases &aliases, Value buffer, memref::CopyOp copy) {
  for (Value alias : aliases.getViews(buffer))
    for (Operation *user : alias.getUsers()) {
      Operation *op = copy->getBlock()->findAncestorOpInBlock(*user);
      if (op != copy && !op->isBeforeInBlock(copy) && !isa<memref::DeallocOp>(user))
        return true;
    }
  return false;
}

/// The one operation that frees the buffer, in its own block, or null.
memref::DeallocOp getDealloc(memref::AllocOp alloc) {
  memref::DeallocOp found;
  for (Operation *user : alloc->getUsers())
    if (auto dealloc = dyn_cast<memref::DeallocOp>(user)) {
      if (found || dealloc->getBlock() != alloc->getBlock())
        return {};
      found = dealloc;
    }
  return found;
}

struct PlaceOutputs : impl::PlaceOutputsBase<PlaceOutputs> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(hrt::kEntryAttr) || !function.getBody().hasOneBlock())
      return;
    SmallVector<memref::CopyOp> copies;
    for (auto copy : function.getBody().front().getOps<memref::CopyOp>())
      if (isComplete(copy))
        copies.push_back(copy);
    if (copies.empty())
      return;
    // Placing a buffer changes nothing of others: one analysis serves all.
    Aliases aliases(function);
    for (memref::CopyOp copy : copies)
      numPlaced += place(copy, aliases);
  }

private:
  /// Whether `copy` is of a whole buffer to an output of its type.
  static bool isComplete(memref::CopyOp copy) {
    auto output = copy.getTarget().getDefiningOp<hrt::OutputOp>();
    auto alloc = copy.getSource().getDefiningOp<memref::AllocOp>();
    return output && output->hasOneUse() && alloc && alloc->getBlock() == copy->getBlock() &&
           alloc.getType() == output.getType();
  }

  static bool place(memref::CopyOp copy, const Aliases &aliases) {
    auto output = copy.getTarget().getDefiningOp<hrt::OutputOp>();
    // Another copy's buffer may have become an output meanwhile.
    auto alloc = copy.getSource().getDefiningOp<memref::AllocOp>();
    if (!alloc)
      return false;
    memref::DeallocOp dealloc = getDealloc(alloc);
    if (!dealloc || isUsedAfter(aliases, alloc, copy))
      return false;
    OpBuilder b(alloc);
    auto early = hrt::OutputOp::create(b, output.getLoc(), output.getType(), output.getCall(), output.getIndexAttr(),
                                       alloc.getDynamicSizes());
    dealloc.erase();
    copy.erase();
    output.erase();
    alloc.replaceAllUsesWith(early.getResult());
    alloc.erase();
    return true;
  }
};

} // namespace
} // namespace hone
