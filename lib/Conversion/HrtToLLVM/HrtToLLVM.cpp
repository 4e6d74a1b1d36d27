// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hrt operations on memrefs as loads from hone_call and calls of the runtime's services and kernels; the offsets are those
// of the structs in include/hone/runtime/program.h.

#include "Abi.h"
#include "DevicePatterns.h"
#include "MemoryPatterns.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/runtime/program.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cstddef>

namespace hone {
#define GEN_PASS_DEF_CONVERTHRTTOLLVM
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

namespace {

constexpr int64_t kSizes = offsetof(hone_tensor, sizes), kStrides = offsetof(hone_tensor, strides);

struct InputPattern : ServicePattern<hrt::InputOp> {
  using ServicePattern::ServicePattern;
  SmallVector<Value> lower(hrt::InputOp op, OpAdaptor adaptor, Abi &abi) const override {
    auto type = cast<MemRefType>(op.getType());
    Value inputs = abi.load(abi.pointer, adaptor.getCall(), offsetof(hone_call, inputs));
    Value tensor = abi.at(inputs, op.getIndex() * sizeof(hone_tensor));
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      sizes.push_back(type.isDynamicDim(dim) ? abi.load(abi.b.getI64Type(), tensor, kSizes + 8 * dim)
                                             : abi.integer(type.getDimSize(dim)));
    Value data = hrt::isOnDevice(type) ? call(abi, op, "hone_rt_device_input", abi.pointer,
                                              {adaptor.getCall(), abi.integer(op.getIndex())})
                                       : abi.load(abi.pointer, tensor, offsetof(hone_tensor, data));
    return {describe(abi, type, data, sizes)};
  }
};

/// The sizes of a memref, of which `dynamic` has those that are not known, in an array.
Value writeSizes(Abi &abi, MemRefType type, ValueRange dynamic, SmallVectorImpl<Value> &sizes) {
  Value array = abi.allocate(8 * std::max<int64_t>(type.getRank(), 1));
  unsigned next = 0;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    sizes.push_back(type.isDynamicDim(dim) ? dynamic[next++] : abi.integer(type.getDimSize(dim)));
    abi.store(sizes.back(), array, 8 * dim);
  }
  return array;
}

struct OutputPattern : ServicePattern<hrt::OutputOp> {
  using ServicePattern::ServicePattern;
  SmallVector<Value> lower(hrt::OutputOp op, OpAdaptor adaptor, Abi &abi) const override {
    auto type = cast<MemRefType>(op.getType());
    Value mark = abi.mark();
    SmallVector<Value> sizes;
    Value array = writeSizes(abi, type, adaptor.getSizes(), sizes);
    Value data = call(abi, op, hrt::isOnDevice(type) ? "hone_rt_device_output" : "hone_rt_output", abi.pointer,
                      {adaptor.getCall(), abi.integer(op.getIndex()), abi.integer(type.getRank()), array});
    abi.release(mark);
    return {describe(abi, type, data, sizes)};
  }
};

struct WeightPattern : ServicePattern<hrt::WeightOp> {
  using ServicePattern::ServicePattern;
  SmallVector<Value> lower(hrt::WeightOp op, OpAdaptor adaptor, Abi &abi) const override {
    auto type = cast<MemRefType>(op.getType());
    Value weights = hrt::isOnDevice(type) ? call(abi, op, "hone_rt_device_weights", abi.pointer, {adaptor.getCall()})
                                          : abi.load(abi.pointer, adaptor.getCall(), offsetof(hone_call, weights));
    Value data = abi.atDynamic(weights, abi.integer(op.getOffset()));
    return {MemRefDescriptor::fromStaticShape(abi.b, abi.loc, *getTypeConverter(), type, data)};
  }
};

/// hone_dtype of an element type; signs are gone by now, and kernels that care take it as an attribute.
int32_t getDtype(Type type) {
  if (type.isF32())
    return HONE_F32;
  if (type.isF16())
    return HONE_F16;
  if (type.isBF16())
    return HONE_BF16;
  if (type.isF64())
    return HONE_F64;
  if (type.isInteger(1))
    return HONE_BOOL;
  if (type.isInteger(8))
    return HONE_I8;
  if (type.isInteger(16))
    return HONE_I16;
  return type.isInteger(32) ? HONE_I32 : HONE_I64;
}

/// Writes the hone_tensor of a memref at `base + bytes`.
void writeTensor(Abi &abi, MemRefType type, Value value, Value base, int64_t bytes) {
  MemRefDescriptor descriptor(value);
  OpBuilder &b = abi.b;
  Value data = descriptor.alignedPtr(b, abi.loc), offset = descriptor.offset(b, abi.loc);
  Value width = abi.integer(llvm::divideCeil(type.getElementType().getIntOrFloatBitWidth(), 8));
  abi.store(abi.atDynamic(data, LLVM::MulOp::create(b, abi.loc, offset, width)), base, bytes);
  auto word = [&](int32_t value) {
    return LLVM::ConstantOp::create(b, abi.loc, b.getI32Type(), b.getI32IntegerAttr(value));
  };
  abi.store(word(getDtype(type.getElementType())), base, bytes + offsetof(hone_tensor, dtype));
  abi.store(word(type.getRank()), base, bytes + offsetof(hone_tensor, rank));
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    abi.store(descriptor.size(b, abi.loc, dim), base, bytes + kSizes + 8 * dim);
    abi.store(descriptor.stride(b, abi.loc, dim), base, bytes + kStrides + 8 * dim);
  }
}

