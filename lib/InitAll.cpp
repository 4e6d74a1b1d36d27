//===- InitAll.cpp - registers all passes, for tools --------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream's first, then ours, one line a room.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/InitAll.h"

#include "hone/Conversion/Passes.h"
#include "hone/Conversion/Raising.h"
#include "hone/Transforms/Passes.h"

#include "mlir/InitAllPasses.h"
#include "llvm/Support/CommandLine.h"

void hone::registerAllPasses() {
  mlir::registerAllPasses();
  registerHoneConversionPasses();
  registerRaisingPipeline();
  registerHoneTransformsPasses();
}

void hone::setVersionPrinter(const char *program) {
  llvm::cl::SetVersionPrinter([program](llvm::raw_ostream &os) { os << program << ' ' << HONE_VERSION << '\n'; });
}
