// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Imports whole files, and graphs in the place of an operation.

#include "GraphImporter.h"
#include "ImportTensor.h"
#include "OnnxFile.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using ::onnx::GraphProto;
using ::onnx::TensorProto;

namespace hone {

//===----------------------------------------------------------------------===//
// The main graph
//===----------------------------------------------------------------------===//

static DictionaryAttr describe(const ::onnx::ValueInfoProto &info, Builder &builder) {
  NamedAttrList attrs;
  attrs.set(onnxir::kNameAttr, builder.getStringAttr(info.name()));
  if (ArrayAttr names = importDimensionNames(info.type(), builder.getContext()))
    attrs.set(onnxir::kDimsAttr, names);
  return attrs.getDictionary(builder.getContext());
}

LogicalResult GraphImporter::importMain() {
  const GraphProto &graph = model->graph();
  Location loc = getLocation(graph);
  SmallVector<Type> inputTypes;
  SmallVector<DictionaryAttr> inputAttrs, outputAttrs;
  SmallVector<StringRef> inputNames;
  llvm::StringSet<> initializers;
  for (const TensorProto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  for (const auto &input : graph.input()) {
    if (initializers.contains(input.name())) // a default that callers may override, until IR version 4: a constant here
      continue;
    inputNames.push_back(input.name());
    inputTypes.push_back(importInputType(input.type(), builder.getContext()));
    inputAttrs.push_back(describe(input, builder));
  }
  builder.setInsertionPointToEnd(module.getBody());
  auto main = func::FuncOp::create(builder, loc, "main", builder.getFunctionType(inputTypes, {}));
  Block *entry = main.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  scopes.emplace_back();
  collectTypes(graph);
  for (auto [name, argument] : llvm::zip(inputNames, entry->getArguments()))
    scopes.back()[name] = argument;
  SmallVector<Value> outputs;
  if (failed(importInitializers(graph)) || failed(importNodes(graph)) || failed(yieldOutputs(graph, loc, outputs)))
    return failure();
  func::ReturnOp::create(builder, loc, outputs);
  for (const auto &output : graph.output())
    outputAttrs.push_back(describe(output, builder));
  main.setType(builder.getFunctionType(inputTypes, ValueRange(outputs).getTypes()));
  main.setAllArgAttrs(inputAttrs);
  main.setAllResultAttrs(outputAttrs);
  return success();
}

FailureOr<SmallVector<Value>> GraphImporter::importAt(OpBuilder &where, Location loc, ValueRange inputs) {
  const GraphProto &graph = model->graph();
  location = loc;
  builder.restoreInsertionPoint(where.saveInsertionPoint());
  for (auto param : module.getOps<ParamOp>())
    symbols.insert(param.getSymName());
  scopes.emplace_back();
  collectTypes(graph);
  for (auto [input, value] : llvm::zip(graph.input(), inputs))
    scopes.back()[input.name()] = value;
  SmallVector<Value> outputs;
  if (failed(importInitializers(graph)) || failed(importNodes(graph)) || failed(yieldOutputs(graph, loc, outputs)))
    return failure();
  return outputs;
}

/// What the file says of the model beside its graph, opsets and version; null where that is nothing.
static StringAttr describeModel(const ::onnx::ModelProto &model, MLIRContext *context) {
  ::onnx::ModelProto description;
  if (model.has_producer_name())
    description.set_producer_name(model.producer_name());
  if (model.has_producer_version())
    description.set_producer_version(model.producer_version());
  if (model.has_domain())
    description.set_domain(model.domain());
  if (model.has_model_version())
    description.set_model_version(model.model_version());
  if (model.has_doc_string())
    description.set_doc_string(model.doc_string());
  *description.mutable_metadata_props() = model.metadata_props();
  *description.mutable_training_info() = model.training_info();
  *description.mutable_configuration() = model.configuration();
  return onnxir::printMessage(description, context);
}

static void describeModule(ModuleOp module, const OnnxFile &file) {
  Builder builder(module.getContext());
  NamedAttrList opsets;
  for (const auto &opset : file.opsets)
    opsets.set(opset.domain().empty() ? StringRef(onnxir::kDefaultDomain) : StringRef(opset.domain()),
               builder.getI64IntegerAttr(opset.version()));
  module->setAttr(onnxir::kIrVersionAttr, builder.getI64IntegerAttr(file.model->ir_version()));
  module->setAttr(onnxir::kOpsetsAttr, opsets.getDictionary(builder.getContext()));
  module->setAttr(onnxir::kModelAttr, describeModel(*file.model, builder.getContext()));
}

OwningOpRef<ModuleOp> importOnnx(StringRef path, MLIRContext *context, const Limits &limits, int64_t leastOpset) {
  context->loadDialect<func::FuncDialect, HoneDialect>();
  context->getOrLoadDialect(onnxir::kDialectName);
  auto loc = FileLineColLoc::get(context, llvm::sys::path::filename(path), 0, 0);
  OnnxFile file = readOnnxFile(path, limits, leastOpset, loc);
  if (!file.model)
    return nullptr;
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  describeModule(*module, file);
  GraphImporter importer(file.model, path, *module, &file.descriptions);
  if (failed(importer.importMain()) || failed(verify(*module)))
    return nullptr;
  return module;
}

} // namespace hone
