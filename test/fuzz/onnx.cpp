//===- onnx.cpp - fuzz target: ONNX files -------------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What imports verifies, and prints without harm.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "MemoryFile.h"

#include "hone/Import/Import.h"
#include "hone/InitAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

/// A context that knows everything and says nothing. A new one every so many inputs, for what an input makes unique
/// stays in its context.
static mlir::MLIRContext &quietContext() {
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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hone::fuzz::MemoryFile file(data, size);
  mlir::OwningOpRef<mlir::ModuleOp> module = hone::importOnnx(file.path(), &quietContext());
  if (!module)
    return 0;
  if (mlir::failed(mlir::verify(*module)))
    std::abort();
  llvm::raw_null_ostream nowhere;
  module->print(nowhere);
  return 0;
}
