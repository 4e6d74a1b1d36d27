// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the graph of a checked ONNX model into operations of the `onnx` dialect, one node an operation, subgraphs as
// regions, initializers as parameters.

#include "ImportTensor.h"
#include "OnnxFile.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace hone {

namespace {

class GraphImporter {
public:
  GraphImporter(std::shared_ptr<const ::onnx::ModelProto> model, StringRef path, ModuleOp module)
      : model(std::move(model)), path(path), module(module), builder(module.getContext()),
        parameters(OpBuilder::atBlockBegin(module.getBody())) {}

  LogicalResult importMain();

private:
  using Scope = llvm::StringMap<Value>;

  LogicalResult importInitializers(const GraphProto &graph);
  LogicalResult importInitializer(const TensorProto &tensor, StringRef name, Location loc);
  Attribute importExternal(const TensorProto &tensor, RankedTensorType type, Location loc);
  LogicalResult importNodes(const GraphProto &graph);
  LogicalResult importNode(const NodeProto &node);
  LogicalResult importAttributes(const NodeProto &node, OperationState &state,
                                 SmallVectorImpl<const AttributeProto *> &subgraphs);
  Attribute importAttribute(const AttributeProto &attribute, Location loc);
  LogicalResult importSubgraph(const GraphProto &graph, Region &region, Location loc);
  LogicalResult yieldOutputs(const GraphProto &graph, Location loc, SmallVectorImpl<Value> &values);

  FailureOr<SmallVector<Value>> lookUpInputs(const NodeProto &node, Location loc);
  Value lookUp(StringRef name);
  Type getType(StringRef name);
  Location getLocation(const NodeProto &node);
  Location getLocation(StringRef name);
  Value getNoValue(Location loc);
  void collectTypes(const GraphProto &graph);

  std::shared_ptr<const ::onnx::ModelProto> model;
  StringRef path;
  ModuleOp module;
  OpBuilder builder;
  /// Where the next parameter goes: before the function, in the order of the file.
  OpBuilder parameters;
  SmallVector<Scope> scopes;
  /// Inferred types of the graphs around the current node, innermost last.
  SmallVector<llvm::StringMap<const ::onnx::TypeProto *>> types;
  llvm::StringMap<unsigned> parameterNames;
};

} // namespace

//===----------------------------------------------------------------------===//
// Names and types
//===----------------------------------------------------------------------===//

Location GraphImporter::getLocation(StringRef name) {
  auto file = FileLineColLoc::get(builder.getContext(), llvm::sys::path::filename(path), 0, 0);
  return NameLoc::get(builder.getStringAttr(name), file);
}

Location GraphImporter::getLocation(const NodeProto &node) {
  if (!node.name().empty())
    return getLocation(node.name());
  std::string output = node.output_size() ? node.output(0) : std::string();
  return getLocation(node.op_type() + "(" + output + ")");
}

void GraphImporter::collectTypes(const GraphProto &graph) {
  auto &names = types.emplace_back();
  for (const auto &info : graph.value_info())
    names[info.name()] = &info.type();
  for (const auto &info : graph.output())
    names[info.name()] = &info.type();
}

Type GraphImporter::getType(StringRef name) {
  for (auto &scope : llvm::reverse(types))
    if (auto it = scope.find(name); it != scope.end())
      return importType(*it->second, builder.getContext());
  return onnxir::getUnknownType(builder.getContext());
}

Value GraphImporter::lookUp(StringRef name) {
  for (Scope &scope : llvm::reverse(scopes))
    if (auto it = scope.find(name); it != scope.end())
      return it->second;
  return {};
}

Value GraphImporter::getNoValue(Location loc) {
  OperationState state(loc, onnxir::kNoValueName);
  state.addTypes(builder.getNoneType());
  return builder.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// Initializers
//===----------------------------------------------------------------------===//

static Value createConstant(OpBuilder &builder, Location loc, ElementsAttr value) {
  OperationState state(loc, onnxir::getOperationName("", "Constant"));
  state.addAttribute("value", value);
  state.addTypes(value.getType());
  return builder.create(state)->getResult(0);
}

static std::optional<int64_t> parseCount(StringRef text) {
  int64_t value = 0;
  if (text.getAsInteger(10, value) || value < 0)
    return std::nullopt;
  return value;
}

/// A reference into the folder of the model; the checker has refused absolute paths and those that leave the folder.
Attribute GraphImporter::importExternal(const TensorProto &tensor, RankedTensorType type, Location loc) {
  std::string file;
  std::optional<int64_t> offset = 0, length;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      file = entry.value();
    else if (entry.key() == "offset")
      offset = parseCount(entry.value());
    else if (entry.key() == "length")
      length = parseCount(entry.value());
  }
  Type element = type.getElementType();
  int64_t width = isa<ComplexType>(element) ? 0 : element.getIntOrFloatBitWidth();
  int64_t bytes = width < 8 && width != 1 ? llvm::divideCeil(type.getNumElements() * width, 8)
                                          : type.getNumElements() * llvm::divideCeil(width, 8);
  SmallString<128> full(llvm::sys::path::parent_path(path));
  llvm::sys::path::append(full, file);
  uint64_t size = 0;
  if (std::error_code error = llvm::sys::fs::file_size(full, size))
    return emitError(loc) << "cannot read external data '" << full << "' of tensor '" << tensor.name()
                          << "': " << error.message(),
           Attribute();
  if (!offset || (length && *length != bytes))
    return emitError(loc) << "expected external data of tensor '" << tensor.name() << "' of type " << type << " to be "
                          << bytes << " bytes at a non-negative offset, but the file says otherwise",
           Attribute();
  if (static_cast<uint64_t>(*offset) > size || size - *offset < static_cast<uint64_t>(bytes))
    return emitError(loc) << "expected '" << full << "' to hold " << bytes << " bytes of tensor '" << tensor.name()
                          << "' at offset " << *offset << ", but it ends at " << size,
           Attribute();
  return ExternalAttr::get(builder.getContext(), full.str(), *offset, bytes);
}

