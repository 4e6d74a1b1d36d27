// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the libraries free of MLIR say, as diagnostics.

#ifndef HONE_DIALECT_HONE_REPORT_H
#define HONE_DIALECT_HONE_REPORT_H

#include "hone/io/status.h"

#include "mlir/IR/Diagnostics.h"

namespace hone {

/// Fails after an error at `loc` with the message of `status`, unless that is ok.
inline llvm::LogicalResult report(mlir::Location loc, const absl::Status &status) {
  if (status.ok())
    return llvm::success();
  return mlir::emitError(loc) << std::string(status.message());
}

} // namespace hone

#endif // HONE_DIALECT_HONE_REPORT_H
