// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file that `hone calibrate` writes when all is measured.

#ifndef HONE_LIB_DRIVER_MEASUREDOUTPUT_H
#define HONE_LIB_DRIVER_MEASUREDOUTPUT_H

#include "hone/Artefact/Artefact.h"

namespace hone {

/// A folder beside `output` that is gone with the result. Fails where `output` cannot be written: now, and not when all is measured.
llvm::FailureOr<io::TemporaryPath> makeFolderBeside(const std::string &output, mlir::Location loc);

} // namespace hone

#endif // HONE_LIB_DRIVER_MEASUREDOUTPUT_H
