//===- hone-lsp-server.cpp - a language server for .mlir files --------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Diagnostics, hover, definitions and completion in an editor, for everything that hone-opt can parse.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  hone::setVersionPrinter("hone-lsp-server");
  mlir::DialectRegistry registry;
  hone::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
