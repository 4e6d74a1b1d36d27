// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Diagnostics as lines.

#include "Diagnostics.h"

#include "hone/cli/progress.h"
#include "hone/io/printable.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace hone {

void printDiagnostic(Diagnostic &diagnostic) {
  static const char *const kinds[] = {"note", "warning", "error", "remark"};
  if (cli::getProgressStyle() == cli::ProgressStyle::Terminal)
    llvm::errs() << cli::kClearLine;
  auto print = [](Diagnostic &one) {
    std::string where;
    Location loc = one.getLocation();
    if (auto name = dyn_cast<NameLoc>(loc)) {
      where = "'" + name.getName().str() + "': ";
      loc = name.getChildLoc();
    }
    if (auto file = loc->findInstanceOf<FileLineColLoc>()) {
      std::string line =
          file.getLine() ? ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn()) : "";
      where = file.getFilename().str() + line + ": " + where;
    }
    llvm::errs() << "hone: " << kinds[static_cast<int>(one.getSeverity())] << ": " << io::printable(where + one.str())
                 << '\n';
  };
  print(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    print(note);
}

} // namespace hone
