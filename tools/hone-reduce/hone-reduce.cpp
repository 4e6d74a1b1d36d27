//===- hone-reduce.cpp - makes a failing module small -------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mlir-reduce with Hone's dialects and passes: keeps what a test script calls interesting and drops the rest.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  hone::setVersionPrinter("hone-reduce");
  hone::registerAllPasses();
  mlir::DialectRegistry registry;
  hone::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
