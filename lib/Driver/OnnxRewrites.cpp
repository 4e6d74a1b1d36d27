// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights are compressed in a raised copy, where they are what layers multiply with, and brought back to the nodes of the file.

#include "OnnxRewrites.h"

#include "IntegerNodes.h"
#include "Rewrites.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace hone {

namespace {
/// A parameter before it was compressed.
struct Before {
  RankedTensorType type;
  Attribute storage;
};
} // namespace

static llvm::StringMap<Before> listParameters(ModuleOp module) {
  llvm::StringMap<Before> parameters;
  for (auto param : module.getOps<ParamOp>())
    parameters[param.getSymName()] = {param.getTensorType(), param.getStorage()};
  return parameters;
}

/// Whether the elements of `before` are those of `param` in the order of the file.
static bool isSame(const Before &before, ParamOp param) {
  SmallVector<EncodingPlane> planes = getPlanes(before.type);
  return planes.size() == 1 && planes[0].type == param.getTensorType();
}

/// Brings `compressed` back to `param`. Returns why not, or an empty string.
static FailureOr<std::string> bringBack(SymbolTable &symbols, ParamOp compressed, const Before &before) {
  auto param = symbols.lookup<ParamOp>(compressed.getSymName());
  if (!param || !before.type || !isSame(before, param))
    return std::string("the model also reads it in another form");
  if (isa_and_nonnull<AffineAttr>(compressed.getTensorType().getEncoding())) {
    auto stored = dyn_cast_or_null<StoredAttr>(before.type.getEncoding());
    return replaceByIntegers(symbols, param, compressed, stored && stored.getTransposed());
  }
  param.setStorageAttr(compressed.getStorage());
  return std::string();
}

LogicalResult rewriteOnnx(const CompileOptions &options, ModuleOp module) {
  if (options.prune == "structured")
    return emitError(module.getLoc()) << "unsupported pattern 'structured' to export; supported: N:M, such as 2:4";
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  if (failed(addCompression(options, pm, module.getLoc(), /*scalesChannels=*/false)))
    return failure();
  if (pm.empty())
    return success();
  OwningOpRef<ModuleOp> copy(module.clone());
  if (failed(runPhases(*copy, "raise")))
    return failure();
  llvm::StringMap<Before> before = listParameters(*copy);
  if (failed(pm.run(*copy)))
    return failure();
  SymbolTable symbols(module);
  for (auto compressed : copy->getOps<ParamOp>()) {
    Before from = before.lookup(compressed.getSymName());
    if (from.storage == compressed.getStorage())
      continue;
    FailureOr<std::string> obstacle = bringBack(symbols, compressed, from);
    if (failed(obstacle))
      return failure();
    if (!obstacle->empty())
      compressed.emitWarning() << compressed.getSymName() << " is exported as it was: " << *obstacle;
  }
  return success();
}

} // namespace hone
