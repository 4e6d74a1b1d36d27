// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory spaces of buffers. What hone-place-tensors decided is in the types of what the runtime gives and in the transfers; all
// that is joined with it without a transfer lies in the same memory. This pass finds that out anew, and so proves it.

#include "Sides.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace hone {
#define GEN_PASS_DEF_PLACEBUFFERS
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

bool isBuffer(Value value) { return isa<MemRefType>(value.getType()); }

/// The buffers of one entry: which are joined, and what is known to be on either side.
class Buffers {
public:
  void collect(func::FuncOp entry) {
    entry.walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (Value argument : region.getArguments())
          add(argument);
      for (Value result : op->getResults())
        add(result);
    });
    entry.walk([&](Operation *op) { take(op); });
  }

  /// Puts what is the device's into its memory space; fails where something of the host is joined with it.
  FailureOr<int64_t> place() {
    llvm::DenseSet<Value> device;
    for (auto [value, user] : deviceSeeds)
      device.insert(classes.getLeaderValue(value));
    for (auto [value, user] : hostSeeds)
      if (device.contains(classes.getLeaderValue(value)))
        return user->emitError() << "expected memory of the host, but got the device's";
    int64_t count = 0;
    for (Value value : inOrder)
      if (device.contains(classes.getLeaderValue(value))) {
        value.setType(hone::onDevice(cast<MemRefType>(value.getType())));
        ++count;
      }
    return count;
  }

private:
  void add(Value value) {
    if (!isBuffer(value))
      return;
    classes.insert(value);
    inOrder.push_back(value);
  }

  void join(Value a, Value b) {
    if (isBuffer(a) && isBuffer(b))
      classes.unionSets(a, b);
  }

  void joinAll(ValueRange a, ValueRange b) {
    for (auto [left, right] : llvm::zip_equal(a, b))
      join(left, right);
  }

  void seed(Value value, bool isDevice, Operation *user) {
    if (isBuffer(value))
      (isDevice ? deviceSeeds : hostSeeds).emplace_back(value, user);
  }

  void take(Operation *op) {
    if (isa<hrt::InputOp, hrt::OutputOp, hrt::WeightOp, hrt::ArenaOp>(op)) {
      for (Value result : op->getResults())
        seed(result, hrt::isOnDevice(result), op);
    } else if (isa<hrt::KernelOp, hrt::StateAppendOp, hrt::StateViewOp, hrt::StateUpdateOp, hrt::StateExtendOp,
                   hrt::ObserveOp, hrt::CopyOp>(op)) {
      for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults())))
        seed(value, true, op);
    } else if (isa<hrt::FetchOp, hrt::UploadOp>(op)) {
      bool isFetch = isa<hrt::FetchOp>(op);
      seed(op->getOperand(1), isFetch, op);
      seed(op->getOperand(2), !isFetch, op);
    } else if (auto linalgOp = op->getParentOfType<linalg::LinalgOp>()) {
      for (Value operand : op->getOperands()) // what its region reads
        if (isBuffer(operand))
          joinWith(linalgOp, operand);
    } else if (isa<linalg::LinalgOp, memref::CopyOp>(op)) {
      for (Value operand : op->getOperands())
        joinWith(op, operand);
    } else if (isa<memref::LoadOp, memref::StoreOp, memref::GetGlobalOp, func::CallOp>(op)) {
      for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults())))
        seed(value, false, op);
    } else {
      takeRegions(op);
    }
  }

  /// All buffers that `op` takes are in one memory.
  void joinWith(Operation *op, Value value) {
    for (Value operand : op->getOperands())
      if (isBuffer(operand))
        return join(operand, value);
  }

  void takeRegions(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      joinAll(loop.getInitArgs(), loop.getRegionIterArgs());
      joinAll(loop.getYieldedValues(), loop.getRegionIterArgs());
      joinAll(loop.getResults(), loop.getRegionIterArgs());
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      joinAll(loop.getInits(), loop.getBeforeArguments());
      joinAll(loop.getConditionOp().getArgs(), loop.getAfterArguments());
      joinAll(loop.getResults(), loop.getAfterArguments());
      joinAll(loop.getAfterBody()->getTerminator()->getOperands(), loop.getBeforeArguments());
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Region &region : branch->getRegions())
        if (!region.empty())
          joinAll(region.front().getTerminator()->getOperands(), branch.getResults());
    } else if (auto reshape = dyn_cast<memref::ReshapeOp>(op)) {
      join(reshape.getSource(), reshape.getResult());
      seed(reshape.getShape(), false, op);
    } else if (!isa<memref::AllocOp>(op)) { // views, and choices between buffers
      for (Value result : op->getResults())
        for (Value operand : op->getOperands())
          join(result, operand);
    }
  }

  llvm::EquivalenceClasses<Value> classes;
  SmallVector<Value> inOrder;
  SmallVector<std::pair<Value, Operation *>> deviceSeeds, hostSeeds;
};

struct PlaceBuffers : impl::PlaceBuffersBase<PlaceBuffers> {
  void runOnOperation() override {
    func::FuncOp entry = getOperation();
    if (!entry->hasAttr(hrt::kEntryAttr))
      return;
    Buffers buffers;
    buffers.collect(entry);
    FailureOr<int64_t> placed = buffers.place();
    if (failed(placed))
      return signalPassFailure();
    numPlaced += *placed;
    entry.walk([](memref::MemorySpaceCastOp cast) { // what was joined with others has their memory space now
      if (cast.getType() != cast.getSource().getType())
        return;
      cast.replaceAllUsesWith(cast.getSource());
      cast.erase();
    });
  }
};

} // namespace
} // namespace hone
