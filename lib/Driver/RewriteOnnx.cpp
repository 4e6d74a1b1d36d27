// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipelines of `hone export`: structured pruning first, since elements are chosen at the shapes that it leaves.

#include "RewriteOnnx.h"

#include "CompressionReport.h"
#include "Rewrites.h"
#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/ScratchBytes.h"
#include "hone/Export/CompressedModel.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace hone {

/// What the record says of a weight; nothing where it did not change.
static std::optional<std::string> describeChange(const CompressionRecord &record, StringRef name) {
  auto found = llvm::find_if(record.weights, [&](const WeightRecord &weight) { return weight.name == name; });
  if (found == record.weights.end() || !found->isChanged())
    return std::nullopt;
  return llvm::formatv("{0}", llvm::json::Value(describeWeight(*found))).str();
}

LogicalResult rewriteOnnx(const CompileOptions &options, ModuleOp module) {
  PassManager structural(module.getContext(), ModuleOp::getOperationName());
  PassManager elements(module.getContext(), ModuleOp::getOperationName());
  OpPassManager &ofPruning = options.compression.pruning.isStructured() ? structural : elements;
  if (failed(addPruning(options.compression, ofPruning, module.getLoc())) ||
      failed(addQuantization(options, elements, module.getLoc(), /*scalesChannels=*/false)))
    return failure();
  if (structural.empty() && elements.empty())
    return success();
  module.getContext()->loadDialect<HoneDialect>();
  ScratchBytes::get(module.getContext()).spillBeside(options.outputs.path);
  PassManager infer(module.getContext(), ModuleOp::getOperationName());
  infer.addPass(createInferOnnxShapes());
  if (!structural.empty() && failed(infer.run(module)))
    return failure();
  OwningOpRef<ModuleOp> copy(module.clone());
  if (failed(runPhases(*copy, "raise")))
    return failure();
  CompressionRecord &record = options.recorder->record;
  record.passes = listPasses(structural) + (structural.empty() || elements.empty() ? "" : ",") + listPasses(elements);
  CompressedModel compressed(module, *copy);
  LogicalResult result = options.recorder->watch(*copy, [&]() -> LogicalResult {
    if (options.compression.pruning.parts == "layers")
      compressed.recordLayers();
    if (!structural.empty() && (failed(structural.run(*copy)) || failed(compressed.shrink())))
      return failure();
    compressed.recordParameters();
    return elements.run(*copy);
  });
  if (failed(result))
    return failure();
  return compressed.restoreWeight([&](StringRef weight) { return describeChange(record, weight); });
}

} // namespace hone