LogicalResult GraphImporter::importInitializer(const TensorProto &tensor, StringRef name, Location loc) {
  RankedTensorType type = importTensorType(tensor, loc);
  if (!type)
    return failure();
  bool external = tensor.data_location() == TensorProto::EXTERNAL;
  Attribute storage = external ? importExternal(tensor, type, loc) : Attribute(importTensor(tensor, model, loc));
  if (!storage)
    return failure();
  if (auto value = dyn_cast<DenseElementsAttr>(storage)) {
    scopes.back()[name] = createConstant(builder, loc, value);
    return success();
  }
  // Two scopes may use one name; a symbol is unique.
  unsigned &uses = parameterNames[name];
  std::string symbol = name.str() + (uses ? "#" + std::to_string(uses) : std::string());
  ++uses;
  ParamOp::create(parameters, loc, symbol, type, storage);
  scopes.back()[name] = GetParamOp::create(builder, loc, type, symbol);
  return success();
}

LogicalResult GraphImporter::importInitializers(const GraphProto &graph) {
  if (graph.sparse_initializer_size() > 0)
    return emitError(getLocation(graph.sparse_initializer(0).values().name()))
           << "unsupported sparse initializer; supported: dense initializers";
  for (const TensorProto &tensor : graph.initializer())
    if (failed(importInitializer(tensor, tensor.name(), getLocation(tensor.name()))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Attribute GraphImporter::importAttribute(const AttributeProto &attribute, Location loc) {
  switch (attribute.type()) {
  case AttributeProto::FLOAT:
    return builder.getF32FloatAttr(attribute.f());
  case AttributeProto::INT:
    return builder.getI64IntegerAttr(attribute.i());
  case AttributeProto::STRING:
    return builder.getStringAttr(attribute.s());
  case AttributeProto::FLOATS:
    return builder.getDenseF32ArrayAttr(SmallVector<float>(attribute.floats().begin(), attribute.floats().end()));
  case AttributeProto::INTS:
    return builder.getDenseI64ArrayAttr(SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
  case AttributeProto::STRINGS:
    return builder.getStrArrayAttr(SmallVector<StringRef>(attribute.strings().begin(), attribute.strings().end()));
  case AttributeProto::TENSOR:
    return importTensor(attribute.t(), model, loc);
  case AttributeProto::TYPE_PROTO:
    return TypeAttr::get(importType(attribute.tp(), builder.getContext()));
  default:
    emitError(loc) << "unsupported attribute '" << attribute.name() << "' of type "
                   << ::onnx::AttributeProto_AttributeType_Name(attribute.type());
    return {};
  }
}

LogicalResult GraphImporter::importAttributes(const NodeProto &node, OperationState &state,
                                              SmallVectorImpl<const AttributeProto *> &subgraphs) {
  SmallVector<Attribute> names;
  for (const AttributeProto &attribute : node.attribute()) {
    if (attribute.type() == AttributeProto::GRAPH) {
      subgraphs.push_back(&attribute);
      names.push_back(builder.getStringAttr(attribute.name()));
      continue;
    }
    Attribute value = importAttribute(attribute, state.location);
    if (!value)
      return failure();
    state.addAttribute(attribute.name(), value);
  }
  if (!names.empty())
    state.addAttribute(onnxir::kRegionsAttr, builder.getArrayAttr(names));
  for (size_t i = 0; i < subgraphs.size(); ++i)
    state.addRegion();
  return success();
}

FailureOr<SmallVector<Value>> GraphImporter::lookUpInputs(const NodeProto &node, Location loc) {
  SmallVector<Value> inputs;
  for (const std::string &name : node.input()) {
    Value value = name.empty() ? getNoValue(loc) : lookUp(name);
    if (!value)
      return emitError(loc) << "expected input '" << name << "' to be made by an earlier node, but it is not";
    inputs.push_back(value);
  }
  return inputs;
}

/// The tensor of a Constant node, which is an initializer by another name; null for every other node.
static const TensorProto *getConstantTensor(const NodeProto &node) {
  if (node.op_type() != "Constant" || !node.domain().empty() || node.attribute_size() != 1 || node.output_size() != 1)
    return nullptr;
  return node.attribute(0).has_t() ? &node.attribute(0).t() : nullptr;
}

LogicalResult GraphImporter::importNode(const NodeProto &node) {
  Location loc = getLocation(node);
  if (const TensorProto *tensor = getConstantTensor(node))
    return importInitializer(*tensor, node.output(0), loc);
  FailureOr<SmallVector<Value>> inputs = lookUpInputs(node, loc);
  if (failed(inputs))
    return failure();
  std::string name = onnxir::getOperationName(node.domain(), node.op_type());
  if (!RegisteredOperationName::lookup(name, builder.getContext()))
    return emitError(loc) << "unsupported operator '" << node.op_type() << "' of domain '" << node.domain() << "'";
  OperationState state(loc, name);
  state.addOperands(*inputs);
  SmallVector<const AttributeProto *> subgraphs;
  if (failed(importAttributes(node, state, subgraphs)))
    return failure();
  for (const std::string &output : node.output())
    state.addTypes(output.empty() ? Type(builder.getNoneType()) : getType(output));
  Operation *op = builder.create(state);
  for (auto [output, result] : llvm::zip(node.output(), op->getResults()))
    if (!output.empty())
      scopes.back()[output] = result;
  for (auto [attribute, region] : llvm::zip(subgraphs, op->getRegions()))
    if (failed(importSubgraph(attribute->g(), region, loc)))
      return failure();
  return success();
}

LogicalResult GraphImporter::importNodes(const GraphProto &graph) {
  for (const NodeProto &node : graph.node())
    if (failed(importNode(node)))
      return failure();
  return success();
}

LogicalResult GraphImporter::yieldOutputs(const GraphProto &graph, Location loc, SmallVectorImpl<Value> &values) {
  for (const auto &output : graph.output()) {
    Value value = lookUp(output.name());
    if (!value)
      return emitError(loc) << "expected output '" << output.name() << "' to be made by a node, but it is not";
    values.push_back(value);
  }
  return success();
}

LogicalResult GraphImporter::importSubgraph(const GraphProto &graph, Region &region, Location loc) {
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&region);
  scopes.emplace_back();
  collectTypes(graph);
  llvm::scope_exit leave([&] {
    scopes.pop_back();
    types.pop_back();
  });
  for (const auto &input : graph.input())
    scopes.back()[input.name()] = block->addArgument(importType(input.type(), builder.getContext()), loc);
  SmallVector<Value> values;
  if (failed(importInitializers(graph)) || failed(importNodes(graph)) || failed(yieldOutputs(graph, loc, values)))
    return failure();
  OperationState state(loc, onnxir::kYieldName);
  state.addOperands(values);
  builder.create(state);
  return success();
}

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

static bool isInitializer(const GraphProto &graph, StringRef name) {
  return llvm::any_of(graph.initializer(), [&](const TensorProto &tensor) { return tensor.name() == name; });
}

LogicalResult GraphImporter::importMain() {
  const GraphProto &graph = model->graph();
  Location loc = getLocation(graph.name());
  SmallVector<Type> inputTypes;
  SmallVector<DictionaryAttr> inputAttrs, outputAttrs;
  SmallVector<StringRef> inputNames;
  for (const auto &input : graph.input()) {
    if (isInitializer(graph, input.name())) // a default that callers may override, until IR version 4: a constant here
      continue;
    inputNames.push_back(input.name());
    inputTypes.push_back(importType(input.type(), builder.getContext()));
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

OwningOpRef<ModuleOp> importOnnx(StringRef path, MLIRContext *context) {
  context->loadDialect<func::FuncDialect, HoneDialect>();
  context->getOrLoadDialect(onnxir::kDialectName);
  auto loc = FileLineColLoc::get(context, llvm::sys::path::filename(path), 0, 0);
  std::shared_ptr<::onnx::ModelProto> model = readOnnxFile(path, loc);
  if (!model)
    return nullptr;
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  NamedAttrList opsets;
  Builder builder(context);
  for (const auto &opset : model->opset_import())
    opsets.set(opset.domain().empty() ? StringRef(onnxir::kDefaultDomain) : StringRef(opset.domain()),
               builder.getI64IntegerAttr(opset.version()));
  (*module)->setAttr(onnxir::kOpsetsAttr, opsets.getDictionary(context));
  GraphImporter importer(model, path, *module);
  if (failed(importer.importMain()) || failed(verify(*module)))
    return nullptr;
  return module;
}

} // namespace hone
