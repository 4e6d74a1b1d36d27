// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions on tensors become entry points: inputs, outputs, parameters and state come from the call.

#include "KernelSelection.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace hone {
#define GEN_PASS_DEF_CONVERTHONETOHRT
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// Weights begin at multiples of this where that costs no padding (a cache line).
static constexpr int64_t kWeightAlignment = 64;

static int64_t getBytes(ParamOp param) { return getStorageBytes(param.getTensorType()).value_or(0); }

/// Gives every parameter that is read its place in the weights file, which has no holes: first those that fill whole cache
/// lines, then the others by falling element size, so that each is aligned for its elements.
static int64_t placeParameters(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::DenseSet<Operation *> read;
  module.walk([&](GetParamOp get) { read.insert(symbols.lookup(get.getName())); });
  SmallVector<ParamOp> params;
  for (auto param : llvm::make_early_inc_range(module.getOps<ParamOp>())) {
    if (read.contains(param))
      params.push_back(param);
    else
      param.erase();
  }
  llvm::DenseMap<Operation *, std::tuple<bool, int64_t, size_t>> ranks;
  for (auto [i, param] : llvm::enumerate(params)) {
    bool whole = getBytes(param) % kWeightAlignment == 0;
    ranks[param] = {!whole, whole ? 0 : -getElementBytes(param.getTensorType().getElementType()), i};
  }
  llvm::sort(params, [&](ParamOp a, ParamOp b) { return ranks[a] < ranks[b]; });
  int64_t offset = 0;
  Builder builder(module.getContext());
  for (ParamOp param : params) {
    param->setAttr(hrt::kOffsetAttr, builder.getI64IntegerAttr(offset));
    offset += getBytes(param);
  }
  return params.size();
}

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

/// A parameter's memory in its logical shape: one that is stored transposed is read through strides.
static Value viewParameter(OpBuilder &b, GetParamOp get, Value call, IntegerAttr offset) {
  auto type = cast<RankedTensorType>(get.getType());
  Value memory = hrt::WeightOp::create(b, get.getLoc(), getMemRef(getPlanes(type)[0].type), call, offset);
  auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding());
  if (!stored || !stored.getTransposed())
    return memory;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  std::swap(permutation[type.getRank() - 1], permutation[type.getRank() - 2]);
  auto map = AffineMap::getPermutationMap(permutation, b.getContext());
  return memref::TransposeOp::create(b, get.getLoc(), memory, AffineMapAttr::get(map));
}

/// Encodings that hold f32 in another order only are plain memory from here on; nothing makes others yet.
static LogicalResult replaceParameters(func::FuncOp function, Value call) {
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  WalkResult result = function.walk([&](GetParamOp get) -> WalkResult {
    OpBuilder b(get);
    auto type = cast<RankedTensorType>(get.getType());
    SmallVector<EncodingPlane> planes = getPlanes(type);
    if (planes.size() != 1 || planes[0].type.getElementType() != type.getElementType())
      return get.emitError() << "unsupported encoding " << type.getEncoding()
                             << " of a parameter for the CPU; supported: f32 in either order";
    auto offset = symbols.lookup(get.getName())->getAttrOfType<IntegerAttr>(hrt::kOffsetAttr);
    get.replaceAllUsesWith(readMemory(b, get.getLoc(), viewParameter(b, get, call, offset)));
    get.erase();
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  function.walk([](UnpackOp unpack) {
    unpack.replaceAllUsesWith(unpack.getTensor());
    unpack.erase();
  });
  return success();
}

static void replaceStateOps(func::FuncOp function, Value call) {
  function.walk([&](Operation *op) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    if (auto append = dyn_cast<KvAppendOp>(op)) {
      append.getAll().replaceAllUsesWith(
          hrt::StateAppendOp::create(b, loc, append.getAll().getType(), call, append.getSlot(), append.getFresh()));
      append.getNext().replaceAllUsesWith(append.getState());
    } else if (auto view = dyn_cast<KvViewOp>(op)) {
      view.getResult().replaceAllUsesWith(hrt::StateViewOp::create(b, loc, view.getType(), call, view.getSlot()));
    } else if (auto length = dyn_cast<KvLengthOp>(op)) {
      length.getResult().replaceAllUsesWith(hrt::StateLengthOp::create(b, loc, b.getIndexType(), call));
    } else if (auto padding = dyn_cast<KvPaddingOp>(op)) {
      padding.getResult().replaceAllUsesWith(
          hrt::StatePaddingOp::create(b, loc, b.getIndexType(), call, padding.getSequence()));
    } else {
      return;
    }
    op->erase();
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
  auto usable = [](Type type) { return isa<RankedTensorType, KvType>(type); };
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
    if (!usable(type))
      return function.emitError() << "expected inputs and outputs of the model to be tensors of known rank, but got "
                                  << type;
  return success();
}

static LogicalResult convertFunction(func::FuncOp function) {
  if (failed(checkInterface(function)))
    return failure();
  Block &block = function.getBody().front();
  unsigned count = block.getNumArguments();
  Value call = block.addArgument(hrt::CallType::get(function.getContext()), function.getLoc());
  replaceStateOps(function, call);
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
  if (failed(replaceParameters(function, call)))
    return failure();
  block.eraseArguments(0, count);
  function.setAllArgAttrs(ArrayRef<DictionaryAttr>());
  function.setAllResultAttrs(ArrayRef<DictionaryAttr>());
  function.setFunctionType(b.getFunctionType({call.getType()}, {}));
  function->setAttr(hrt::kEntryAttr, b.getUnitAttr());
  return success();
}

namespace {
struct ConvertHoneToHrt : impl::ConvertHoneToHrtBase<ConvertHoneToHrt> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    numParameters += placeParameters(module);
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || function->hasAttr(hrt::kEntryAttr))
        continue;
      if (failed(convertFunction(function)))
        return signalPassFailure();
      numKernels += selectKernels(function);
    }
  }
};
} // namespace

} // namespace hone
