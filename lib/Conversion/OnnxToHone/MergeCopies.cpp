// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes that give a value that there is already: what recognises patterns asks whether two values are the same one.

#include "Rounding.h"

#include "hone/Conversion/Passes.h"

namespace hone {
#define GEN_PASS_DEF_MERGECOPIES
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

/// Whether two operands are one, or constants of one value.
static bool isSame(Value value, Value other) {
  if (value == other)
    return true;
  Operation *a = getDefiningOp(value, "Constant"), *b = getDefiningOp(other, "Constant");
  return a && b && a->getAttr("value") && a->getAttr("value") == b->getAttr("value");
}

/// The attributes of a DequantizeLinear that mean something: no axis where one scale is for all.
static DictionaryAttr getMeaning(Operation *op) {
  NamedAttrList attributes(op->getAttrDictionary());
  if (isPerTensor(op->getOperand(1), getOperand(op, 2)))
    attributes.erase("axis");
  return attributes.getDictionary(op->getContext());
}

static bool isSame(Operation *op, Operation *other) {
  return op->getNumOperands() == other->getNumOperands() && op->getResultTypes() == other->getResultTypes() &&
         getMeaning(op) == getMeaning(other) &&
         llvm::all_of(llvm::zip_equal(op->getOperands(), other->getOperands()),
                      [](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
}

/// The node before `op` in its block that dequantizes the same integers in the same way, among the readers of those.
static Operation *findSame(Operation *op) {
  for (Operation *other : op->getOperand(0).getUsers())
    if (other != op && other->getBlock() == op->getBlock() && isOp(other, "DequantizeLinear") &&
        other->isBeforeInBlock(op) && isSame(op, other))
      return other;
  return nullptr;
}

/// What `op` only gives another name, or another node gives too.
static Value findOriginal(Operation *op) {
  if ((isOp(op, "Identity") || isOp(op, "Cast")) && op->getOperand(0).getType() == op->getResult(0).getType() &&
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
