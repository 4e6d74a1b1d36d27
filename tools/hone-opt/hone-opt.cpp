//===- hone-opt.cpp - runs passes on IR ---------------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mlir-opt with Hone's dialects and passes.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  hone::setVersionPrinter("hone-opt");
  hone::registerAllPasses();
  mlir::DialectRegistry registry;
  hone::registerAllDialects(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Hone's optimizer driver\n", registry));
}
