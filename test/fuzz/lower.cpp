//===- lower.cpp - fuzz target: from an ONNX file to linalg -------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What imports is lowered, or refused with a diagnostic; what was lowered verifies.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "Compiler.h"
#include "MemoryFile.h"
#include "QuietContext.h"

#include "hone/Import/Import.h"

#include "mlir/IR/Verifier.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hone::fuzz::MemoryFile file(data, size);
  mlir::OwningOpRef<mlir::ModuleOp> module = hone::importOnnx(file.path(), &hone::fuzz::quietContext());
  if (module && mlir::succeeded(hone::runPhases(*module, "lower")) && mlir::failed(mlir::verify(*module)))
    std::abort();
  return 0;
}
