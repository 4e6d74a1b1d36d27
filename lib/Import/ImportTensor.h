// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX types and tensors as MLIR types and attributes.

#ifndef HONE_LIB_IMPORT_IMPORTTENSOR_H
#define HONE_LIB_IMPORT_IMPORTTENSOR_H

#include "hone/Import/Limits.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "onnx/onnx_pb.h"

#include <memory>

namespace hone {

/// Type of a value: ranked or unranked tensor, sequence, optional; the unknown type where the file says nothing.
mlir::Type importType(const ::onnx::TypeProto &type, mlir::MLIRContext *context);

/// The type of a model's input: a size that some exporters write as the text of a number is that number. Names of other
/// sizes say nothing: optimum calls the length of its logits "1", and means the tokens that it traced with.
mlir::Type importInputType(const ::onnx::TypeProto &type, mlir::MLIRContext *context);

/// Names of the symbolic dimensions of a tensor type ("" where fixed or unnamed); null without a shape.
mlir::ArrayAttr importDimensionNames(const ::onnx::TypeProto &type, mlir::MLIRContext *context);

/// Ranked type of a tensor; null after a diagnostic.
mlir::RankedTensorType importTensorType(const ::onnx::TensorProto &tensor, mlir::Location loc);

/// Value of a tensor whose data is in the file: dense, or for more than kInlineBytes a resource that refers to the bytes
/// of `owner`, which it keeps alive. Null after a diagnostic.
mlir::ElementsAttr importTensor(const ::onnx::TensorProto &tensor,
                                const std::shared_ptr<const ::onnx::ModelProto> &owner, mlir::Location loc);

/// The elements of a tensor whose data is in the file, `elementBytes` each (a bool one), as its raw bytes or typed fields say
/// them. Not checked against its type.
std::string gatherBytes(const ::onnx::TensorProto &tensor, int64_t elementBytes);

/// Replaces the sparse initializers of `graph` and its subgraphs by dense ones. Failure with a diagnostic.
llvm::LogicalResult expandSparseInitializers(::onnx::GraphProto &graph, const Limits &limits, mlir::Location loc);

/// Bytes that the elements of `type` take in a file, as raw bytes or in typed fields; nothing where that passes 63 bits.
std::optional<int64_t> getFileBytes(mlir::RankedTensorType type, bool raw);

/// Value of `type` from the packed bytes of a file, which are as many as getFileBytes says.
mlir::ElementsAttr importPacked(mlir::RankedTensorType type, llvm::StringRef bytes, const ::onnx::TensorProto &tensor);

/// What type and value do not say of a tensor: name, documentation, metadata.
::onnx::TensorProto describeTensor(const ::onnx::TensorProto &tensor);

/// Larger tensors become parameters (initializers) or resources (attributes).
inline constexpr int64_t kInlineBytes = 512;

} // namespace hone

#endif // HONE_LIB_IMPORT_IMPORTTENSOR_H
