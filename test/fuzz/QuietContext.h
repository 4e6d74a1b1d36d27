//===- QuietContext.h - an MLIR context for fuzz targets ----------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// It knows all dialects and prints no diagnostics.
//
//===--------------------------------------------------------------------------------------------------------------===//

#ifndef HONE_TEST_FUZZ_QUIETCONTEXT_H
#define HONE_TEST_FUZZ_QUIETCONTEXT_H

#include "hone/InitAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace hone::fuzz {

/// The context for the next input: a new one every so many, for what an input makes unique stays in its context.
inline mlir::MLIRContext &quietContext() {
  constexpr int kInputsPerContext = 200;
  static int inputs = 0;
  static std::unique_ptr<mlir::MLIRContext> context;
  if (inputs++ % kInputsPerContext == 0) {
    mlir::DialectRegistry registry;
    hone::registerAllDialects(registry);
    context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
    context->getDiagEngine().registerHandler([](mlir::Diagnostic &) {});
  }
  return *context;
}

} // namespace hone::fuzz

#endif // HONE_TEST_FUZZ_QUIETCONTEXT_H
