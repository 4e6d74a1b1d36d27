// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an ONNX file says beside the computation: names of values, documentation, metadata, declared types. Operations carry
// it in their locations, where no pass compares it, as the text of the protobuf message without what the IR says itself.

#ifndef HONE_DIALECT_ONNX_ONNXDESCRIPTION_H
#define HONE_DIALECT_ONNX_ONNXDESCRIPTION_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"

namespace google::protobuf {
class Message;
} // namespace google::protobuf

namespace hone::onnxir {

/// Module attribute: what the file says of the model, as the text of a ModelProto.
inline constexpr llvm::StringLiteral kModelAttr = "onnx.model";
/// Keys of a location's description: text of a NodeProto; of a TensorProto, at the initializer that it describes; of a
/// GraphProto, at the function or at the `onnx.Yield` of the subgraph.
inline constexpr llvm::StringLiteral kNodeText = "node";
inline constexpr llvm::StringLiteral kTensorText = "tensor";
inline constexpr llvm::StringLiteral kGraphText = "graph";

mlir::StringAttr printMessage(const ::google::protobuf::Message &message, mlir::MLIRContext *context);

/// Merges what `text` says into `message`; fails with a diagnostic where it is not the text of one.
llvm::LogicalResult parseMessage(llvm::StringRef text, ::google::protobuf::Message &message, mlir::Location loc);

/// A location named `name` in `file`, with the text of `message` under `key`.
mlir::Location describe(mlir::StringAttr name, mlir::Location file, llvm::StringRef key, mlir::StringAttr text);

/// The text under `key` that `loc` carries; null if it has none.
mlir::StringAttr getDescription(mlir::Location loc, llvm::StringRef key);

/// `loc` with `text` under `key`, in place of what was there.
mlir::Location redescribe(mlir::Location loc, llvm::StringRef key, mlir::StringAttr text);

/// `loc` for what is put beside an operation there: named after it, and without its description.
mlir::Location nameBeside(mlir::Location loc, llvm::StringRef ending);

/// Leaves locations the names and files only: later phases neither need nor keep the rest.
void dropDescriptions(mlir::ModuleOp module);

} // namespace hone::onnxir

#endif // HONE_DIALECT_ONNX_ONNXDESCRIPTION_H