struct KernelPattern : ServicePattern<hrt::KernelOp> {
  using ServicePattern::ServicePattern;
  SmallVector<Value> lower(hrt::KernelOp op, OpAdaptor adaptor, Abi &abi) const override {
    Value mark = abi.mark();
    auto originals = llvm::to_vector(llvm::concat<Value>(op.getInputs(), op.getOutputs()));
    auto values = llvm::to_vector(llvm::concat<Value>(adaptor.getInputs(), adaptor.getOutputs()));
    Value operands = abi.allocate(sizeof(hone_tensor) * std::max<size_t>(values.size(), 1));
    for (size_t i = 0; i < values.size(); ++i)
      writeTensor(abi, cast<MemRefType>(originals[i].getType()), values[i], operands, i * sizeof(hone_tensor));
    Value ints = abi.allocate(8 * std::max<size_t>(op.getInts().size(), 1));
    for (auto [i, value] : llvm::enumerate(op.getInts()))
      abi.store(abi.integer(value), ints, 8 * i);
    Value floats = abi.allocate(8 * std::max<size_t>(op.getFloats().size(), 1));
    for (auto [i, value] : llvm::enumerate(op.getFloats()))
      abi.store(LLVM::ConstantOp::create(abi.b, abi.loc, abi.b.getF64Type(), abi.b.getF64FloatAttr(value)), floats,
                8 * i);
    call(abi, op, op.getName(), Type(), {adaptor.getCall(), operands, ints, floats});
    abi.release(mark);
    return {};
  }
};

/// A descriptor of the strided view that the runtime wrote at `base`.
template <typename Op>
struct StatePattern : ServicePattern<Op> {
  using ServicePattern<Op>::ServicePattern;

  Value readTensor(Abi &abi, MemRefType type, Value base) const {
    OpBuilder &b = abi.b;
    auto descriptor = MemRefDescriptor::poison(b, abi.loc, this->getTypeConverter()->convertType(type));
    Value data = abi.load(abi.pointer, base, offsetof(hone_tensor, data));
    descriptor.setAllocatedPtr(b, abi.loc, data);
    descriptor.setAlignedPtr(b, abi.loc, data);
    descriptor.setConstantOffset(b, abi.loc, 0);
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      descriptor.setSize(b, abi.loc, dim, abi.load(b.getI64Type(), base, kSizes + 8 * dim));
      descriptor.setStride(b, abi.loc, dim, abi.load(b.getI64Type(), base, kStrides + 8 * dim));
    }
    return descriptor;
  }
};

