// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An ONNX file in memory: read, checked by libonnx, functions inlined, shapes inferred.

#ifndef HONE_LIB_IMPORT_ONNXFILE_H
#define HONE_LIB_IMPORT_ONNXFILE_H

#include "hone/Import/Limits.h"

#include "mlir/IR/Location.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"

#include <memory>

namespace hone {

struct OnnxFile {
  std::shared_ptr<::onnx::ModelProto> model;
  /// Opset imports of the file; those of the model have com.microsoft in addition.
  ::google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> opsets;
  /// What the file says of each graph without its nodes and tensors, before inference adds to it.
  llvm::DenseMap<const ::onnx::GraphProto *, ::onnx::GraphProto> descriptions;
};

/// Reads and prepares `path`, in opset `leastOpset` at least of the default domain; no model after a diagnostic at `loc`.
OnnxFile readOnnxFile(llvm::StringRef path, const Limits &limits, int64_t leastOpset, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_IMPORT_ONNXFILE_H
