// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of commands, and what they share.

#include "Command.h"

#include "Diagnostics.h"
#include "FlagChecks.h"
#include "Threads.h"
#include "hone/InitAll.h"
#include "hone/Target/CPU.h"
#include "hone/Target/CUDA.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace hone {

#define HONE_COMMAND(name) extern const Command k##name##Command;
#include "driver/commands.inc"
#undef HONE_COMMAND

ArrayRef<const Command *> listCommands() {
  static const Command *const commands[] = {
#define HONE_COMMAND(name) &k##name##Command,
#include "driver/commands.inc"
#undef HONE_COMMAND
  };
  return commands;
}

int closeOutput(int status) {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error(); // LLVM's own complaint about it would be a crash
  return error ? fail("cannot write standard output: " + error.message()) : status;
}

int withContext(StringRef input, llvm::function_ref<LogicalResult(MLIRContext &)> action) {
  if (input.empty())
    return fail("expected a model, but got none");
  DialectRegistry registry;
  registerAllDialects(registry);
  registerHostTranslations(registry);
  registerDeviceTranslations(registry);
  MLIRContext context;
  limitThreads(context);
  context.appendDialectRegistry(registry);
  context.printOpOnDiagnostic(false);
  bool reported = false;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    reported |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    printDiagnostic(diagnostic);
  });
  if (succeeded(action(context)))
    return closeOutput(0);
  if (!reported)
    llvm::errs() << "hone: internal error: a pass failed without saying why; please report it with the model\n";
  return reported ? 1 : 2;
}

std::string replaceEnding(StringRef path, StringRef ending) {
  llvm::SmallString<128> name(llvm::sys::path::filename(path));
  llvm::sys::path::replace_extension(name, ending);
  return name.str().str();
}

} // namespace hone
