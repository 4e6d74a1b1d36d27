// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the patterns of this conversion share: builders for the memory layout of program.h, and calls of imports.

#ifndef HONE_LIB_CONVERSION_HRTTOLLVM_ABI_H
#define HONE_LIB_CONVERSION_HRTTOLLVM_ABI_H

#include "ProgramTable.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace hone {

/// Builders for the memory layout of program.h.
class Abi {
public:
  Abi(mlir::ConversionPatternRewriter &b, mlir::Location loc)
      : b(b), loc(loc), pointer(mlir::LLVM::LLVMPointerType::get(b.getContext())) {}

  mlir::Value integer(int64_t value) {
    return mlir::LLVM::ConstantOp::create(b, loc, b.getI64Type(), b.getI64IntegerAttr(value));
  }
  mlir::Value at(mlir::Value base, int64_t bytes) {
    return mlir::LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), base,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<int32_t>(bytes)});
  }
  mlir::Value atDynamic(mlir::Value base, mlir::Value bytes) {
    return mlir::LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), base, llvm::ArrayRef<mlir::LLVM::GEPArg>{bytes});
  }
  mlir::Value load(mlir::Type type, mlir::Value base, int64_t bytes) {
    return mlir::LLVM::LoadOp::create(b, loc, type, at(base, bytes));
  }
  void store(mlir::Value value, mlir::Value base, int64_t bytes) {
    mlir::LLVM::StoreOp::create(b, loc, value, at(base, bytes));
  }
  /// Memory of this function's frame, given back by `release`.
  mlir::Value allocate(int64_t bytes) {
    return mlir::LLVM::AllocaOp::create(b, loc, pointer, b.getI8Type(), integer(bytes), /*alignment=*/16);
  }
  mlir::Value mark() { return mlir::LLVM::StackSaveOp::create(b, loc, pointer); }
  void release(mlir::Value mark) { mlir::LLVM::StackRestoreOp::create(b, loc, mark); }

  mlir::ConversionPatternRewriter &b;
  mlir::Location loc;
  mlir::Type pointer;
};

/// A pattern that calls services and kernels.
template <typename Op>
struct HrtPattern : mlir::ConvertOpToLLVMPattern<Op> {
  using mlir::ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  mlir::Value call(Abi &abi, mlir::Operation *at, llvm::StringRef name, mlir::Type result,
                   mlir::ValueRange operands) const {
    auto module = at->getParentOfType<mlir::ModuleOp>();
    mlir::LLVM::LLVMFuncOp callee = declareImport(abi.b, module, name, llvm::to_vector(operands.getTypes()), result);
    auto call = mlir::LLVM::CallOp::create(abi.b, abi.loc, callee, operands);
    return call.getNumResults() ? call.getResult() : mlir::Value();
  }

  /// A dense row-major descriptor over `data`.
  mlir::Value describe(Abi &abi, mlir::MemRefType type, mlir::Value data, llvm::ArrayRef<mlir::Value> sizes) const {
    auto descriptor = mlir::MemRefDescriptor::poison(abi.b, abi.loc, this->getTypeConverter()->convertType(type));
    descriptor.setAllocatedPtr(abi.b, abi.loc, data);
    descriptor.setAlignedPtr(abi.b, abi.loc, data);
    descriptor.setConstantOffset(abi.b, abi.loc, 0);
    mlir::Value stride = abi.integer(1);
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      descriptor.setSize(abi.b, abi.loc, dim, sizes[dim]);
      descriptor.setStride(abi.b, abi.loc, dim, stride);
      if (dim > 0)
        stride = mlir::LLVM::MulOp::create(abi.b, abi.loc, stride, sizes[dim]);
    }
    return descriptor;
  }
};

/// A pattern whose operation always becomes what services and kernels give.
template <typename Op>
struct ServicePattern : HrtPattern<Op> {
  using HrtPattern<Op>::HrtPattern;

  /// The operation's results.
  virtual llvm::SmallVector<mlir::Value> lower(Op op, typename Op::Adaptor adaptor, Abi &abi) const = 0;

  llvm::LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                      mlir::ConversionPatternRewriter &rewriter) const final {
    Abi abi(rewriter, op.getLoc());
    rewriter.replaceOp(op, lower(op, adaptor, abi));
    return llvm::success();
  }
};

} // namespace hone

#endif // HONE_LIB_CONVERSION_HRTTOLLVM_ABI_H
