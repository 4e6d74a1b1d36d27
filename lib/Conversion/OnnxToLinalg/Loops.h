// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that read several tensors by affine maps and fold over some of their dimensions: products, windows,
// interpolation; and the products of matrices, which become operations of the hone dialect where that has one.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_LOOPS_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_LOOPS_H

#include "Lowering.h"

namespace hone::lowering {

/// A tensor and how the loops index it.
struct Operand {
  Value tensor;
  mlir::AffineMap map;
};

using AccumulateBody = llvm::function_ref<Value(Builder &, ValueRange elements, Value accumulator)>;

/// `result[i] = fold over r of body(elements at (i, r), accumulator)` from `initial`: the first loops are the dimensions
/// `sizes` of the result, the loops after them are `reduced`.
Value accumulate(Node &node, ArrayRef<Size> sizes, ArrayRef<Size> reduced, ArrayRef<Operand> operands, Value initial,
                 AccumulateBody body);

/// `result[i] = operand(i)`, of the sizes of the loops.
Value copyElements(Node &node, const Operand &operand, ArrayRef<Size> sizes);

/// Sum over the `reduced` loops of the product of one element of each of two tensors, accumulated in getAccumulator of
/// their element type and rounded once.
Value sumProducts(Node &node, ArrayRef<Size> sizes, ArrayRef<Size> reduced, const Operand &lhs, const Operand &rhs);

/// Whether operations of the hone dialect take the elements: f32, f16 or bf16.
bool isHoneFloat(Type element);
/// The type of a tensor of such sizes.
RankedTensorType getTensorType(ArrayRef<Size> sizes, Type element);
/// f32 for narrower floats, else the type itself.
Type getAccumulator(Type element);
/// A float of one type as one of another.
Value convertFloat(Builder &b, Value value, Type element);
/// The same for each element of a tensor.
Value convertFloats(Node &node, Value tensor, Type element);
/// Sum or product of floats or of integers.
Value addScalars(Builder &b, Value lhs, Value rhs);
Value multiplyScalars(Builder &b, Value lhs, Value rhs);

/// The tensor with `low` and `high` elements of `scalar` around each dimension.
Value surround(Node &node, Value tensor, ArrayRef<Size> low, ArrayRef<Size> high, Value scalar);
/// The tensor repeated along dimensions that it lacks or in which it has one element.
Value repeat(Node &node, Value tensor, ArrayRef<Size> sizes);
/// The tensors one after another along `axis`; their other sizes are equal.
Value join(Node &node, ValueRange tensors, int64_t axis);
/// All of `tensor` except that dimension `axis` is [offset, offset + size).
Value sliceAxis(Node &node, Value tensor, int64_t axis, Size offset, Size size);

/// Failure if the sizes are known to differ; a check at run time if they may.
LogicalResult requireEqual(Node &node, Size lhs, Size rhs, const llvm::Twine &what);
/// The same of all sizes of `tensor`, which has to have as many: `what` is its name, `shape` says the sizes in words.
LogicalResult requireShape(Node &node, Value tensor, ArrayRef<Size> sizes, StringRef what, StringRef shape);
/// The same of a size that has to be a multiple of `factor`.
LogicalResult requireMultiple(Node &node, Size size, int64_t factor, const llvm::Twine &what);
/// Failure if one of the sizes is known to be 0; a check at run time if it may.
LogicalResult requireElements(Node &node, ArrayRef<Size> sizes, const llvm::Twine &what);

/// Product of batches of matrices of ONNX's MatMul for operands of at least two dimensions.
FailureOr<Value> multiplyMatrices(Node &node, Value lhs, Value rhs);
/// The same of any ranks: a vector on the left is a row, one on the right is a column, and that dimension is dropped again.
FailureOr<Value> multiplyAnyRank(Node &node, Value lhs, Value rhs);
/// `x[..., K]` times `weight[N, K]`, plus `bias[N]` if that is given.
FailureOr<Value> applyLinear(Node &node, Value x, Value weight, Value bias);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_LOOPS_H
