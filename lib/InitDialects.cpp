//===- InitDialects.cpp - registers all dialects, for tools -------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Apart from the passes, so that what only reads IR links none of them. Upstream's first, then ours, one line a room.
//
//===--------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

void hone::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<HoneDialect>();
  registry.insert<hrt::HrtDialect>();
  hrt::registerBufferizableOpInterfaceExternalModels(registry);
  onnxir::registerDialect(registry);
}