struct AppendPattern : StatePattern<hrt::StateAppendOp> {
  using StatePattern::StatePattern;
  SmallVector<Value> lower(hrt::StateAppendOp op, OpAdaptor adaptor, Abi &abi) const override {
    Value mark = abi.mark(), fresh = abi.allocate(sizeof(hone_tensor)), all = abi.allocate(sizeof(hone_tensor));
    writeTensor(abi, cast<MemRefType>(op.getFresh().getType()), adaptor.getFresh(), fresh, 0);
    call(abi, op, "hone_rt_state_append", Type(), {adaptor.getCall(), abi.integer(op.getSlot()), fresh, all});
    Value view = readTensor(abi, cast<MemRefType>(op.getAll().getType()), all);
    abi.release(mark);
    return {view};
  }
};

template <typename Op>
struct ViewPattern : StatePattern<Op> {
  using StatePattern<Op>::StatePattern;
  SmallVector<Value> lower(Op op, typename Op::Adaptor adaptor, Abi &abi) const override {
    constexpr bool isWritten = std::is_same_v<Op, hrt::StateUpdateOp>;
    Value mark = abi.mark(), all = abi.allocate(sizeof(hone_tensor));
    this->call(abi, op, isWritten ? "hone_rt_state_update" : "hone_rt_state_view", Type(),
               {adaptor.getCall(), abi.integer(op.getSlot()), all});
    Value view = this->readTensor(abi, cast<MemRefType>(op.getAll().getType()), all);
    abi.release(mark);
    return {view};
  }
};

struct ExtendPattern : StatePattern<hrt::StateExtendOp> {
  using StatePattern::StatePattern;
  SmallVector<Value> lower(hrt::StateExtendOp op, OpAdaptor adaptor, Abi &abi) const override {
    auto type = cast<MemRefType>(op.getType());
    Value mark = abi.mark(), fresh = abi.allocate(sizeof(hone_tensor));
    SmallVector<Value> sizes;
    Value array = writeSizes(abi, type, adaptor.getSizes(), sizes);
    call(abi, op, "hone_rt_state_extend", Type(),
         {adaptor.getCall(), abi.integer(op.getSlot()), abi.integer(type.getRank()), array, fresh});
    Value view = readTensor(abi, type, fresh);
    abi.release(mark);
    return {view};
  }
};

struct ObservePattern : ServicePattern<hrt::ObserveOp> {
  using ServicePattern::ServicePattern;
  SmallVector<Value> lower(hrt::ObserveOp op, OpAdaptor adaptor, Abi &abi) const override {
    Value mark = abi.mark(), values = abi.allocate(sizeof(hone_tensor));
    writeTensor(abi, cast<MemRefType>(op.getValues().getType()), adaptor.getValues(), values, 0);
    call(abi, op, "hone_rt_observe", Type(), {adaptor.getCall(), abi.integer(op.getSite()), values});
    abi.release(mark);
    return {};
  }
};

/// A question to the state: the service of that name, with the operands of the operation.
template <typename Op> struct QuestionPattern : ServicePattern<Op> {
  QuestionPattern(LLVMTypeConverter &converter, StringRef service) : ServicePattern<Op>(converter), service(service) {}

  SmallVector<Value> lower(Op op, typename Op::Adaptor adaptor, Abi &abi) const override {
    return {this->call(abi, op, service, abi.b.getI64Type(), adaptor.getOperands())};
  }

  StringRef service;
};

