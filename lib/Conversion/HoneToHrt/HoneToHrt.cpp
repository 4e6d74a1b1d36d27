// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions on tensors become entry points: inputs, outputs, parameters and state come from the call.

#include "Collectives.h"
#include "DeviceWeights.h"
#include "KernelSelection.h"
#include "PlaceParameters.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Transforms/DecomposedParts.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

namespace hone {
#define GEN_PASS_DEF_CONVERTHONETOHRT
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

static Value readMemory(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  return bufferization::ToTensorOp::create(b, loc, RankedTensorType::get(type.getShape(), type.getElementType()),
                                           memref,
                                           /*restrict=*/true);
}

static MemRefType getMemRef(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

/// The memory of a view, strided where it shares the rows of its plane.
static MemRefType getMemRef(const PlaneView &view) {
  MemRefType dense = getMemRef(view.type);
  if (view.stride == 0)
    return dense;
  auto [strides, offset] = dense.getStridesAndOffset();
  strides.front() = view.stride / getElementBytes(dense.getElementType());
  return MemRefType::get(dense.getShape(), dense.getElementType(),
                         StridedLayoutAttr::get(dense.getContext(), offset, strides));
}

/// `view` of a parameter whose planes begin at `offsets`.
static Value readView(OpBuilder &b, Location loc, const PlaneView &view, Value call, ArrayRef<int64_t> offsets) {
  return hrt::WeightOp::create(b, loc, getMemRef(view), call, b.getI64IntegerAttr(offsets[view.plane] + view.offset));
}

static ArrayRef<int64_t> getOffsets(GetParamOp get, SymbolTable &symbols) {
  return symbols.lookup(get.getName())->getAttrOfType<DenseI64ArrayAttr>(hrt::kOffsetsAttr).asArrayRef();
}

/// Elements as an operation sees them, in either order: memory is read through strides, so that no byte moves.
static bool isReadInPlace(RankedTensorType type) {
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  return !type.getEncoding() || (stored && stored.getType() == type.getElementType());
}

static Value viewParameter(OpBuilder &b, GetParamOp get, Value call, ArrayRef<int64_t> offsets) {
  auto type = cast<RankedTensorType>(get.getType());
  Value memory = readView(b, get.getLoc(), getViews(type)[0], call, offsets);
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  if (!stored || !stored.getTransposed())
    return memory;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  std::swap(permutation[type.getRank() - 1], permutation[type.getRank() - 2]);
  auto map = AffineMap::getPermutationMap(permutation, b.getContext());
  return memref::TransposeOp::create(b, get.getLoc(), memory, AffineMapAttr::get(map));
}

/// Parameters that are read in place become plain tensors.
static void replacePlainParameters(func::FuncOp function, Value call, SymbolTable &symbols) {
  function.walk([&](GetParamOp get) {
    if (!isReadInPlace(cast<RankedTensorType>(get.getType())))
      return;
    OpBuilder b(get);
    Value view = viewParameter(b, get, call, getOffsets(get, symbols));
    get.replaceAllUsesWith(readMemory(b, get.getLoc(), view));
    get.erase();
  });
  function.walk([](UnpackOp unpack) {
    if (unpack.getTensor().getType().getEncoding())
      return;
    unpack.replaceAllUsesWith(unpack.getTensor());
    unpack.erase();
  });
}

/// Planes of parameters are read where they lie: by kernels, or by what was decomposed.
static LogicalResult replacePlanes(func::FuncOp function, Value call, SymbolTable &symbols) {
  WalkResult result = function.walk([&](PlanesOp planes) {
    auto get = planes.getTensor().getDefiningOp<GetParamOp>();
    if (!get) {
      planes.emitOpError() << "expected the planes to be those of a parameter";
      return WalkResult::interrupt();
    }
    OpBuilder b(planes);
    SmallVector<PlaneView> views = getViews(planes.getTensor().getType());
    for (auto [plane, view] : llvm::zip_equal(planes.getPlanes(), views)) {
      Value memory = readView(b, planes.getLoc(), view, call, getOffsets(get, symbols));
      plane.replaceAllUsesWith(readMemory(b, planes.getLoc(), memory));
    }
    planes.erase();
    return WalkResult::advance();
  });
  function.walk([](GetParamOp get) {
    if (get.use_empty())
      get.erase();
  });
  return failure(result.wasInterrupted());
}

/// `fresh` with the elements that the runtime takes for `slot`: what it holds, or f32 where it is kept in blocks.
static Value convertToSlot(OpBuilder &b, Location loc, Value fresh, RankedTensorType slot) {
  auto type = cast<RankedTensorType>(fresh.getType());
  Type elements = slot.getEncoding() ? b.getF32Type() : slot.getElementType();
  if (type.getElementType() == elements)
    return fresh;
  Value init = tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, fresh), elements);
  AffineMap map = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto convert = [](OpBuilder &nested, Location at, ValueRange args) {
    Value element = convertScalarToDtype(nested, at, args[0], args[1].getType(), /*isUnsignedCast=*/false);
    linalg::YieldOp::create(nested, at, element);
  };
  Value converted =
      linalg::GenericOp::create(b, loc, init.getType(), fresh, init, {map, map}, iterators, convert).getResult(0);
  auto wanted = RankedTensorType::get(type.getShape(), elements);
  return converted.getType() == wanted ? converted : Value(tensor::CastOp::create(b, loc, wanted, converted));
}

