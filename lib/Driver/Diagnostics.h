// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How `hone` says what it has to say.

#ifndef HONE_LIB_DRIVER_DIAGNOSTICS_H
#define HONE_LIB_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

namespace hone {

/// Prints a line on standard error, "hone: error: file: node: message", and the diagnostic's notes below it.
void printDiagnostic(mlir::Diagnostic &diagnostic);

} // namespace hone

#endif // HONE_LIB_DRIVER_DIAGNOSTICS_H
