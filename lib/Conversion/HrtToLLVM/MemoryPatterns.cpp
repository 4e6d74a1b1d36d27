// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots of the arena, bodies of parallel loops as C functions, and booleans as bytes: LLVM vectorizes no
// loads and stores of one bit.

#include "MemoryPatterns.h"

#include "Abi.h"

#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace hone {

static constexpr llvm::StringLiteral kLoopAnnotation = "llvm.loop_annotation";

namespace {

struct ArenaPattern : ServicePattern<hrt::ArenaOp> {
  using ServicePattern::ServicePattern;
  SmallVector<Value> lower(hrt::ArenaOp op, OpAdaptor adaptor, Abi &abi) const override {
    int64_t count = op.getSlots().size();
    Value mark = abi.mark(), sizes = abi.allocate(8 * count), slots = abi.allocate(8 * count);
    for (auto [i, bytes] : llvm::enumerate(adaptor.getBytes()))
      abi.store(bytes, sizes, 8 * i);
    StringRef service = hrt::isOnDevice(op.getSlots().front()) ? "hone_rt_device_arena" : "hone_rt_arena";
    call(abi, op, service, Type(), {adaptor.getCall(), abi.integer(count), sizes, slots});
    SmallVector<Value> results;
    for (auto [i, bytes] : llvm::enumerate(adaptor.getBytes()))
      results.push_back(
          describe(abi, cast<MemRefType>(op.getSlots()[i].getType()), abi.load(abi.pointer, slots, 8 * i), bytes));
    abi.release(mark);
    return results;
  }
};

/// The captures are a struct in this function's frame; a thunk takes them out of it again.
struct ParallelPattern : ServicePattern<hrt::ParallelOp> {
  using ServicePattern::ServicePattern;
  SmallVector<Value> lower(hrt::ParallelOp op, OpAdaptor adaptor, Abi &abi) const override {
    Location loc = abi.loc;
    auto frame = LLVM::LLVMStructType::getLiteral(getContext(), llvm::to_vector(adaptor.getCaptures().getTypes()));
    LLVM::LLVMFuncOp thunk = createThunk(abi.b, op, frame);
    Value mark = abi.mark();
    Value captures = LLVM::AllocaOp::create(abi.b, loc, abi.pointer, frame, abi.integer(1));
    for (auto [i, value] : llvm::enumerate(adaptor.getCaptures()))
      LLVM::StoreOp::create(abi.b, loc, value, getField(abi, frame, captures, i));
    Value function = LLVM::AddressOfOp::create(abi.b, loc, thunk);
    call(abi, op, "hone_rt_parallel", Type(), {function, captures, adaptor.getCount(), adaptor.getCost()});
    abi.release(mark);
    return {};
  }

private:
  static Value getField(Abi &abi, Type frame, Value base, int32_t field) {
    return LLVM::GEPOp::create(abi.b, abi.loc, abi.pointer, frame, base, ArrayRef<LLVM::GEPArg>{0, field});
  }

  LLVM::LLVMFuncOp createThunk(ConversionPatternRewriter &b, hrt::ParallelOp op, LLVM::LLVMStructType frame) const {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(op->getParentOfType<FunctionOpInterface>());
    Abi abi(b, op.getLoc());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                            {abi.pointer, b.getI64Type(), b.getI64Type()});
    auto thunk =
        LLVM::LLVMFuncOp::create(b, op.getLoc(), (op.getBody() + ".thunk").str(), type, LLVM::Linkage::Internal);
    Block *block = thunk.addEntryBlock(b);
    b.setInsertionPointToStart(block);
    SmallVector<Value> captures;
    for (auto [i, field] : llvm::enumerate(frame.getBody()))
      captures.push_back(LLVM::LoadOp::create(b, abi.loc, field, getField(abi, frame, block->getArgument(0), i)));
    SmallVector<Value> operands(block->getArguments().drop_front());
    llvm::append_range(operands, getTypeConverter()->promoteOperands(abi.loc, op.getCaptures(), captures, b));
    LLVM::CallOp::create(b, abi.loc, TypeRange(), op.getBody(), operands);
    LLVM::ReturnOp::create(b, abi.loc, ValueRange());
    return thunk;
  }
};

struct LoadBitPattern : ConvertOpToLLVMPattern<memref::LoadOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(memref::LoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isInteger(1))
      return rewriter.notifyMatchFailure(op, "more than one bit");
    Value at =
        getStridedElementPtr(rewriter, op.getLoc(), op.getMemRefType(), adaptor.getMemref(), adaptor.getIndices());
    Value byte = LLVM::LoadOp::create(rewriter, op.getLoc(), rewriter.getI8Type(), at);
    Value zero = LLVM::ConstantOp::create(rewriter, op.getLoc(), rewriter.getI8IntegerAttr(0));
    rewriter.replaceOpWithNewOp<LLVM::ICmpOp>(op, LLVM::ICmpPredicate::ne, byte, zero); // a caller may write true as 2
    return success();
  }
};

struct StoreBitPattern : ConvertOpToLLVMPattern<memref::StoreOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(memref::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getValue().getType().isInteger(1))
      return rewriter.notifyMatchFailure(op, "more than one bit");
    Value at =
        getStridedElementPtr(rewriter, op.getLoc(), op.getMemRefType(), adaptor.getMemref(), adaptor.getIndices());
    Value byte = LLVM::ZExtOp::create(rewriter, op.getLoc(), rewriter.getI8Type(), adaptor.getValue());
    rewriter.replaceOpWithNewOp<LLVM::StoreOp>(op, byte, at);
    return success();
  }
};

/// The blocks of the loop with this header that `latch` ends.
llvm::SetVector<Block *> getLoopBlocks(Block *header, Block *latch) {
  llvm::SetVector<Block *> blocks;
  blocks.insert(header);
  SmallVector<Block *> open{latch};
  while (!open.empty())
    if (Block *block = open.pop_back_val(); blocks.insert(block))
      llvm::append_range(open, block->getPredecessors());
  return blocks;
}

} // namespace

void markIndependentAccesses(ModuleOp module) {
  module.walk([](LLVM::BrOp latch) {
    // Lowering structured loops carries the attribute along, but not to the place where the translation looks.
    auto annotation = dyn_cast_or_null<LLVM::LoopAnnotationAttr>(latch->removeDiscardableAttr(kLoopAnnotation));
    if (!annotation)
      return;
    latch.setLoopAnnotationAttr(annotation);
    SmallVector<Attribute> groups(annotation.getParallelAccesses().begin(), annotation.getParallelAccesses().end());
    auto attribute = ArrayAttr::get(latch.getContext(), groups);
    for (Block *block : getLoopBlocks(latch.getDest(), latch->getBlock()))
      for (Operation &op : *block)
        if (auto access = dyn_cast<LLVM::AccessGroupOpInterface>(op))
          access.setAccessGroups(attribute);
  });
}

void populateMemoryPatterns(LLVMTypeConverter &types, RewritePatternSet &patterns) {
  patterns.add<ArenaPattern, ParallelPattern>(types);
  patterns.add<LoadBitPattern, StoreBitPattern>(types, /*benefit=*/2);
}

} // namespace hone
