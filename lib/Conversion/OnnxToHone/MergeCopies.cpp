// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes that give a value that there is already: what recognises patterns asks whether two values are the same one.

#include "OnnxMatch.h"

#include "hone/Conversion/Passes.h"

namespace hone {
#define GEN_PASS_DEF_MERGECOPIES
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

/// The node before `op` in its block that dequantizes the same integers in the same way, among the readers of those.
static Operation *findSame(Operation *op) {
  for (Operation *other : op->getOperand(0).getUsers())
    if (other != op && other->getBlock() == op->getBlock() && isOp(other, "DequantizeLinear") &&
        other->isBeforeInBlock(op) && other->getOperands() == op->getOperands() &&
        other->getResultTypes() == op->getResultTypes() && other->getAttrDictionary() == op->getAttrDictionary())
      return other;
  return nullptr;
}

/// What `op` only gives another name, or another node gives too.
static Value findOriginal(Operation *op) {
  if (isOp(op, "Identity") && op->getOperand(0).getType() == op->getResult(0).getType() &&
      !llvm::any_of(op->getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); }))
    return op->getOperand(0);
  if (isOp(op, "DequantizeLinear"))
    if (Operation *same = findSame(op))
      return same->getResult(0);
  return {};
}

namespace {
struct MergeCopies : impl::MergeCopiesBase<MergeCopies> {
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (!onnxir::isOnnxOp(op))
        return;
      if (Value original = findOriginal(op)) {
        op->getResult(0).replaceAllUsesWith(original);
        op->erase();
        ++numMerged;
      }
    });
  }
};
} // namespace

} // namespace hone::raising
