// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass: checks before the work that they are about. A size that a check makes fixed becomes part of types, and canonicalisation
// carries types from uses back to producers: what wrote as many elements as there are before the check would write them to memory of
// the fixed size.

#include "hone/Conversion/Passes.h"

#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hone {
#define GEN_PASS_DEF_HOISTCHECKS
#include "hone/Conversion/Passes.h.inc"

/// Arithmetic on scalars, and sizes of tensors: cheap, and right wherever its operands are.
static bool isSizeArithmetic(Operation *op) {
  return (isa<tensor::DimOp>(op) || isa_and_nonnull<arith::ArithDialect>(op->getDialect())) && isPure(op) &&
         llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); });
}

static Operation *getSourceIn(Block &block, Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == &block ? op : nullptr;
}

/// For each operation of a block that checks sizes or computes what a check needs: the last operation that it has to follow and
/// that does not move, null for none. In the block's order.
static llvm::MapVector<Operation *, Operation *> findPlaces(Block &block) {
  struct Place {
    Operation *after;
    unsigned position;
  };
  llvm::DenseMap<Operation *, Place> places;
  unsigned position = 0;
  for (Operation &op : block) {
    Place place = {&op, ++position};
    if (isa<hrt::CheckOp>(op) || isSizeArithmetic(&op)) {
      place = {nullptr, 0};
      for (Value operand : op.getOperands())
        if (Operation *source = getSourceIn(block, operand); source && places[source].position > place.position)
          place = places[source];
    }
    places[&op] = place;
  }
  llvm::SmallPtrSet<Operation *, 32> needed;
  for (Operation &op : llvm::reverse(block)) {
    if (!isa<hrt::CheckOp>(op) && !needed.contains(&op))
      continue;
    needed.insert(&op);
    for (Value operand : op.getOperands())
      if (Operation *source = getSourceIn(block, operand); source && isSizeArithmetic(source))
        needed.insert(source);
  }
  llvm::MapVector<Operation *, Operation *> found;
  for (Operation &op : block)
    if (needed.contains(&op))
      found[&op] = places[&op].after;
  return found;
}

/// Moves each of them to follow its operation, in their order; the number of checks among them that moved.
static unsigned hoistChecks(Block &block) {
  unsigned hoisted = 0;
  if (block.getOps<hrt::CheckOp>().empty())
    return hoisted;
  llvm::DenseMap<Operation *, Operation *> lasts; // what was put after an operation last
  for (auto [op, after] : findPlaces(block)) {
    auto [last, isFirst] = lasts.try_emplace(after, after);
    if (op->getPrevNode() != last->second) {
      if (last->second)
        op->moveAfter(last->second);
      else
        op->moveBefore(&block, block.begin());
      hoisted += isa<hrt::CheckOp>(op);
    }
    last->second = op;
  }
  return hoisted;
}

namespace {
struct HoistChecks : impl::HoistChecksBase<HoistChecks> {
  void runOnOperation() override {
    getOperation().walk([&](Block *block) { numHoisted += hoistChecks(*block); });
  }
};
} // namespace

} // namespace hone
