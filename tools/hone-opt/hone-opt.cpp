//===- hone-opt.cpp - runs passes on IR ---------------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mlir-opt with Hone's dialects and passes. Text is checked before MLIR's parser, which goes down by recursion.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/Import/ModuleText.h"
#include "hone/InitAll.h"
#include "hone/io/descriptors.h"
#include "hone/io/mapped_faults.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/ToolOutputFile.h"

#include <unistd.h>

using namespace mlir;

static LogicalResult fail(const llvm::Twine &reason) {
  llvm::errs() << "hone-opt: error: " << reason << '\n';
  return failure();
}

/// A device or a pipe may have no end; "-" is standard input, and what is there is the caller's.
static LogicalResult checkInput(const std::string &input) {
  if (input == "-")
    return success();
  uint64_t size = 0;
  absl::StatusOr<int> descriptor = hone::io::openForReading(input, size);
  if (!descriptor.ok())
    return fail(std::string(descriptor.status().message()));
  close(*descriptor);
  return success();
}

/// What was written must have arrived; LLVM's own complaint about it would be a crash.
static LogicalResult close(llvm::raw_fd_ostream &stream, StringRef name) {
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  return error ? fail("cannot write " + name + ": " + error.message()) : success();
}

static LogicalResult run(const std::string &input, StringRef output, DialectRegistry &registry,
                         const MlirOptMainConfig &config) {
  std::string error;
  if (failed(checkInput(input)))
    return failure();
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> file = buffer ? openOutputFile(output, &error) : nullptr;
  if (!file)
    return fail(error);
  if (!buffer->getBuffer().starts_with("ML\xEFR"))
    if (std::string problem = hone::checkModuleTexts(buffer->getBuffer(), config.inputSplitMarker()); !problem.empty())
      return fail("cannot read '" + input + "': " + problem);
  LogicalResult result = MlirOptMain(file->os(), std::move(buffer), registry, config);
  if (failed(close(file->os(), output == "-" ? "standard output" : output)) || failed(result))
    return failure();
  file->keep();
  return success();
}

int main(int argc, char **argv) {
  hone::setVersionPrinter("hone-opt");
  hone::registerAllPasses();
  DialectRegistry registry;
  hone::registerAllDialects(registry);
  auto [input, output] = registerAndParseCLIOptions(argc, argv, "Hone's optimizer driver\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses()) // needs no input
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  llvm::InitLLVM init(argc, argv);
  hone::io::endOnMappedFault("hone-opt", llvm::sys::RunInterruptHandlers);
  return asMainReturnCode(run(input, output, registry, config));
}
