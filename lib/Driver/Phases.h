// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The phases of a compilation.

#ifndef HONE_LIB_DRIVER_PHASES_H
#define HONE_LIB_DRIVER_PHASES_H

#include "hone/Conversion/Raising.h"
#include "hone/Target/CPU.h"
#include "hone/Target/Optimise.h"

#include "mlir/Pass/PassManager.h"

namespace hone {

/// What the passes of phases depend on, beside the device.
struct PhaseSettings {
  Sanitizer sanitizer;
  RaisingOptions raising;
  LikelySizes sizes;
};

/// A step of compilation with a name; later phases read what earlier ones wrote.
struct Phase {
  llvm::StringRef name;
  llvm::StringRef summary;
  void (*build)(mlir::OpPassManager &pm, const PhaseSettings &settings);
};

/// All phases, in order. The first ("import") has no passes; those up to "lower" are the same for every device.
llvm::ArrayRef<Phase> getPhases(llvm::StringRef device = "cpu");

std::vector<llvm::StringRef> listPhaseNames();

/// How many phases are before the one of this name.
size_t getPhaseNumber(llvm::StringRef name);

} // namespace hone

#endif // HONE_LIB_DRIVER_PHASES_H
