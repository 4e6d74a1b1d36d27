// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file of --remarks: an output like all others, which MLIR's own streamer would write over in place.

#ifndef HONE_LIB_DRIVER_REMARKSFILE_H
#define HONE_LIB_DRIVER_REMARKSFILE_H

#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <string>

namespace hone {

/// The remarks of all passes of a context, as YAML. Without commit() nothing is written.
class RemarksFile {
public:
  /// From here on `context` hands its remarks to the file `path`, and passes run one after the other; nothing of that for an empty
  /// path. Fails after an error.
  static llvm::FailureOr<std::unique_ptr<RemarksFile>> open(const std::string &path, mlir::MLIRContext &context,
                                                            mlir::Location loc);
  ~RemarksFile();

  /// Puts the file into place; later remarks are dropped. Fails after an error.
  llvm::LogicalResult commit(mlir::Location loc);

private:
  struct State;

  std::shared_ptr<State> state; // shared with the context's engine, which lives on; or null
};

} // namespace hone

#endif // HONE_LIB_DRIVER_REMARKSFILE_H
