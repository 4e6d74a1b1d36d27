//===- mlir.cpp - fuzz target: MLIR text --------------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is read, by the function that the driver reads it with, verifies, and can be printed and read again.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "Compiler.h"
#include "QuietContext.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdlib>

static mlir::OwningOpRef<mlir::ModuleOp> read(llvm::StringRef text, mlir::MLIRContext &context) {
  return hone::readModuleText(llvm::MemoryBuffer::getMemBufferCopy(text), "fuzz.mlir", &context);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mlir::MLIRContext &context = hone::fuzz::quietContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = read({reinterpret_cast<const char *>(data), size}, context);
  if (!module)
    return 0;
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().assumeVerified(false));
  if (mlir::failed(mlir::verify(*module)) || !read(text, context))
    std::abort();
  return 0;
}