/// Views each slot that is replaced in place once, before all else, as memory that the function writes.
static void updateSlots(func::FuncOp function, Value call) {
  llvm::SmallSetVector<uint64_t, 8> slots;
  function.walk([&](KvReplaceOp op) {
    if (op.getInPlace())
      slots.insert(op.getSlot());
  });
  llvm::SmallDenseMap<uint64_t, SmallVector<KvViewOp>> views;
  function.walk([&](KvViewOp op) { views[op.getSlot()].push_back(op); });
  OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
  for (uint64_t slot : slots) {
    Value updated;
    for (KvViewOp view : views[slot]) {
      if (!updated)
        updated = hrt::StateUpdateOp::create(b, view.getLoc(), view.getType(), call, slot);
      view.replaceAllUsesWith(updated);
      view.erase();
    }
  }
}

static void replaceStateOps(func::FuncOp function, Value call) {
  updateSlots(function, call);
  function.walk([&](Operation *op) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    if (auto append = dyn_cast<KvAppendOp>(op)) {
      RankedTensorType all = append.getAll().getType();
      Value fresh = convertToSlot(b, loc, append.getFresh(), all);
      append.getAll().replaceAllUsesWith(hrt::StateAppendOp::create(b, loc, all, call, append.getSlot(), fresh));
      append.getNext().replaceAllUsesWith(append.getState());
    } else if (auto replacement = dyn_cast<KvReplaceOp>(op)) {
      TypedValue<RankedTensorType> value = replacement.getValue();
      hrt::StateAppendOp::create(b, loc, value.getType(), call, replacement.getSlot(), value);
      replacement.getNext().replaceAllUsesWith(replacement.getState());
    } else if (auto view = dyn_cast<KvViewOp>(op)) {
      view.getResult().replaceAllUsesWith(hrt::StateViewOp::create(b, loc, view.getType(), call, view.getSlot()));
    } else if (auto length = dyn_cast<KvLengthOp>(op)) {
      length.getResult().replaceAllUsesWith(hrt::StateLengthOp::create(b, loc, b.getIndexType(), call));
    } else if (auto lag = dyn_cast<KvLagOp>(op)) {
      lag.getResult().replaceAllUsesWith(hrt::StateLagOp::create(b, loc, b.getIndexType(), call, lag.getSequence()));
    } else if (auto padding = dyn_cast<KvPaddingOp>(op)) {
      padding.getResult().replaceAllUsesWith(
          hrt::StatePaddingOp::create(b, loc, b.getIndexType(), call, padding.getSequence()));
    } else if (auto kept = dyn_cast<LogitsToKeepOp>(op)) {
      kept.getResult().replaceAllUsesWith(hrt::LogitsToKeepOp::create(b, loc, b.getIndexType(), call, kept.getFresh()));
    } else {
      return;
    }
    op->erase();
  });
}

static void replaceObservations(func::FuncOp function, Value call) {
  function.walk([&](ObserveOp observe) {
    OpBuilder b(observe);
    hrt::ObserveOp::create(b, observe.getLoc(), call, observe.getSite(), observe.getValues());
    observe.erase();
  });
}

