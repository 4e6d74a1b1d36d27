//===- LinalgAdjoints.h - the adjoint of a loop nest ---------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_LINALGADJOINTS_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_LINALGADJOINTS_H

#include "Models.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {

/// How a result comes from the terms of the body.
enum class Combined { Sum, Maximum, Product, Last };

/// A result that has a gradient.
struct YieldedResult {
  mlir::OpResult result;
  mlir::Value term; // of the body: what is yielded, or what a reduction combines
  Combined combined = Combined::Sum;
  mlir::Value gradient;  // of the result; of a maximum, shared by the terms that equal it
  mlir::Value ofZero;    // of a product: the gradient of a term that is zero
  mlir::Value last;      // of what keeps the last term: the step that it is of, or -1 where the init stays
  mlir::Value condition; // of the body: whether a term is added, or kept; null where all are
};

/// An operand of a loop nest over the loops of the operation.
struct Access {
  mlir::Value tensor;
  mlir::AffineMap map;
};

/// How an operand is read that is at a sum of loops, as that of a convolution is.
struct WindowReads {
  llvm::SmallVector<std::optional<unsigned>> along; // the loop that each dimension is read along, if any
  llvm::SmallVector<bool> isTap;                    // of each loop: it says which element of a window is read
};

/// The reads of an operand of map `map`; nothing where they are no windows.
std::optional<WindowReads> findWindows(mlir::linalg::GenericOp op, mlir::AffineMap map);

/// Builds the gradients of the operands of a loop nest, and of what its body reads.
class GenericAdjoint {
public:
  GenericAdjoint(LocBuilder &builder, mlir::linalg::GenericOp op, Adjoints &adjoints)
      : builder(builder), op(op), adjoints(adjoints) {}
  llvm::LogicalResult build();

private:
  llvm::LogicalResult refuse(const llvm::Twine &reason) {
    return op.emitError() << "cannot differentiate " << op->getName() << ": " << reason;
  }
  llvm::LogicalResult findResults();
  mlir::FailureOr<YieldedResult> findTerm(mlir::OpResult result, mlir::Value yielded, mlir::BlockArgument soFar);
  void shareMaximum(YieldedResult &found);
  void findZeros(YieldedResult &found);
  void findLast(YieldedResult &found);
  mlir::Value ofInit(const YieldedResult &found);
  unsigned getReductionLoop();
  void findActive(llvm::ArrayRef<mlir::Value> from);
  void copyBody(LocBuilder &b, mlir::ValueRange elements, mlir::IRMapping &copies);
  mlir::FailureOr<mlir::Value> buildGradient(LocBuilder &b, mlir::ValueRange elements, mlir::Value of,
                                             mlir::IRMapping &copies);
  /// The same as the body of a loop nest; `status` says whether there is a gradient.
  auto getBody(mlir::Value of, llvm::LogicalResult &status) {
    return [this, of, &status](LocBuilder &b, mlir::ValueRange elements) {
      mlir::IRMapping copies;
      mlir::FailureOr<mlir::Value> gradient = buildGradient(b, elements, of, copies);
      status = gradient;
      return succeeded(gradient) ? *gradient : mlir::Value();
    };
  }
  mlir::Value mapResult(const YieldedResult &found, mlir::ValueRange operands,
                        llvm::function_ref<mlir::Value(LocBuilder &, mlir::ValueRange)> body);
  llvm::LogicalResult addOperand(mlir::OpOperand &operand);
  llvm::LogicalResult addElementwise(llvm::ArrayRef<mlir::OpOperand *> operands);
  llvm::LogicalResult addWindows(mlir::OpOperand &operand, const WindowReads &reads);
  mlir::FailureOr<Access> sliceAt(const Access &access, const WindowReads &reads,
                                  llvm::ArrayRef<mlir::OpFoldResult> taps);
  llvm::LogicalResult addNumber(mlir::Value number);
  llvm::LogicalResult addRead(mlir::tensor::ExtractOp read);
  mlir::Value buildNest(mlir::AffineMap map, mlir::Type element, llvm::ArrayRef<mlir::OpFoldResult> sizes,
                        llvm::function_ref<mlir::Value(LocBuilder &, mlir::ValueRange)> body, mlir::Value into = {},
                        llvm::function_ref<mlir::Value(LocBuilder &, mlir::Value, mlir::Value)> combine = addFloats);
  static mlir::Value addFloats(LocBuilder &b, mlir::Value sum, mlir::Value next);

  LocBuilder &builder;
  mlir::linalg::GenericOp op;
  Adjoints &adjoints;
  llvm::SmallVector<YieldedResult> results;
  llvm::SmallVector<mlir::Operation *> ops; // of the body, without the combiners of reductions
  llvm::SmallVector<Access> accesses;  // of the operands, then for each result itself, its gradient, and ofZero or last
  llvm::DenseSet<mlir::Value> active;  // of the body: what depends on the value whose gradient is built
  llvm::SmallVector<mlir::Value> taps; // of each loop that stands still while windows are read: where it is
  llvm::SmallVector<unsigned> numbers; // of the loops that are left then
  llvm::SmallVector<mlir::OpFoldResult> loopSizes; // of all loops then
};

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_LINALGADJOINTS_H
