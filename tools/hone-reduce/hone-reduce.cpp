//===- hone-reduce.cpp - makes a failing module small -------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mlir-reduce with Hone's dialects and passes: keeps what a test script calls interesting and drops the rest. Text is checked before
// MLIR's parser, which goes down by recursion.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/Import/ModuleText.h"
#include "hone/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

/// Fails for a file among `words` that is not for the parser. Which word is the input is for mlir-reduce to say.
static llvm::LogicalResult checkFiles(llvm::ArrayRef<const char *> words) {
  for (llvm::StringRef word : words) {
    if (!llvm::sys::fs::is_regular_file(word))
      continue;
    auto file = llvm::MemoryBuffer::getFile(word);
    if (!file || (*file)->getBuffer().starts_with("ML\xEFR")) // mlir-reduce says what cannot be opened
      continue;
    if (std::string problem = hone::checkModuleText((*file)->getBuffer()); !problem.empty()) {
      llvm::errs() << "hone-reduce: error: cannot read '" << word << "': " << problem << '\n';
      return llvm::failure();
    }
  }
  return llvm::success();
}

static void complainOfOutput(llvm::StringRef reason) {
  llvm::errs() << "hone-reduce: error: cannot write the output: " << reason << '\n';
}

/// LLVM ends the process where a file does not take what was written: with exit code 1, after a word of ours.
static void endByError(void *, const char *text, bool) {
  llvm::StringRef reason = text;
  if (reason.consume_front("IO failure on output stream: "))
    complainOfOutput(reason);
  else
    llvm::errs() << "LLVM ERROR: " << reason << '\n';
}

/// What standard output has to say for itself before the process ends.
static llvm::LogicalResult finishOutput() {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  if (error)
    complainOfOutput(error.message());
  return llvm::failure(static_cast<bool>(error));
}

int main(int argc, char **argv) {
  if (failed(checkFiles(llvm::ArrayRef(argv, argc).drop_front(std::min(argc, 1)))))
    return 1;
  hone::setVersionPrinter("hone-reduce");
  hone::registerAllPasses();
  mlir::DialectRegistry registry;
  hone::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  llvm::install_fatal_error_handler(endByError);
  llvm::LogicalResult result = mlir::mlirReduceMain(argc, argv, context);
  return failed(finishOutput()) || failed(result);
}
