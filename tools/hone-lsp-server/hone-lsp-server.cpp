//===- hone-lsp-server.cpp - a language server for .mlir files --------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Diagnostics, hover, definitions and completion in an editor, for everything that hone-opt can parse. The server reads standard input by
// itself, so that is exchanged for a stream of checked messages.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "EditorMessages.h"
#include "hone/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include <algorithm>

/// Whether `words` leave messages framed as the protocol has it, the one way that EditorMessages reads.
static bool areSupported(llvm::ArrayRef<const char *> words) {
  for (llvm::StringRef word : words) {
    llvm::StringRef name = word.ltrim('-').split('=').first;
    if (name == "lit-test" || name == "input-style") {
      llvm::errs() << "hone-lsp-server: error: unsupported option '" << word
                   << "'; messages come as the protocol frames them\n";
      return false;
    }
  }
  return true;
}

static ssize_t readMessages(void *messages, char *to, size_t size) {
  return static_cast<ssize_t>(static_cast<hone::EditorMessages *>(messages)->read(to, size));
}

int main(int argc, char **argv) {
  if (!areSupported(llvm::ArrayRef(argv, argc).drop_front(std::min(argc, 1))))
    return 1;
  hone::EditorMessages messages(stdin);
  stdin = fopencookie(&messages, "r", {readMessages, nullptr, nullptr, nullptr});
  if (!stdin) {
    llvm::errs() << "hone-lsp-server: error: cannot allocate memory\n";
    return 1;
  }
  hone::setVersionPrinter("hone-lsp-server");
  mlir::DialectRegistry registry;
  hone::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
