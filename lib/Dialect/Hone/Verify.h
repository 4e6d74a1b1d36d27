//===- Verify.h - checks that the verifiers share -----------------------------------------------------*- C++ -*-===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages follow one form: expected <what> to be <x>, but got <y>.
//
//===------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_LIB_DIALECT_HONE_VERIFY_H
#define HONE_LIB_DIALECT_HONE_VERIFY_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <cmath>

namespace hone {

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tensor) {
  return llvm::cast<mlir::RankedTensorType>(tensor.getType()).getShape();
}

inline mlir::Type elementsOf(mlir::Value tensor) {
  return llvm::cast<mlir::RankedTensorType>(tensor.getType()).getElementType();
}

/// Whether two sizes may be equal at run time.
inline bool mayEqual(int64_t a, int64_t b) {
  return a == b || mlir::ShapedType::isDynamic(a) || mlir::ShapedType::isDynamic(b);
}

inline bool mayEqual(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  return a.size() == b.size() && llvm::all_of_zip(a, b, [](int64_t x, int64_t y) { return mayEqual(x, y); });
}

inline llvm::LogicalResult verifySize(mlir::Operation *op, const llvm::Twine &what, int64_t actual, int64_t expected) {
  if (mayEqual(actual, expected))
    return llvm::success();
  return op->emitOpError() << "expected " << what << " to be " << expected << ", but got " << actual;
}

/// A 1D operand that may be absent.
inline llvm::LogicalResult verifyCount(mlir::Operation *op, llvm::StringRef name, mlir::Value vector,
                                       int64_t expected) {
  return vector ? verifySize(op, "the size of " + name, shapeOf(vector)[0], expected) : llvm::success();
}

/// "3x?x5" for messages.
inline std::string toText(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      shape, [&](int64_t size) { mlir::ShapedType::isDynamic(size) ? stream << "?" : stream << size; },
      [&] { stream << "x"; });
  return "[" + text + "]";
}

inline llvm::LogicalResult verifyShape(mlir::Operation *op, llvm::StringRef name, llvm::ArrayRef<int64_t> actual,
                                       llvm::ArrayRef<int64_t> expected) {
  if (mayEqual(actual, expected))
    return llvm::success();
  return op->emitOpError() << "expected the shape of " << name << " to be " << toText(expected) << ", but got "
                           << toText(actual);
}

/// An operand that may be absent, whose elements are those of another.
inline llvm::LogicalResult verifyElements(mlir::Operation *op, llvm::StringRef name, mlir::Value tensor,
                                          mlir::Value like) {
  if (!tensor || elementsOf(tensor) == elementsOf(like))
    return llvm::success();
  return op->emitOpError() << "expected the elements of " << name << " to be " << elementsOf(like) << ", but got "
                           << elementsOf(tensor);
}

inline llvm::LogicalResult verifyRank(mlir::Operation *op, llvm::StringRef name, mlir::Value tensor, size_t least) {
  if (shapeOf(tensor).size() >= least)
    return llvm::success();
  return op->emitOpError() << "expected the dimensions of " << name << " to be at least " << least << ", but got "
                           << shapeOf(tensor).size();
}

/// A count of things that must not be zero where it is known.
inline llvm::LogicalResult verifyNotEmpty(mlir::Operation *op, llvm::StringRef what, int64_t count) {
  if (count != 0)
    return llvm::success();
  return op->emitOpError() << "expected the number of " << what << " to be at least 1, but got 0";
}

} // namespace hone

#endif // HONE_LIB_DIALECT_HONE_VERIFY_H
