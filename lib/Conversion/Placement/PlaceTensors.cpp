// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tensors of an entry lie on the device. Tensors are values, so a tensor that both sides need is two, one copied from
// the other where it was made; buffers (hone-place-buffers) then follow from what joins them.

#include "Sides.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace hone {
#define GEN_PASS_DEF_PLACETENSORS
#include "hone/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

remark::RemarkOpts describe(StringRef name) { return remark::RemarkOpts::name(name).category("hone-place-tensors"); }

/// Places the operations of one entry, in order, so that the sides of operands are known.
class Placer {
public:
  explicit Placer(func::FuncOp entry) : tensors(entry.getArgument(0)) {}

  LogicalResult place(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      if (failed(place(&op)))
        return failure();
    return success();
  }

  SidedTensors tensors;
  int64_t numDevice = 0, numHost = 0;

private:
  LogicalResult place(Operation *op) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      return placeLinalg(linalgOp), success();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return placeFor(loop);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return placeWhile(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return placeIf(branch);
    if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::ExtractSliceOp, tensor::ReshapeOp>(
            op))
      return placeView(op), success();
    if (auto extract = dyn_cast<tensor::ExtractOp>(op))
      return placeExtract(extract), success();
    if (auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(op))
      return placeOutput(write), success();
    if (isa<hrt::StateAppendOp, hrt::StateViewOp, hrt::StateUpdateOp, hrt::KernelOp, hrt::ObserveOp>(op))
      return run(op, Side::Device), success();
    if (isa<tensor::InsertOp, tensor::FromElementsOp, tensor::GenerateOp>(op)) // generated: what the runtime answers
      return run(op, Side::Host), success();
    if (isa<tensor::InsertSliceOp, arith::SelectOp>(op))
      return run(op, joinSides(op)), success();
    bool hasTensors = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>) ||
                      llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>) || op->getNumRegions() > 0;
    if (!hasTensors || isa<tensor::DimOp, scf::YieldOp, scf::ConditionOp>(op) || tensors.isSource(op))
      return success();
    return op->emitError() << "cannot place " << op->getName() << " on the host or on the device";
  }

  /// What the regions of `op` read from outside.
  static SmallVector<OpOperand *> getCaptured(Operation *op) {
    SmallVector<OpOperand *> captured;
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) {
        for (OpOperand &operand : inner->getOpOperands())
          if (isa<RankedTensorType>(operand.get().getType()) &&
              operand.get().getParentRegion()->isProperAncestor(&region))
            captured.push_back(&operand);
      });
    return captured;
  }

  /// `op` takes all its tensors from `side`, and its results are there.
  void run(Operation *op, Side side) {
    SmallVector<OpOperand *> operands = getCaptured(op);
    for (OpOperand &operand : op->getOpOperands())
      operands.push_back(&operand);
    for (OpOperand *operand : operands)
      if (isa<RankedTensorType>(operand->get().getType()))
        operand->set(isa<arith::SelectOp>(op) ? tensors.getJoined(operand->get(), side)
                                              : tensors.get(operand->get(), side));
    tensors.setResults(op, side);
  }

  /// The host, if nothing that `op` takes is the device's and something is the host's.
  Side joinSides(Operation *op) {
    bool anyHost = false;
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType())) {
        if (tensors.sideOf(operand) == Side::Device)
          return Side::Device;
        anyHost |= tensors.sideOf(operand) == Side::Host;
      }
    return anyHost || isSmallInteger(op->getResultTypes()) ? Side::Host : Side::Device;
  }

  void placeLinalg(linalg::LinalgOp op) {
    StringRef reason = getReasonForHost(op, getCaptured(op), tensors);
    Side side = reason.empty() ? Side::Device : Side::Host;
    run(op, side);
    ++(side == Side::Host ? numHost : numDevice);
    if (side == Side::Host)
      remark::missed(op->getLoc(), describe("Host"))
          << (op->getName().getStringRef() + " runs on the host: " + reason).str();
  }

  /// A view of what both sides can read is made on each side that needs it.
  void placeView(Operation *op) {
    if (auto reshape = dyn_cast<tensor::ReshapeOp>(op))
      reshape.getShapeMutable().set(tensors.get(reshape.getShape(), Side::Host));
    tensors.setResults(op, tensors.sideOf(op->getOperand(0)));
  }

  /// One element is fetched, not its tensor.
  void placeExtract(tensor::ExtractOp op) {
    if (tensors.sideOf(op.getTensor()) != Side::Device) {
      op.getTensorMutable().set(tensors.get(op.getTensor(), Side::Host));
      return;
    }
    OpBuilder b(op);
    int64_t rank = op.getTensor().getType().getRank();
    SmallVector<OpFoldResult> at(op.getIndices().begin(), op.getIndices().end()), one(rank, b.getIndexAttr(1));
    auto scalar = RankedTensorType::get({}, op.getType());
    Value element = op.getTensor();
    if (rank > 0)
      element = tensor::ExtractSliceOp::create(b, op.getLoc(), scalar, element, at, one, one);
    tensors.set(element, Side::Device);
    Value fetched = tensors.get(element, Side::Host);
    b.setInsertionPointAfterValue(fetched);
    op.replaceAllUsesWith(tensor::ExtractOp::create(b, op.getLoc(), fetched, ValueRange()).getResult());
    op.erase();
  }

  void placeOutput(bufferization::MaterializeInDestinationOp op) {
    bool isHost = tensors.sideOf(op.getSource()) == Side::Host;
    if (!isHost)
      op.getDest().setType(onDevice(cast<MemRefType>(op.getDest().getType())));
    op.getSourceMutable().set(tensors.get(op.getSource(), isHost ? Side::Host : Side::Device));
  }

  LogicalResult placeFor(scf::ForOp loop) {
    SmallVector<Side> sides;
    for (auto [init, argument] : llvm::zip_equal(loop.getInitArgsMutable(), loop.getRegionIterArgs()))
      sides.push_back(carry(init, argument));
    if (failed(place(*loop.getBody())))
      return failure();
    finish(loop.getBody()->getTerminator()->getOpOperands(), sides);
    for (auto [result, side] : llvm::zip_equal(loop.getResults(), sides))
      tensors.set(result, side);
    return success();
  }

  LogicalResult placeWhile(scf::WhileOp loop) {
    SmallVector<Side> sides, passed;
    for (auto [init, argument] : llvm::zip_equal(loop.getInitsMutable(), loop.getBeforeArguments()))
      sides.push_back(carry(init, argument));
    if (failed(place(*loop.getBeforeBody())))
      return failure();
    auto condition = loop.getConditionOp();
    for (auto [operand, argument, result] :
         llvm::zip_equal(condition.getArgsMutable(), loop.getAfterArguments(), loop.getResults())) {
      passed.push_back(carry(operand, argument));
      tensors.set(result, passed.back());
    }
    if (failed(place(*loop.getAfterBody())))
      return failure();
    finish(loop.getAfterBody()->getTerminator()->getOpOperands(), sides);
    return success();
  }

  LogicalResult placeIf(scf::IfOp branch) {
    for (Region &region : branch->getRegions())
      if (!region.empty() && failed(place(region.front())))
        return failure();
    for (auto [i, result] : llvm::enumerate(branch.getResults())) {
      if (!isa<RankedTensorType>(result.getType()))
        continue;
      OpOperand &yes = branch.thenYield()->getOpOperand(i), &no = branch.elseYield()->getOpOperand(i);
      Side a = tensors.sideOf(yes.get()), b = tensors.sideOf(no.get());
      bool isHost = a != Side::Device && b != Side::Device &&
                    (a == Side::Host || b == Side::Host || isSmallInteger(result.getType()));
      for (OpOperand *operand : {&yes, &no})
        operand->set(tensors.getJoined(operand->get(), isHost ? Side::Host : Side::Device));
      tensors.set(result, isHost ? Side::Host : Side::Device);
    }
    return success();
  }

  /// Chooses where what a loop carries is: with what is inserted element by element, on the host.
  Side carry(OpOperand &init, Value argument) {
    if (!isa<RankedTensorType>(init.get().getType()))
      return Side::Host;
    Side side = tensors.sideOf(init.get());
    bool onHost =
        side == Side::Host || isInsertedInto(argument) || (side == Side::Both && isSmallInteger(argument.getType()));
    side = onHost ? Side::Host : Side::Device;
    init.set(tensors.getJoined(init.get(), side));
    tensors.set(argument, side);
    return side;
  }

  void finish(MutableArrayRef<OpOperand> yielded, ArrayRef<Side> sides) {
    for (auto [operand, side] : llvm::zip_equal(yielded, sides))
      if (isa<RankedTensorType>(operand.get().getType()))
        operand.set(tensors.getJoined(operand.get(), side));
  }
};

struct PlaceTensors : impl::PlaceTensorsBase<PlaceTensors> {
  void runOnOperation() override {
    func::FuncOp entry = getOperation();
    if (!entry->hasAttr(hrt::kEntryAttr))
      return;
    Placer placer(entry);
    if (failed(placer.place(entry.getBody().front())))
      return signalPassFailure();
    numDevice += placer.numDevice;
    numHost += placer.numHost;
    numFetched += placer.tensors.numFetched;
    numUploaded += placer.tensors.numUploaded;
  }
};

} // namespace
} // namespace hone
