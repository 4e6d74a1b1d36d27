// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights are compressed in a raised copy, where they are what layers multiply with, and brought back to the nodes of the file.

#include "OnnxRewrites.h"

#include "CompressionReport.h"
#include "IntegerNodes.h"
#include "Rewrites.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include "onnx/onnx_pb.h"

using namespace mlir;
namespace json = llvm::json;

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

/// Nodes that multiply with the weight, or look it up.
static SmallVector<Operation *> findReaders(ModuleOp module, StringRef weight) {
  SmallVector<Operation *> readers;
  module.walk([&](GetParamOp get) {
    if (get.getName() != weight)
      return;
    for (Operation *user : get->getUsers()) {
      if (onnxir::isOnnxOp(user) && onnxir::getOpType(user) == "Transpose" && user->hasOneUse())
        user = *user->user_begin();
      if (onnxir::isOnnxOp(user))
        readers.push_back(user);
    }
  });
  return readers;
}

/// Says at a node what became of the weight, as `metadata_props` that the file gets.
static LogicalResult note(Operation *node, const WeightRecord &weight) {
  ::onnx::NodeProto said;
  if (StringAttr text = onnxir::getDescription(node->getLoc(), onnxir::kNodeText)) {
    if (failed(onnxir::parseMessage(text, said, node->getLoc())))
      return failure();
  } else if (auto name = dyn_cast<NameLoc>(node->getLoc())) {
    said.set_name(name.getName().str());
  }
  std::string key = "hone.weight/" + weight.name;
  auto &properties = *said.mutable_metadata_props();
  auto property = llvm::find_if(properties, [&](const auto &other) { return other.key() == key; });
  ::onnx::StringStringEntryProto &entry = property == properties.end() ? *properties.Add() : *property;
  entry.set_key(key);
  entry.set_value(llvm::formatv("{0}", json::Value(describeWeight(weight))).str());
  node->setLoc(onnxir::redescribe(node->getLoc(), onnxir::kNodeText, onnxir::printMessage(said, node->getContext())));
  return success();
}

/// What the record says of a weight; null where it changed nothing.
static const WeightRecord *findChanged(const CompressionRecord &record, StringRef name) {
  auto found = llvm::find_if(record.weights, [&](const WeightRecord &weight) { return weight.name == name; });
  return found != record.weights.end() && found->isChanged() ? &*found : nullptr;
}

/// Brings `compressed` back and says so at the nodes that read it, or warns that it stays as it was.
static LogicalResult exportWeight(SymbolTable &symbols, ParamOp compressed, const Before &before,
                                  const CompressionRecord &record) {
  SmallVector<std::pair<Operation *, Location>> unnoted;
  if (const WeightRecord *weight = findChanged(record, compressed.getSymName()))
    for (Operation *node : findReaders(cast<ModuleOp>(symbols.getOp()), weight->name)) {
      unnoted.emplace_back(node, node->getLoc());
      if (failed(note(node, *weight)))
        return failure();
    }
  FailureOr<std::string> obstacle = bringBack(symbols, compressed, before);
  if (failed(obstacle))
    return failure();
  if (obstacle->empty())
    return success();
  for (auto [node, loc] : unnoted)
    node->setLoc(loc);
  compressed.emitWarning() << compressed.getSymName() << " is exported as it was: " << *obstacle;
  return success();
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
  options.recorder->record.passes = listPasses(pm);
  if (failed(options.recorder->watch(*copy, [&] { return pm.run(*copy); })))
    return failure();
  SymbolTable symbols(module);
  for (auto compressed : copy->getOps<ParamOp>()) {
    Before from = before.lookup(compressed.getSymName());
    if (from.storage == compressed.getStorage())
      continue;
    if (failed(exportWeight(symbols, compressed, from, options.recorder->record)))
      return failure();
  }
  return success();
}

} // namespace hone
