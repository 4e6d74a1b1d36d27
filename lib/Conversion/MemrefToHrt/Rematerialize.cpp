// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a backward pass reads of the forward pass is computed once more where that is cheap and holds no more memory.

#include "hone/Conversion/Passes.h"

#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

namespace hone {
#define GEN_PASS_DEF_REMATERIALIZE
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// A read of a value, or of a view of it: the views from the value on, and where the reader is in the block of the function.
struct Read {
  OpOperand *use;
  SmallVector<Operation *> views;
  unsigned place;
};

struct Rematerialize : impl::RematerializeBase<Rematerialize> {
  using RematerializeBase::RematerializeBase;
  void runOnOperation() override;

private:
  SmallVector<Read> listReads(Value value) const;
  void addReads(Value value, SmallVector<Operation *> &views, SmallVector<Read> &reads) const;
  bool isThereAt(Value value, unsigned place) const;
  void rematerialize(Operation *op);

  Block *block = nullptr;
  DenseMap<Operation *, unsigned> places;
  llvm::SetVector<Operation *> unread; // views
};

} // namespace

static bool isView(Operation *op) { return isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op); }

/// Memory-bound operations, whose result takes about as long to compute as to read.
static bool isCheap(Operation *op) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  if (auto kernel = dyn_cast<hrt::KernelOp>(op))
    return kernel.getName().contains(".rms_norm.") || kernel.getName().contains(".layer_norm.");
  if (isa<linalg::TransposeOp>(op))
    return true;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic && generic.getNumLoops() == generic.getNumParallelLoops() && generic.getNumLoops() > 1 &&
         !generic.payloadUsesValueFromOperand(generic.getDpsInitOperand(0));
}

void Rematerialize::addReads(Value value, SmallVector<Operation *> &views, SmallVector<Read> &reads) const {
  for (OpOperand &use : value.getUses()) {
    if (isView(use.getOwner()) && use.getOwner()->getBlock() == block) {
      views.push_back(use.getOwner());
      addReads(use.getOwner()->getResult(0), views, reads);
      views.pop_back();
    } else if (Operation *reader = block->findAncestorOpInBlock(*use.getOwner()); !isa<tensor::DimOp>(use.getOwner())) {
      reads.push_back({&use, views, places.lookup(reader)});
    }
  }
}

/// In the order of the block.
SmallVector<Read> Rematerialize::listReads(Value value) const {
  SmallVector<Operation *> views;
  SmallVector<Read> reads;
  addReads(value, views, reads);
  llvm::sort(reads, [](const Read &a, const Read &b) { return a.place < b.place; });
  return reads;
}

/// Whether memory holds the value at `place` in any case: it is no tensor, a constant, the caller's or nothing, or it is read there
/// or later.
bool Rematerialize::isThereAt(Value value, unsigned place) const {
  while (Operation *view = value.getDefiningOp()) {
    if (!isView(view))
      break;
    value = view->getOperand(0);
  }
  Operation *op = value.getDefiningOp();
  if (!op || !isa<RankedTensorType>(value.getType()) || isa<bufferization::ToTensorOp, tensor::EmptyOp>(op) ||
      op->hasTrait<OpTrait::ConstantLike>())
    return true;
  return llvm::any_of(listReads(value), [&](const Read &read) { return read.place >= place; });
}

/// Gives the reads that are far after those before them a copy of the operation, if what it reads is there then.
void Rematerialize::rematerialize(Operation *op) {
  SmallVector<Read> reads = listReads(op->getResult(0));
  unsigned last = places.lookup(op);
  auto *first = llvm::find_if(reads, [&](const Read &read) {
    bool isFar = read.place >= last + far;
    last = read.place;
    return isFar;
  });
  if (first == reads.end() || isa<func::ReturnOp>(reads.back().use->getOwner()))
    return;
  auto destination = cast<DestinationStyleOpInterface>(op);
  Value init = destination.getDpsInits().front();
  auto empty = init.getDefiningOp<tensor::EmptyOp>();
  llvm::SetVector<Value> read;
  for (OpOperand *input : destination.getDpsInputOperands())
    read.insert(input->get());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  if (!empty || !llvm::all_of(read, [&](Value value) { return isThereAt(value, first->place); }))
    return;
  OpBuilder b(block->findAncestorOpInBlock(*first->use->getOwner()));
  IRMapping copies;
  auto copy = [&](Operation *source) { places[b.clone(*source, copies)] = first->place; };
  copy(empty);
  copy(op);
  for (const Read &late : llvm::make_range(first, reads.end())) {
    OpOperand *use = late.use;
    for (Operation *view : late.views) {
      if (places.lookup(view) >= first->place) { // a view of the copy from now on
        use = &view->getOpOperand(0);
        break;
      }
      if (!copies.contains(view->getResult(0)))
        copy(view);
    }
    use->set(copies.lookupOrDefault(use->get()));
    for (Operation *view : llvm::reverse(late.views))
      if (view->use_empty()) // which would hold the value
        unread.insert(view);
  }
  ++numRematerialized;
}

void Rematerialize::runOnOperation() {
  func::FuncOp function = getOperation();
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return;
  block = &function.getBody().front();
  places.clear();
  SmallVector<Operation *> ops;
  for (Operation &op : *block) {
    places[&op] = places.size();
    if (isCheap(&op))
      ops.push_back(&op);
  }
  for (Operation *op : ops)
    rematerialize(op);
  for (Operation *view : llvm::reverse(unread))
    if (view->use_empty())
      view->erase();
  unread.clear();
}

} // namespace hone
