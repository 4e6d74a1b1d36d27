// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MLIR types and attributes as ONNX types and tensors.

#ifndef HONE_LIB_EXPORT_EXPORTTENSOR_H
#define HONE_LIB_EXPORT_EXPORTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "onnx/onnx_pb.h"

namespace hone {

/// ONNX's number for an element type, or nothing.
std::optional<int32_t> exportElementType(mlir::Type element);

/// `dims` are names of symbolic dimensions, or null. Failure with a diagnostic for a type that ONNX cannot say.
llvm::LogicalResult exportType(mlir::Type type, mlir::ArrayAttr dims, ::onnx::TypeProto &proto, mlir::Location loc);

/// Whether what a file says of a type may stand beside what is known of it: neither contradicts the other.
bool agrees(const ::onnx::TypeProto &said, const ::onnx::TypeProto &known);

/// Bytes of the elements of `type` in a file, where elements below 8 bits are packed; 0 if the elements have no size.
int64_t getExportedBytes(mlir::RankedTensorType type);

/// Sets data type and dims of a tensor that is stored as `type`.
llvm::LogicalResult exportTensorType(mlir::RankedTensorType type, ::onnx::TensorProto &proto, mlir::Location loc);

/// Sets type and data of a tensor whose bytes are in memory.
llvm::LogicalResult exportTensor(mlir::ElementsAttr value, ::onnx::TensorProto &proto, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_EXPORT_EXPORTTENSOR_H
