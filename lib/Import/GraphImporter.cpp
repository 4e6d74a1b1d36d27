// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names, initializers, nodes and subgraphs.

#include "GraphImporter.h"
#include "ImportTensor.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace hone {

//===----------------------------------------------------------------------===//
// Names and types
//===----------------------------------------------------------------------===//

Location GraphImporter::getLocation(StringRef name) {
  if (location)
    return *location;
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

Value GraphImporter::getNoValue(Location loc) { return onnxir::NoValueOp::create(builder, loc, builder.getNoneType()); }

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
  onnxir::YieldOp::create(builder, loc, values);
  return success();
}

} // namespace hone
