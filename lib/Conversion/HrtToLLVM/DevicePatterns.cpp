// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the device, copies and launches as calls of services.

#include "DevicePatterns.h"

#include "Abi.h"

#include "hone/Dialect/Hrt/HrtDialect.h"

using namespace mlir;

namespace hone {

/// What a launch takes for each argument: room for the largest, a complex number of doubles.
static constexpr int64_t kArgumentBytes = 16;

/// Where the first element of a memref is; its elements take `width` bytes each.
static Value getData(Abi &abi, Value value, Value width) {
  MemRefDescriptor descriptor(value);
  Value bytes = LLVM::MulOp::create(abi.b, abi.loc, descriptor.offset(abi.b, abi.loc), width);
  return abi.atDynamic(descriptor.alignedPtr(abi.b, abi.loc), bytes);
}

namespace {

struct AllocPattern : ServicePattern<hrt::AllocOp> {
  using ServicePattern::ServicePattern;
  SmallVector<Value> lower(hrt::AllocOp op, OpAdaptor adaptor, Abi &abi) const override {
    auto type = cast<MemRefType>(op.getType());
    SmallVector<Value> sizes;
    Value bytes = getSizeInBytes(abi.loc, type.getElementType(), abi.b);
    unsigned next = 0;
    for (int64_t size : type.getShape()) {
      sizes.push_back(ShapedType::isDynamic(size) ? adaptor.getSizes()[next++] : abi.integer(size));
      bytes = LLVM::MulOp::create(abi.b, abi.loc, bytes, sizes.back());
    }
    Value data = call(abi, op, "hone_rt_device_alloc", abi.pointer, {adaptor.getCall(), bytes});
    return {describe(abi, type, data, sizes)};
  }
};

struct FreePattern : ServicePattern<hrt::FreeOp> {
  using ServicePattern::ServicePattern;
  SmallVector<Value> lower(hrt::FreeOp op, OpAdaptor adaptor, Abi &abi) const override {
    Value data = MemRefDescriptor(adaptor.getMemory()).allocatedPtr(abi.b, abi.loc);
    call(abi, op, "hone_rt_device_free", Type(), {adaptor.getCall(), data});
    return {};
  }
};

/// All elements of `source`, in one piece, to `target`.
template <typename Op> struct TransferPattern : ServicePattern<Op> {
  TransferPattern(LLVMTypeConverter &converter, StringRef service) : ServicePattern<Op>(converter), service(service) {}

  SmallVector<Value> lower(Op op, typename Op::Adaptor adaptor, Abi &abi) const override {
    auto type = cast<MemRefType>(op.getSource().getType());
    MemRefDescriptor source(adaptor.getSource());
    Value width = this->getSizeInBytes(abi.loc, type.getElementType(), abi.b), bytes = width;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      bytes = LLVM::MulOp::create(abi.b, abi.loc, bytes, source.size(abi.b, abi.loc, dim));
    Value from = getData(abi, adaptor.getSource(), width);
    Value to = getData(abi, adaptor.getTarget(), width);
    this->call(abi, op, service, Type(), {adaptor.getCall(), to, from, bytes});
    return {};
  }

  StringRef service;
};

/// Kernels take descriptors of memrefs in their parts, as functions do.
struct LaunchPattern : HrtPattern<hrt::LaunchOp> {
  LaunchPattern(LLVMTypeConverter &converter, llvm::StringMap<int64_t> kernels)
      : HrtPattern(converter), kernels(std::move(kernels)) {}

  LogicalResult matchAndRewrite(hrt::LaunchOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto number = kernels.find(op.getKernel().getLeafReference().getValue());
    if (number == kernels.end())
      return rewriter.notifyMatchFailure(op, "the module of the device has no such kernel");
    Location loc = op.getLoc();
    Abi abi(rewriter, loc);
    Value mark = abi.mark();
    SmallVector<Value> values =
        getTypeConverter()->promoteOperands(loc, op.getArguments(), adaptor.getArguments(), rewriter);
    int64_t count = std::max<int64_t>(values.size(), 1);
    Value room = abi.allocate(kArgumentBytes * count), arguments = abi.allocate(8 * count), shape = abi.allocate(8 * 7);
    for (auto [i, value] : llvm::enumerate(values)) {
      abi.store(value, room, kArgumentBytes * i);
      abi.store(abi.at(room, kArgumentBytes * i), arguments, 8 * i);
    }
    Value one = abi.integer(1), none = abi.integer(0), threads = abi.integer(op.getThreads());
    for (auto [i, value] : llvm::enumerate(SmallVector<Value>{adaptor.getBlocks(), one, one, threads, one, one, none}))
      abi.store(value, shape, 8 * i);
    call(abi, op, "hone_rt_launch", Type(), {adaptor.getCall(), abi.integer(number->second), shape, arguments});
    abi.release(mark);
    rewriter.eraseOp(op);
    return success();
  }

  llvm::StringMap<int64_t> kernels;
};

} // namespace

void populateDevicePatterns(LLVMTypeConverter &types, llvm::StringMap<int64_t> kernels, RewritePatternSet &patterns) {
  patterns.add<AllocPattern, FreePattern>(types);
  patterns.add<TransferPattern<hrt::FetchOp>>(types, "hone_rt_fetch");
  patterns.add<TransferPattern<hrt::UploadOp>>(types, "hone_rt_upload");
  patterns.add<TransferPattern<hrt::CopyOp>>(types, "hone_rt_device_copy");
  patterns.add<LaunchPattern>(types, std::move(kernels));
}

} // namespace hone
