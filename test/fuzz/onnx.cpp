//===- onnx.cpp - fuzz target: ONNX files -------------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What imports verifies, and prints without harm.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "MemoryFile.h"
#include "QuietContext.h"

#include "hone/Import/Import.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hone::fuzz::MemoryFile file(data, size);
  mlir::OwningOpRef<mlir::ModuleOp> module = hone::importOnnx(file.path(), &hone::fuzz::quietContext());
  if (!module)
    return 0;
  if (mlir::failed(mlir::verify(*module)))
    std::abort();
  llvm::raw_null_ostream nowhere;
  module->print(nowhere);
  return 0;
}
