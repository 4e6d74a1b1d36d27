// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of onnx operations as plain values.

#ifndef HONE_LIB_ANALYSIS_ONNXATTRIBUTES_H
#define HONE_LIB_ANALYSIS_ONNXATTRIBUTES_H

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

namespace hone::analysis {

inline int64_t getInteger(mlir::Operation *op, llvm::StringRef name, int64_t otherwise) {
  auto attr = op->getAttrOfType<mlir::IntegerAttr>(name);
  return attr ? attr.getInt() : otherwise;
}

inline std::optional<llvm::SmallVector<int64_t>> getIntegers(mlir::Operation *op, llvm::StringRef name) {
  auto attr = op->getAttrOfType<mlir::DenseI64ArrayAttr>(name);
  if (!attr)
    return std::nullopt;
  return llvm::SmallVector<int64_t>(attr.asArrayRef());
}

/// `axis` counted from the front, or nothing if it is none of the `rank` dimensions.
inline std::optional<int64_t> normalizeAxis(int64_t axis, int64_t rank) {
  if (axis < 0)
    axis += rank;
  return axis >= 0 && axis < rank ? std::optional<int64_t>(axis) : std::nullopt;
}

/// Operand `index` if the operation has it and it is given, else null.
inline mlir::Value getOperand(mlir::Operation *op, unsigned index) {
  if (index >= op->getNumOperands() || onnxir::isAbsent(op->getOperand(index)))
    return {};
  return op->getOperand(index);
}

} // namespace hone::analysis

#endif // HONE_LIB_ANALYSIS_ONNXATTRIBUTES_H
