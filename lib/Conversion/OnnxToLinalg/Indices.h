// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers that operators read from tensors: shapes, axes, and indices of elements, which may be negative and must be
// checked before a loop reads by them.

#ifndef HONE_LIB_CONVERSION_ONNXTOLINALG_INDICES_H
#define HONE_LIB_CONVERSION_ONNXTOLINALG_INDICES_H

#include "Lowering.h"

#include "hone/runtime/program.h"

namespace hone::lowering {

/// A size that ends where nobody meant to count: what exporters write for "to the end" is at least this far.
inline constexpr int64_t kFarAway = std::numeric_limits<int32_t>::max();
/// What a size is at most, as no input has more elements.
inline constexpr int64_t kMostElements = HONE_MAX_ELEMENTS;

/// The only element of an input of rank 0, or of rank 1 and length 1.
FailureOr<Value> getScalar(Node &node, unsigned index);
/// The same as a size or an index, which may be negative.
FailureOr<Size> getScalarIndex(Node &node, unsigned index);
/// The elements of a vector input as sizes; a negative one is an error, at run time if it is known only then.
FailureOr<SmallVector<Size>> getSizes(Node &node, unsigned index);
/// `size`, which must not be negative.
FailureOr<Size> requireSize(Node &node, Size size, const llvm::Twine &what);
/// `value`, which must be in [low, high]: sums of a few such values do not wrap.
FailureOr<Size> requireRange(Node &node, Size value, int64_t low, int64_t high, const llvm::Twine &what);

/// `axis` counted from the front; failure, or a run-time check, if it is outside [-rank, rank).
FailureOr<Size> normalizeAxis(Node &node, Size axis, int64_t rank);
/// `index` into `size` elements counted from the front; failure, or a run-time check, if it is outside [-size, size).
FailureOr<Size> normalizeIndex(Node &node, Size index, Size size);
/// The same as an element of a loop: negative indices count from the end, and nothing is checked.
Value wrapIndex(Builder &b, Value index, Value size);
/// Checks at run time that every element of an integer tensor is in [least, end), else the call ends with `message`.
void checkElements(Node &node, Value tensor, Size least, Size end, const llvm::Twine &message);
/// Checks at run time that every element of an integer tensor is in [-size, size).
void checkIndices(Node &node, Value indices, Size size);
/// How an element that has been checked becomes an index.
using IndexWrap = Value (*)(Builder &b, Value index, Value size);
/// Checks the elements of an input, unless its operator says already that they are in [0, size): what a router chose, for instance, or
/// elements of a constant. Those need no wrapping either.
IndexWrap checkIndices(Node &node, unsigned input, Size size);

/// Length of the tuples of indices in the last dimension of an input, which must be fixed and at most `dims`.
FailureOr<int64_t> getTupleLength(Node &node, unsigned input, int64_t dims);
/// The tuples taken apart: one tensor of indices for each of `limits`, checked against it.
FailureOr<SmallVector<Value>> splitIndexTuples(Node &node, unsigned input, ArrayRef<Size> limits);

/// Product of sizes.
Size getProduct(Node &node, ArrayRef<Size> sizes);
/// `tensor` repeated to `sizes` (ONNX "Unidirectional Broadcasting").
Value broadcast(Node &node, Value tensor, ArrayRef<Size> sizes);
/// `lhs` compared with `rhs`, folded where sizes decide it.
Value compare(Node &node, mlir::arith::CmpIPredicate predicate, Size lhs, Size rhs);

using NestBody = llvm::function_ref<SmallVector<Value>(Builder &, ValueRange indices, ValueRange carried)>;
/// Runs `body` for every index below `sizes`, the last fastest, one after another; what it returns is carried to the next
/// and comes back at the end.
SmallVector<Value> loopNest(Node &node, ArrayRef<Size> sizes, ValueRange initial, NestBody body);

} // namespace hone::lowering

#endif // HONE_LIB_CONVERSION_ONNXTOLINALG_INDICES_H
