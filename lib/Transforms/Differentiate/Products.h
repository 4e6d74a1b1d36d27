//===- Products.h - products and sums that adjoints are made of ---------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_TRANSFORMS_DIFFERENTIATE_PRODUCTS_H
#define HONE_LIB_TRANSFORMS_DIFFERENTIATE_PRODUCTS_H

#include "hone/Transforms/Adjoints.h"
#include "hone/Transforms/Loops.h"

namespace hone {

/// The product of two batches of matrices, as `hone.matmul`.
mlir::Value multiply(LocBuilder &b, mlir::Value left, mlir::Value right);

/// `tensor` `[…, N]` as a matrix `[rows, N]`.
mlir::Value asMatrix(LocBuilder &b, mlir::Value tensor);

/// All elements of `tensor` in one dimension.
mlir::Value asVector(LocBuilder &b, mlir::Value tensor);

/// Adds left · right to the gradient of `value`, in its place where there is one.
void addProduct(LocBuilder &b, Adjoints &adjoints, mlir::Value value, mlir::Value left, mlir::Value right);

/// The sums of `tensor` over all of its dimensions but `kept`, which are those of the result, of size `sizes`, in their order.
mlir::Value sumTo(LocBuilder &b, mlir::Value tensor, llvm::ArrayRef<mlir::OpFoldResult> sizes,
                  llvm::ArrayRef<int64_t> kept);

/// The sum of all rows `[…, N]`: `[N]`.
mlir::Value sumRows(LocBuilder &b, mlir::Value tensor);

/// A constant of f64.
mlir::Value constantF64(LocBuilder &b, double value);

/// The sum of what `step` gives for the elements of f32 tensors of one shape, a tensor of one f64: rows are summed in f32, and their sums
/// in f64.
mlir::Value sumAll(LocBuilder &b, mlir::ValueRange tensors, Step step);

} // namespace hone

#endif // HONE_LIB_TRANSFORMS_DIFFERENTIATE_PRODUCTS_H
