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

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// Why one of the modules in `text`, which `marker` divides unless it is empty, is not for the parser; or an empty string.
static std::string checkModules(StringRef text, StringRef marker) {
  SmallVector<StringRef> modules = {text};
  if (!marker.empty()) {
    modules.clear();
    text.split(modules, marker);
  }
  for (StringRef module : modules)
    if (std::string problem = hone::checkModuleText(module); !problem.empty())
      return problem;
  return "";
}

static LogicalResult run(StringRef input, StringRef output, DialectRegistry &registry,
                         const MlirOptMainConfig &config) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> file = buffer ? openOutputFile(output, &error) : nullptr;
  bool isText = buffer && !buffer->getBuffer().starts_with("ML\xEFR");
  if (file && isText)
    if (std::string problem = checkModules(buffer->getBuffer(), config.inputSplitMarker()); !problem.empty())
      error = ("cannot read '" + input + "': " + problem).str();
  if (!error.empty()) {
    llvm::errs() << "hone-opt: error: " << error << '\n';
    return failure();
  }
  if (failed(MlirOptMain(file->os(), std::move(buffer), registry, config)))
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
  return asMainReturnCode(run(input, output, registry, config));
}
