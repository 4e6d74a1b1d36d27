// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In the raised copy weights are what layers multiply with; in the file any node may read them.

#include "hone/Export/CompressedModel.h"

#include "IntegerNodes.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Shards.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/GroupRemoval.h"
#include "hone/Transforms/LayerRemoval.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

#include "onnx/onnx_pb.h"

#include <numeric>

using namespace mlir;

namespace hone {

/// Whether the elements of a parameter of type `before` are those of `param` in the order of the file.
static bool isSame(RankedTensorType before, ParamOp param) {
  SmallVector<EncodingPlane> planes = getPlanes(before);
  return planes.size() == 1 && planes[0].type == param.getTensorType();
}

/// Whether `param` has the matrices that are below each other in a plain parameter of type `before`, as a tensor `[E, N, K]`.
static bool isOfMatrices(RankedTensorType before, ParamOp param) {
  RankedTensorType type = param.getTensorType();
  return !before.getEncoding() && type.getRank() == 3 && before.getRank() == 2 && !type.getEncoding() &&
         before.getElementType() == type.getElementType() && before.getDimSize(1) == type.getDimSize(2) &&
         before.getDimSize(0) == type.getDimSize(0) * type.getDimSize(1);
}

static bool areIntegers(ParamOp param) { return isa_and_nonnull<AffineAttr>(param.getTensorType().getEncoding()); }

/// Why matrices that the file has in one tensor stay as they were, where they were compressed to integers.
static constexpr llvm::StringLiteral kInOneTensor = "no node reads integers of matrices that are one tensor";

/// Brings `compressed`, which was of type `before`, back to the parameter of its name. Returns why not, or an empty string.
static FailureOr<std::string> replaceParameter(SymbolTable &symbols, ParamOp compressed, RankedTensorType before) {
  auto param = symbols.lookup<ParamOp>(compressed.getSymName());
  bool isOfRows = param && before && isOfMatrices(before, param);
  if (!param || !before || (!isSame(before, param) && !isOfRows))
    return std::string("the model also reads it in another form");
  if (areIntegers(compressed) && isOfRows)
    return kInOneTensor.str();
  if (areIntegers(compressed)) {
    auto stored = dyn_cast_or_null<StoredAttr>(before.getEncoding());
    return replaceByIntegers(symbols, param, compressed, stored && stored.getTransposed());
  }
  param.setStorageAttr(compressed.getStorage());
  if (isOfRows) {
    FailureOr<StoredBytes> bytes = StoredBytes::open(compressed.getStorage(), compressed.getLoc());
    if (failed(bytes))
      return failure();
    param.setStorageAttr(makeResource(param.getTensorType(), bytes->get()));
  }
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

/// Says at a node what became of `weight`, as `metadata_props` that the file gets.
static LogicalResult note(Operation *node, StringRef weight, const std::string &description) {
  ::onnx::NodeProto said;
  if (StringAttr text = onnxir::getDescription(node->getLoc(), onnxir::kNodeText)) {
    if (failed(onnxir::parseMessage(text, said, node->getLoc())))
      return failure();
  } else if (auto name = dyn_cast<NameLoc>(node->getLoc())) {
    said.set_name(name.getName().str());
  }
  std::string key = ("hone.weight/" + weight).str();
  auto &properties = *said.mutable_metadata_props();
  auto property = llvm::find_if(properties, [&](const auto &other) { return other.key() == key; });
  ::onnx::StringStringEntryProto &entry = property == properties.end() ? *properties.Add() : *property;
  entry.set_key(key);
  entry.set_value(description);
  node->setLoc(onnxir::redescribe(node->getLoc(), onnxir::kNodeText, onnxir::printMessage(said, node->getContext())));
  return success();
}

void CompressedModel::recordParameters() {
  for (auto param : copy.getOps<ParamOp>())
    before[param.getSymName()] = {param.getTensorType(), param.getStorage()};
}

/// Brings `compressed` back, if it has changed, and says at the nodes that read it what became of it; or warns that it stays as it was.
LogicalResult CompressedModel::exportWeight(SymbolTable &symbols, ParamOp compressed, Describe describe) {
  SmallVector<std::pair<Operation *, Location>> unnoted;
  if (std::optional<std::string> description = describe(compressed.getSymName()))
    for (Operation *node : findReaders(module, compressed.getSymName())) {
      unnoted.emplace_back(node, node->getLoc());
      if (failed(note(node, compressed.getSymName(), *description)))
        return failure();
    }
  Before was = before.lookup(compressed.getSymName());
  if (was.storage == compressed.getStorage())
    return success();
  FailureOr<std::string> blocker = replaceParameter(symbols, compressed, was.type);
  if (failed(blocker))
    return failure();
  if (blocker->empty())
    return success();
  for (auto [node, loc] : unnoted)
    node->setLoc(loc);
  compressed.emitWarning() << compressed.getSymName() << " is exported as it was: " << *blocker;
  return success();
}

/// A part of a joined parameter, which has no blocker, in the form that the file has it in but for integers.
static FailureOr<ParamOp> takePart(SymbolTable &symbols, const ParamSlices &slices, StackedAttr stacked, StringRef name,
                                   ArrayRef<int64_t> rows) {
  FailureOr<ParamOp> part = slices.create(symbols, name, rows);
  if (failed(part) || areIntegers(*part))
    return part;
  FailureOr<std::vector<float>> elements = readStoredElements(*part);
  if (failed(elements))
    return failure();
  part->setType(stacked.getType());
  part->setStorageAttr(stacked.getParts()[0]);
  writeElements(*part, *elements);
  return part;
}

/// Writes the matrices that `compressed` joins back to the one parameter of the file that has them all, transposed.
LogicalResult CompressedModel::exportWhole(SymbolTable &symbols, ParamOp compressed, StackedAttr stacked,
                                           Describe describe) {
  auto param = symbols.lookup<ParamOp>(compressed.getSymName());
  if (param && areIntegers(compressed)) {
    compressed.emitWarning() << compressed.getSymName() << " is exported as it was: " << kInOneTensor;
    return success();
  }
  SymbolTable ofCopy(copy);
  SmallVector<int64_t> rows(stacked.getType().getDimSize(0));
  ParamSlices slices(compressed, 0, static_cast<int64_t>(rows.size()));
  SmallVector<char, 0> whole;
  for (size_t number = 0; param && number < stacked.getParts().size(); ++number) {
    std::iota(rows.begin(), rows.end(), number * rows.size());
    FailureOr<ParamOp> part = takePart(ofCopy, slices, stacked, compressed.getSymName(), rows);
    if (failed(part))
      return failure();
    FailureOr<StoredBytes> bytes = StoredBytes::open(part->getStorage(), part->getLoc());
    if (failed(bytes))
      return failure();
    llvm::append_range(whole, bytes->get());
  }
  if (param) {
    compressed.setType(param.getTensorType());
    compressed.setStorageAttr(makeResource(param.getTensorType(), whole));
    before[compressed.getSymName()] = {param.getTensorType(), {}};
  }
  return exportWeight(symbols, compressed, describe);
}

/// Writes each of the parameters `names` of the file that `compressed` joins back.
LogicalResult CompressedModel::exportJoined(SymbolTable &symbols, ParamOp compressed, ArrayAttr names,
                                            Describe describe) {
  Before was = before.lookup(compressed.getSymName());
  auto stacked = dyn_cast_or_null<StackedAttr>(was.storage);
  if (!stacked || was.storage == compressed.getStorage())
    return success();
  if (names.size() != stacked.getParts().size())
    return exportWhole(symbols, compressed, stacked, describe);
  SymbolTable ofCopy(copy);
  SmallVector<int64_t> rows(stacked.getType().getDimSize(0));
  ParamSlices slices(compressed, 0, static_cast<int64_t>(rows.size()));
  for (auto [number, name] : llvm::enumerate(names.getAsValueRange<StringAttr>())) {
    std::iota(rows.begin(), rows.end(), number * rows.size());
    if (std::string blocker = slices.getBlocker(rows); !blocker.empty()) {
      compressed.emitWarning() << name << " is exported as it was: " << blocker;
      continue;
    }
    FailureOr<ParamOp> part = takePart(ofCopy, slices, stacked, name, rows);
    if (failed(part))
      return failure();
    before[name] = {stacked.getType(), {}};
    if (failed(exportWeight(symbols, *part, [&](StringRef) { return describe(compressed.getSymName()); })))
      return failure();
  }
  return success();
}

LogicalResult CompressedModel::restoreWeight(Describe describe) {
  SymbolTable symbols(module);
  for (ParamOp compressed : SmallVector<ParamOp>(copy.getOps<ParamOp>())) {
    auto names = compressed->getAttrOfType<ArrayAttr>(kJoinedAttrName);
    if (failed(names ? exportJoined(symbols, compressed, names, describe)
                     : exportWeight(symbols, compressed, describe)))
      return failure();
  }
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

void CompressedModel::recordLayers() { branchEnds = listBranchEnds(copy); }

/// Removes the layers whose weights the copy does not read any more.
LogicalResult CompressedModel::removeLayers() {
  llvm::StringSet<> left;
  copy.walk([&](GetParamOp get) { left.insert(get.getName()); });
  SmallVector<StringAttr> gone;
  llvm::copy_if(branchEnds, std::back_inserter(gone), [&](StringAttr end) { return !left.contains(end.getValue()); });
  return removeBranches(module, gone);
}

LogicalResult CompressedModel::shrink() {
  if (failed(removeLayers()))
    return failure();
  SymbolTable symbols(module), ofCopy(copy);
  auto shorter = listShorterInputs(copy, symbols);
  if (failed(shorter))
    return failure();
  auto types = removeGroups(module, *shorter);
  if (failed(types))
    return failure();
  for (const auto &[name, type] : *types) {
    auto param = symbols.lookup<ParamOp>(name), cut = ofCopy.lookup<ParamOp>(name);
    if (!cut || !isSame(cut.getTensorType(), param))
      return param.emitError() << "cannot export " << param.getSymName() << ": the model also reads it in another form";
    param.setStorageAttr(cut.getStorage());
  }
  WalkResult walked = module.walk([](Operation *op) {
    bool isGraph = isa<func::FuncOp, onnxir::YieldOp>(op);
    return isGraph && failed(dropValueTypes(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return success(!walked.wasInterrupted());
}

} // namespace hone