static void writeOutputs(func::FuncOp function, Value call) {
  auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  OpBuilder b(ret);
  int64_t index = 0;
  for (Value value : ret.getOperands()) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      continue;
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(b, ret.getLoc(), value, dim));
    Value memory = hrt::OutputOp::create(b, ret.getLoc(), getMemRef(type), call, index++, sizes);
    bufferization::MaterializeInDestinationOp::create(b, ret.getLoc(), TypeRange(), value, memory, /*restrict=*/true,
                                                      /*writable=*/true);
  }
  func::ReturnOp::create(b, ret.getLoc());
  ret.erase();
}

static LogicalResult checkInterface(func::FuncOp function) {
  auto usable = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return isa<KvType>(type) || (tensor && !tensor.getEncoding());
  };
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
    if (!usable(type))
      return function.emitError()
             << "expected inputs and outputs of the model to be tensors of known rank without encoding, but got "
             << type;
  return success();
}

static LogicalResult convertInterface(func::FuncOp function, SymbolTable &symbols) {
  if (failed(checkInterface(function)))
    return failure();
  Block &block = function.getBody().front();
  unsigned count = block.getNumArguments();
  Value call = block.addArgument(hrt::CallType::get(function.getContext()), function.getLoc());
  replaceStateOps(function, call);
  replaceObservations(function, call);
  writeOutputs(function, call);
  OpBuilder b = OpBuilder::atBlockBegin(&block); // now that the terminator, which may be all there is, is replaced
  int64_t index = 0;
  for (unsigned i = 0; i < count; ++i) {
    BlockArgument argument = block.getArgument(i);
    if (!isa<RankedTensorType>(argument.getType()))
      continue;
    Value memory = hrt::InputOp::create(b, argument.getLoc(), getMemRef(argument.getType()), call, index++);
    argument.replaceAllUsesWith(readMemory(b, argument.getLoc(), memory));
  }
  if (failed(replacePlanes(function, call, symbols)))
    return failure();
  replacePlainParameters(function, call, symbols);
  block.eraseArguments(0, count);
  function.setAllArgAttrs(ArrayRef<DictionaryAttr>());
  function.setAllResultAttrs(ArrayRef<DictionaryAttr>());
  function.setFunctionType(b.getFunctionType({call.getType()}, {}));
  function->setAttr(hrt::kEntryAttr, b.getUnitAttr());
  return success();
}

/// Gradients of attention that have no kernel become products, which may have some, and what is between them.
static void expandAttentionGradients(func::FuncOp function, bool isCpu) {
  function.walk([&](AttentionGradientOp op) {
    if (isCpu && hasKernel(op))
      return;
    LocBuilder b(op.getLoc(), op);
    auto multiply = [](LocBuilder &at, Value left, Value right) -> Value { return MatmulOp::create(at, left, right); };
    replaceByResults(op, buildAttentionGradient(b, op, multiply));
  });
}

namespace {
struct ConvertHoneToHrt : impl::ConvertHoneToHrtBase<ConvertHoneToHrt> {
  using ConvertHoneToHrtBase::ConvertHoneToHrtBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (target != "cpu" && target != "cuda")
      return emitError(UnknownLoc::get(context)) << "unsupported target '" << target << "'; supported: cpu, cuda";
    RewritePatternSet patterns(context);
    populateDecompositions(patterns);
    decompositions = FrozenRewritePatternSet(std::move(patterns));
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool isCpu = target == "cpu";
    if (!isCpu) {
      outlineConstants(module);
      transposeWeights(module);
    }
    numParameters += placeParameters(module);
    SymbolTable symbols(module);
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || function->hasAttr(hrt::kEntryAttr))
        continue;
      if (failed(convertInterface(function, symbols)) || failed(lowerCollectives(function, isCpu ? "hone." : "cuda.")))
        return signalPassFailure();
      expandAttentionGradients(function, isCpu);
      numKernels += isCpu ? selectKernels(function) : selectCudaKernels(function);
      decompose(function, decompositions);
      if (failed(replacePlanes(function, function.getArgument(0), symbols)))
        return signalPassFailure();
    }
    eraseGrids(module);
  }

private:
  FrozenRewritePatternSet decompositions;
};
} // namespace

} // namespace hone
