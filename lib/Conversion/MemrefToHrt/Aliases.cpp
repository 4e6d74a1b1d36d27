// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Closures over uses and operands, beside those of upstream's analysis.

#include "Aliases.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace hone {

static bool makesViews(Operation *op) { return op->getNumRegions() == 0 && !hasEffect<MemoryEffects::Allocate>(op); }

static bool isBuffer(Value value) { return isa<BaseMemRefType>(value.getType()); }

llvm::SetVector<Value> Aliases::getViews(Value buffer) const {
  llvm::SetVector<Value> found;
  SmallVector<Value> open{buffer};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!found.insert(next))
      continue;
    llvm::append_range(open, views.resolve(next));
    for (Operation *user : next.getUsers())
      if (makesViews(user))
        llvm::append_range(open, llvm::make_filter_range(user->getResults(), isBuffer));
  }
  return found;
}

llvm::SetVector<Value> Aliases::getAll(Value buffer) const {
  llvm::SetVector<Value> origins, all;
  SmallVector<Value> open{buffer};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!origins.insert(next))
      continue;
    llvm::append_range(open, views.resolveReverse(next));
    if (Operation *op = next.getDefiningOp(); op && makesViews(op))
      llvm::append_range(open, llvm::make_filter_range(op->getOperands(), isBuffer));
  }
  for (Value origin : origins)
    all.insert_range(getViews(origin));
  return all;
}

} // namespace hone
