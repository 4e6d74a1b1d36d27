// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults of ONNX files: those that libonnx does not look for or says too little about, and its own in our words.

#ifndef HONE_LIB_IMPORT_ONNXCHECKS_H
#define HONE_LIB_IMPORT_ONNXCHECKS_H

#include "mlir/IR/Location.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

namespace hone {

/// Every operator has a schema or a function, every file with external data exists, no output is there twice. `path` is that
/// of the model. Failure with a diagnostic for each operator that has neither.
llvm::LogicalResult checkModel(const ::onnx::ModelProto &model, llvm::StringRef path, mlir::Location file);

/// Reports what libonnx threw while it was `doing` something, in one line, at the node that it is about.
void reportLibraryError(llvm::StringRef message, llvm::StringRef doing, mlir::Location file);

} // namespace hone

#endif // HONE_LIB_IMPORT_ONNXCHECKS_H
