// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights are compressed in a raised copy, where they are what layers multiply with, and brought back to the nodes of the file.

#include "OnnxRewrites.h"

#include "CompressionReport.h"
#include "IntegerNodes.h"
#include "Rewrites.h"
#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ScratchBytes.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/LayerRemoval.h"
#include "hone/Transforms/UnitRemoval.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
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

/// Brings `compressed` back, if it has changed since it was `before`, and says at the nodes that read it what became of it; or
/// warns that it stays as it was.
static LogicalResult exportWeight(SymbolTable &symbols, ParamOp compressed, const Before &before,
                                  const CompressionRecord &record) {
  SmallVector<std::pair<Operation *, Location>> unnoted;
  if (const WeightRecord *weight = findChanged(record, compressed.getSymName()))
    for (Operation *node : findReaders(cast<ModuleOp>(symbols.getOp()), weight->name)) {
      unnoted.emplace_back(node, node->getLoc());
      if (failed(note(node, *weight)))
        return failure();
    }
  if (before.storage == compressed.getStorage())
    return success();
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

//===----------------------------------------------------------------------===//
// Smaller models
//===----------------------------------------------------------------------===//

/// The parameters of a raised copy that lost inputs, by their dimension in the file, whose `symbols` are. Fails, after an error, where
/// the file has them in another form: experts, which have lost inputs of their own.
static FailureOr<SmallVector<StayingInputs>> listShorterInputs(ModuleOp copy, const SymbolTable &symbols) {
  SmallVector<StayingInputs> shorter;
  for (auto param : copy.getOps<ParamOp>()) {
    std::optional<KeptInputs> inputs = getKeptInputs(param);
    if (!inputs)
      continue;
    auto whole = symbols.lookup<ParamOp>(param.getSymName());
    bool isOfAllRows = static_cast<int64_t>(inputs->kept.size()) == param.getTensorType().getDimSize(1);
    if (!whole || whole.getTensorType().getRank() != 2 || !isOfAllRows)
      return param.emitError() << "cannot export " << param.getSymName() << ": the file has it in another form";
    auto stored = dyn_cast_or_null<StoredAttr>(param.getTensorType().getEncoding());
    shorter.push_back({param.getSymNameAttr(), stored && stored.getTransposed() ? 0 : 1, inputs->kept});
  }
  return shorter;
}

/// What a file says of values inside of a graph may be their sizes of before.
static LogicalResult dropValueTypes(Operation *op) {
  StringAttr text = onnxir::getDescription(op->getLoc(), onnxir::kGraphText);
  if (!text)
    return success();
  ::onnx::GraphProto said;
  if (failed(onnxir::parseMessage(text, said, op->getLoc())))
    return failure();
  said.clear_value_info();
  op->setLoc(onnxir::redescribe(op->getLoc(), onnxir::kGraphText, onnxir::printMessage(said, op->getContext())));
  return success();
}

/// Removes the layers from `module` whose weights, of `ends`, its raised copy does not read any more.
static LogicalResult removeLayers(ModuleOp module, ModuleOp copy, ArrayRef<StringAttr> ends) {
  llvm::StringSet<> left;
  copy.walk([&](GetParamOp get) { left.insert(get.getName()); });
  SmallVector<StringAttr> gone;
  llvm::copy_if(ends, std::back_inserter(gone), [&](StringAttr end) { return !left.contains(end.getValue()); });
  return removeBranches(module, gone);
}

/// Makes `module` as much smaller as its raised copy has become, with the elements that it has; `ends` are those of the layers that the
/// copy had.
static LogicalResult makeSmaller(ModuleOp module, ModuleOp copy, ArrayRef<StringAttr> ends) {
  if (failed(removeLayers(module, copy, ends)))
    return failure();
  SymbolTable symbols(module), ofCopy(copy);
  auto shorter = listShorterInputs(copy, symbols);
  if (failed(shorter))
    return failure();
  auto types = removeUnits(module, *shorter);
  if (failed(types))
    return failure();
  for (const auto &[name, type] : *types) {
    auto param = symbols.lookup<ParamOp>(name), cut = ofCopy.lookup<ParamOp>(name);
    if (!cut || !isSame({cut.getTensorType(), {}}, param))
      return param.emitError() << "cannot export " << param.getSymName() << ": the model also reads it in another form";
    param.setStorageAttr(cut.getStorage());
  }
  WalkResult walked = module.walk([](Operation *op) {
    bool isGraph = isa<func::FuncOp, onnxir::YieldOp>(op);
    return isGraph && failed(dropValueTypes(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return success(!walked.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

/// Adds what becomes of parameters at the shapes that the copy has by then.
static LogicalResult addElementRewrites(const CompileOptions &options, OpPassManager &pm, Location loc) {
  CompileOptions others = options;
  if (options.prune == "structured") {
    others.prune = others.pruneMethod = others.sparsity = others.pruneParts = "";
    if (options.quantize.empty())
      others.calibration.clear();
  }
  return addCompression(others, pm, loc, /*scalesChannels=*/false);
}

/// Adds what makes the copy smaller.
static LogicalResult addStructuralRewrites(const CompileOptions &options, OpPassManager &pm, Location loc) {
  if (options.prune != "structured")
    return success();
  CompileOptions structural = options;
  structural.quantize = structural.quantizeMethod = structural.quantizeOutputs = "";
  return addCompression(structural, pm, loc, /*scalesChannels=*/false);
}

LogicalResult rewriteOnnx(const CompileOptions &options, ModuleOp module) {
  PassManager structural(module.getContext(), ModuleOp::getOperationName());
  PassManager elements(module.getContext(), ModuleOp::getOperationName());
  if (failed(addStructuralRewrites(options, structural, module.getLoc())) ||
      failed(addElementRewrites(options, elements, module.getLoc())))
    return failure();
  if (structural.empty() && elements.empty())
    return success();
  module.getContext()->loadDialect<HoneDialect>();
  ScratchBytes::get(module.getContext()).spillBeside(options.output);
  PassManager infer(module.getContext(), ModuleOp::getOperationName());
  infer.addPass(createInferOnnxShapes());
  if (!structural.empty() && failed(infer.run(module)))
    return failure();
  OwningOpRef<ModuleOp> copy(module.clone());
  if (failed(runPhases(*copy, "raise")))
    return failure();
  CompressionRecord &record = options.recorder->record;
  record.passes = listPasses(structural) + (structural.empty() || elements.empty() ? "" : ",") + listPasses(elements);
  llvm::StringMap<Before> before;
  LogicalResult result = options.recorder->watch(*copy, [&]() -> LogicalResult {
    SmallVector<StringAttr> ends = options.pruneParts == "layers" ? listBranchEnds(*copy) : SmallVector<StringAttr>();
    if (!structural.empty() && (failed(structural.run(*copy)) || failed(makeSmaller(module, *copy, ends))))
      return failure();
    before = listParameters(*copy);
    return elements.run(*copy);
  });
  if (failed(result))
    return failure();
  SymbolTable symbols(module);
  for (auto compressed : copy->getOps<ParamOp>())
    if (failed(exportWeight(symbols, compressed, before.lookup(compressed.getSymName()), record)))
      return failure();
  return success();
}

} // namespace hone
