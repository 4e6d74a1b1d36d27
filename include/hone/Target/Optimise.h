// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's own optimisation and the writing of what it makes, which all targets share.

#ifndef HONE_TARGET_OPTIMISE_H
#define HONE_TARGET_OPTIMISE_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace hone {

/// What checks of a program find that it does while it runs.
enum class Sanitizer { None, Address };

/// Runs LLVM's pipeline at O2 for what `machine` runs, and adds the checks of `sanitizer` to every function.
void optimise(llvm::Module &module, llvm::TargetMachine &machine, Sanitizer sanitizer = Sanitizer::None);

/// Writes `bytes` to the file `path`; fails after an error, also where the disk is full.
llvm::LogicalResult writeFile(llvm::StringRef path, llvm::StringRef bytes, mlir::Location loc);

} // namespace hone

#endif // HONE_TARGET_OPTIMISE_H