/// A failed run-time check ends the call with its message instead of aborting the process.
struct CheckPattern : HrtPattern<hrt::CheckOp> {
  using HrtPattern::HrtPattern;
  LogicalResult matchAndRewrite(hrt::CheckOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Block *before = rewriter.getInsertionBlock();
    Block *after = rewriter.splitBlock(before, std::next(rewriter.getInsertionPoint()));
    Block *fail = rewriter.createBlock(after);
    rewriter.setInsertionPointToStart(fail);
    Abi abi(rewriter, loc);
    Value message = getString(rewriter, loc, op->getParentOfType<ModuleOp>(), op.getMessage());
    int64_t count = adaptor.getValues().size();
    if (count == 0) {
      call(abi, op, "hone_rt_fail", Type(), {message});
    } else {
      Value values = abi.allocate(8 * count);
      for (auto [i, value] : llvm::enumerate(adaptor.getValues()))
        abi.store(value, values, 8 * i);
      call(abi, op, "hone_rt_fail_with", Type(), {message, abi.integer(count), values});
    }
    LLVM::UnreachableOp::create(rewriter, loc);
    rewriter.setInsertionPointToEnd(before);
    LLVM::CondBrOp::create(rewriter, loc, adaptor.getCondition(), after, fail);
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertHrtToLLVM : impl::ConvertHrtToLLVMBase<ConvertHrtToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<std::string> entries;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(hrt::kEntryAttr))
        entries.push_back(function.getName().str());
    // The bytes of parameters are in the weights file; code refers to them by offset.
    for (auto param : llvm::make_early_inc_range(module.getOps<ParamOp>()))
      param.erase();
    for (auto state : llvm::make_early_inc_range(module.getOps<StateOp>()))
      state.erase();
    LowerToLLVMOptions options(&getContext());
    options.useGenericFunctions = true;
    LLVMTypeConverter types(&getContext(), options);
    types.addConversion([&](hrt::CallType type) { return LLVM::LLVMPointerType::get(type.getContext()); });
    RewritePatternSet patterns(&getContext());
    // On the host, memory of the device is an address like any other.
    populateGpuMemorySpaceAttributeConversions(types, [](gpu::AddressSpace) { return 0; });
    populate(types, patterns);
    populateDevicePatterns(types, getKernelNumbers(module), patterns);
    LLVMConversionTarget target(getContext());
    target.addLegalOp<ModuleOp, gpu::GPUModuleOp>();
    target.markOpRecursivelyLegal<gpu::GPUModuleOp>();
    if (failed(applyFullConversion(module, target, std::move(patterns))) || failed(addProgramTable(module, entries)))
      return signalPassFailure();
    markIndependentAccesses(module);
  }

private:
  static llvm::StringMap<int64_t> getKernelNumbers(ModuleOp module) {
    llvm::StringMap<int64_t> numbers;
    for (const std::string &name : hrt::listGeneratedKernels(module))
      numbers.try_emplace(name, numbers.size());
    return numbers;
  }

  static void populate(LLVMTypeConverter &types, RewritePatternSet &patterns) {
    populateMemoryPatterns(types, patterns);
    patterns.add<InputPattern, OutputPattern, WeightPattern, KernelPattern, AppendPattern, ViewPattern<hrt::StateViewOp>,
                 ViewPattern<hrt::StateUpdateOp>, ExtendPattern,
                 ObservePattern, CheckPattern>(types);
    patterns.add<QuestionPattern<hrt::StateLengthOp>>(types, "hone_rt_state_length");
    patterns.add<QuestionPattern<hrt::StateLagOp>>(types, "hone_rt_state_lag");
    patterns.add<QuestionPattern<hrt::StatePaddingOp>>(types, "hone_rt_state_padding");
    patterns.add<QuestionPattern<hrt::LogitsToKeepOp>>(types, "hone_rt_logits_to_keep");
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    index::populateIndexToLLVMConversionPatterns(types, patterns);
    populateComplexToLLVMConversionPatterns(types, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
    populateFuncToLLVMConversionPatterns(types, patterns);
    // What LLVM has an intrinsic for is an instruction, or vectorizes; the rest are calls of the C library.
    populateMathToLLVMConversionPatterns(types, patterns, /*approximateLog1p=*/false, /*benefit=*/2);
    populateMathToLibmConversionPatterns(patterns);
    populateVectorToLLVMConversionPatterns(types, patterns);
    ub::populateUBToLLVMConversionPatterns(types, patterns);
  }
};

} // namespace

} // namespace hone
