// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone import`: the model as MLIR.

#include "Command.h"
#include "Compiler.h"
#include "ExternalFiles.h"
#include "ModelFolder.h"
#include "Outputs.h"

using namespace mlir;

namespace hone {

namespace {
struct ImportOptions {
  explicit ImportOptions(OptionSet &set) {
    set.addInput(compile.input, "MODEL.onnx|FOLDER");
    set.add("o", compile.outputs.path, "FILE", "Write to FILE (.mlir or .mlirbc; default: standard output)");
    compile.reading.declare(set);
  }

  CompileOptions compile;
};
} // namespace

static int runImport(ImportOptions &options) {
  if (failed(findModel(options.compile.input)))
    return 1;
  CompileOptions &compile = options.compile;
  compile.reading.limitProcess();
  if (compile.outputs.path.empty())
    compile.outputs.path = "-";
  return withContext(compile.input, [&](MLIRContext &context) -> LogicalResult {
    OwningOpRef<ModuleOp> module = readModel(compile.input, &context, compile.reading);
    if (!module || failed(checkOutputs(compile, listInputs(compile, {*module}), module->getLoc())))
      return failure();
    warnAboutNames(*module, compile.outputs.path);
    return writeModule(*module, compile.outputs.path);
  });
}

extern const Command kImportCommand =
    makeCommand<ImportOptions, runImport>("import", "read an ONNX model and write it as MLIR");

} // namespace hone
