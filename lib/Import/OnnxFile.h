// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An ONNX file in memory: read, checked by libonnx, functions inlined, shapes inferred.

#ifndef HONE_LIB_IMPORT_ONNXFILE_H
#define HONE_LIB_IMPORT_ONNXFILE_H

#include "mlir/IR/Location.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringRef.h"

#include <memory>

namespace hone {

/// Reads and prepares `path`; null after a diagnostic at `loc`.
std::shared_ptr<::onnx::ModelProto> readOnnxFile(llvm::StringRef path, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_IMPORT_ONNXFILE_H
