// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file beside a model that holds the bytes of its large or external tensors.

#ifndef HONE_LIB_EXPORT_DATAFILE_H
#define HONE_LIB_EXPORT_DATAFILE_H

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/io/file.h"

#include "onnx/onnx_pb.h"

#include <optional>

namespace hone {

class DataFile {
public:
  /// `name` is what tensors say of it: a path relative to the model.
  explicit DataFile(llvm::StringRef name) : name(name) {}

  /// Gives `param` a place, and says so in `tensor`.
  llvm::LogicalResult add(ParamOp param, ::onnx::TensorProto &tensor);
  /// Writes what was added, up to the commit that makes the file appear; no writer if that is nothing. `onWeight` is that of exportOnnx.
  llvm::FailureOr<std::optional<io::FileWriter>>
  write(llvm::StringRef path, mlir::Location loc,
        llvm::function_ref<void(int64_t done, int64_t total, llvm::StringRef name)> onWeight) const;

private:
  std::string name;
  llvm::SmallVector<ParamOp> params;
  int64_t bytes = 0;
};

} // namespace hone

#endif // HONE_LIB_EXPORT_DATAFILE_H
