// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How hrt's operations on tensors become operations on memrefs.

#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace hone::hrt;

namespace {

struct KernelModel : DstBufferizableOpInterfaceExternalModel<KernelModel, KernelOp> {
  /// A kernel that does not accumulate overwrites its outputs without reading them.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand, const AnalysisState &) const {
    auto kernel = cast<KernelOp>(op);
    return !kernel.isDpsInit(&operand) || kernel.accumulates();
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter, const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto kernel = cast<KernelOp>(op);
    SmallVector<Value> inputs, outputs;
    for (auto [from, to] : {std::pair(kernel.getInputs(), &inputs), std::pair(kernel.getOutputs(), &outputs)})
      for (Value value : from) {
        if (isa<TensorType>(value.getType())) {
          FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
          if (failed(buffer))
            return failure();
          value = *buffer;
        }
        to->push_back(value);
      }
    KernelOp::create(rewriter, op->getLoc(), TypeRange(), kernel.getCall(), kernel.getNameAttr(), inputs, outputs,
                     kernel.getIntsAttr(), kernel.getFloatsAttr());
    replaceOpWithBufferizedValues(rewriter, op, ArrayRef(outputs).take_front(op->getNumResults()));
    return success();
  }
};

/// What is copied from one memory to another lies there without gaps: what has gaps is copied to where it has none before.
FailureOr<Value> getContiguous(RewriterBase &rewriter, Location loc, Value tensor, const BufferizationOptions &options,
                               BufferizationState &state) {
  FailureOr<Value> buffer = getBuffer(rewriter, tensor, options, state);
  if (failed(buffer))
    return failure();
  auto type = cast<MemRefType>(buffer->getType());
  if (type.areTrailingDimsContiguous(type.getRank()))
    return buffer;
  auto dense = MemRefType::get(type.getShape(), type.getElementType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(memref::DimOp::create(rewriter, loc, *buffer, dim));
  Value copy = memref::AllocOp::create(rewriter, loc, dense, sizes);
  memref::CopyOp::create(rewriter, loc, *buffer, copy);
  return copy;
}

/// A copy overwrites its target without reading it.
template <typename Op>
struct TransferModel : DstBufferizableOpInterfaceExternalModel<TransferModel<Op>, Op> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand, const AnalysisState &) const {
    return !cast<Op>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter, const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto transfer = cast<Op>(op);
    FailureOr<Value> source = getContiguous(rewriter, op->getLoc(), transfer.getSource(), options, state);
    FailureOr<Value> target = getBuffer(rewriter, transfer.getTarget(), options, state);
    if (failed(source) || failed(target))
      return failure();
    Op::create(rewriter, op->getLoc(), TypeRange(), transfer.getCall(), *source, *target);
    replaceOpWithBufferizedValues(rewriter, op, *target);
    return success();
  }
};

/// State is the runtime's memory: its views alias nothing of the program, and only those of hrt.state_update are written.
MemRefType getViewType(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return getMemRefTypeWithFullyDynamicLayout(type) ? cast<MemRefType>(getMemRefTypeWithFullyDynamicLayout(type))
                                                   : MemRefType();
}

template <typename ConcreteModel, typename OpType>
struct StateModel : BufferizableOpInterface::ExternalModel<ConcreteModel, OpType> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const { return true; }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const { return false; }
  AliasingValueList getAliasingValues(Operation *, OpOperand &, const AnalysisState &) const { return {}; }
  bool isWritable(Operation *, Value, const AnalysisState &) const { return false; }
  FailureOr<BufferLikeType> getBufferType(Operation *, Value value, const BufferizationOptions &,
                                          const BufferizationState &, SmallVector<Value> &) const {
    return cast<BufferLikeType>(getViewType(value));
  }
};

struct AppendModel : StateModel<AppendModel, StateAppendOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter, const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto append = cast<StateAppendOp>(op);
    FailureOr<Value> fresh = getBuffer(rewriter, append.getFresh(), options, state);
    if (failed(fresh))
      return failure();
    replaceOpWithNewBufferizedOp<StateAppendOp>(rewriter, op, getViewType(append.getAll()), append.getCall(),
                                                append.getSlot(), *fresh);
    return success();
  }
};

struct ViewModel : StateModel<ViewModel, StateViewOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter, const BufferizationOptions &,
                          BufferizationState &) const {
    auto view = cast<StateViewOp>(op);
    replaceOpWithNewBufferizedOp<StateViewOp>(rewriter, op, getViewType(view.getAll()), view.getCall(), view.getSlot());
    return success();
  }
};

struct UpdateModel : StateModel<UpdateModel, StateUpdateOp> {
  static MemRefType getDenseType(Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    return MemRefType::get(type.getShape(), type.getElementType());
  }
  bool isWritable(Operation *, Value, const AnalysisState &) const { return true; }
  FailureOr<BufferLikeType> getBufferType(Operation *, Value value, const BufferizationOptions &,
                                          const BufferizationState &, SmallVector<Value> &) const {
    return cast<BufferLikeType>(getDenseType(value));
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter, const BufferizationOptions &,
                          BufferizationState &) const {
    auto update = cast<StateUpdateOp>(op);
    replaceOpWithNewBufferizedOp<StateUpdateOp>(rewriter, op, getDenseType(update.getAll()), update.getCall(),
                                                update.getSlot());
    return success();
  }
};

/// Reads its operand, and has no result.
struct ObserveModel : StateModel<ObserveModel, ObserveOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter, const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto observe = cast<ObserveOp>(op);
    FailureOr<Value> values = getBuffer(rewriter, observe.getValues(), options, state);
    if (failed(values))
      return failure();
    replaceOpWithNewBufferizedOp<ObserveOp>(rewriter, op, observe.getCall(), observe.getSite(), *values);
    return success();
  }
};

} // namespace

void hone::hrt::registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, HrtDialect *) {
    KernelOp::attachInterface<KernelModel>(*context);
    StateAppendOp::attachInterface<AppendModel>(*context);
    StateViewOp::attachInterface<ViewModel>(*context);
    StateUpdateOp::attachInterface<UpdateModel>(*context);
    ObserveOp::attachInterface<ObserveModel>(*context);
    FetchOp::attachInterface<TransferModel<FetchOp>>(*context);
    UploadOp::attachInterface<TransferModel<UploadOp>>(*context);
    CopyOp::attachInterface<TransferModel<CopyOp>>(*context);
  });
}
