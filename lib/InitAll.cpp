//===- InitAll.cpp - registers all of Hone, for tools -------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream's dialects and passes first, then ours, one line a room.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/InitAll.h"

#include "hone/Conversion/Passes.h"
#include "hone/Conversion/Raising.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "llvm/Support/CommandLine.h"

void hone::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<HoneDialect>();
  registry.insert<hrt::HrtDialect>();
  hrt::registerBufferizableOpInterfaceExternalModels(registry);
  onnxir::registerDialect(registry);
}

void hone::registerAllPasses() {
  mlir::registerAllPasses();
  registerHoneConversionPasses();
  registerRaisingPipeline();
  registerHoneTransformsPasses();
}

void hone::setVersionPrinter(const char *program) {
  llvm::cl::SetVersionPrinter([program](llvm::raw_ostream &os) { os << program << ' ' << HONE_VERSION << '\n'; });
}
