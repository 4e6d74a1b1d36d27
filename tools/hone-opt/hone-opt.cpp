//===- hone-opt.cpp - runs passes on IR ---------------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mlir-opt with Hone's dialects and passes.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/InitAll.h"
#include "hone/io/descriptors.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

/// A device or a pipe may have no end; "-" is standard input, and what is there is the caller's.
static bool canRead(const std::string &input) {
  uint64_t size = 0;
  absl::StatusOr<int> descriptor = input == "-" ? absl::StatusOr<int>(-1) : hone::io::openForReading(input, size);
  if (!descriptor.ok())
    llvm::errs() << "hone-opt: error: " << std::string(descriptor.status().message()) << '\n';
  else if (*descriptor >= 0)
    close(*descriptor);
  return descriptor.ok();
}

/// What was printed must have arrived; LLVM's own complaint about it would be a crash.
static bool closeOutput() {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  if (error)
    llvm::errs() << "hone-opt: error: cannot write standard output: " << error.message() << '\n';
  return !error;
}

int main(int argc, char **argv) {
  hone::setVersionPrinter("hone-opt");
  hone::registerAllPasses();
  mlir::DialectRegistry registry;
  hone::registerAllDialects(registry);
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Hone's optimizer driver\n", registry);
  if (!canRead(input))
    return 1;
  bool succeeded = mlir::succeeded(mlir::MlirOptMain(argc, argv, input, output, registry));
  return closeOutput() && succeeded ? 0 : 1;
}
