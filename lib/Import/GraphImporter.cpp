// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names, initializers, nodes and subgraphs.

#include "GraphImporter.h"
#include "ImportTensor.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/Gradient.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Dialect/Onnx/PackedElements.h"
#include "hone/io/file.h"

#include "llvm/ADT/ScopeExit.h"
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

Location GraphImporter::getLocation(StringRef name, StringRef key, StringAttr text) {
  if (location)
    return *location;
  auto file = FileLineColLoc::get(builder.getContext(), llvm::sys::path::filename(path), 0, 0);
  if (text)
    return onnxir::describe(builder.getStringAttr(name), file, key, text);
  return NameLoc::get(builder.getStringAttr(name), file);
}

Location GraphImporter::getLocation(const GraphProto &graph) {
  auto description = descriptions ? descriptions->find(&graph) : Descriptions::const_iterator();
  if (!descriptions || description == descriptions->end())
    return getLocation(graph.name());
  return getLocation(graph.name(), onnxir::kGraphText, onnxir::printMessage(description->second, builder.getContext()));
}

/// What operands, operation and attributes do not say of a node, above all the names of its outputs.
static NodeProto describeNode(const NodeProto &node) {
  NodeProto description;
  if (node.has_name())
    description.set_name(node.name());
  *description.mutable_output() = node.output();
  if (node.has_doc_string())
    description.set_doc_string(node.doc_string());
  *description.mutable_metadata_props() = node.metadata_props();
  *description.mutable_device_configurations() = node.device_configurations();
  for (const AttributeProto &attribute : node.attribute()) {
    AttributeProto rest;
    if (attribute.has_doc_string())
      rest.set_doc_string(attribute.doc_string());
    if (attribute.has_t() && describeTensor(attribute.t()).ByteSizeLong() > 0)
      *rest.mutable_t() = describeTensor(attribute.t());
    if (rest.ByteSizeLong() == 0)
      continue;
    rest.set_name(attribute.name());
    *description.add_attribute() = std::move(rest);
  }
  return description;
}

Location GraphImporter::getLocation(const NodeProto &node) {
  std::string output = node.output_size() ? node.output(0) : std::string();
  std::string name = node.name().empty() ? node.op_type() + "(" + output + ")" : node.name();
  if (!descriptions)
    return getLocation(name);
  return getLocation(name, onnxir::kNodeText, onnxir::printMessage(describeNode(node), builder.getContext()));
}

Location GraphImporter::getLocation(const TensorProto &tensor) {
  if (!descriptions)
    return getLocation(tensor.name());
  return getLocation(tensor.name(), onnxir::kTensorText,
                     onnxir::printMessage(describeTensor(tensor), builder.getContext()));
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

namespace {

/// Where the bytes of a tensor lie, and how the file says that.
struct ExternalPlace {
  std::string file, offsetText = "0", lengthText = "none";
  std::optional<int64_t> offset = 0, length;
};

} // namespace

static ExternalPlace getExternalPlace(const TensorProto &tensor, StringRef model) {
  ExternalPlace place;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      place.file = entry.value();
    else if (entry.key() == "offset")
      place.offset = parseCount(place.offsetText = entry.value());
    else if (entry.key() == "length")
      place.length = parseCount(place.lengthText = entry.value()).value_or(-1);
  }
  SmallString<128> full(llvm::sys::path::parent_path(model));
  llvm::sys::path::append(full, place.file);
  place.file = full.str().str();
  return place;
}

/// A reference into the folder of the model; the checker has refused absolute paths and those that leave the folder.
/// Packed elements are read, since they are stored otherwise here.
Attribute GraphImporter::importExternal(const TensorProto &tensor, RankedTensorType type, Location loc) {
  ExternalPlace place = getExternalPlace(tensor, path);
  std::optional<int64_t> bytes = getFileBytes(type, /*raw=*/true);
  if (StringRef(place.file).contains('\0')) // what is opened would be another file than was checked
    return emitError(loc) << "expected the file of tensor '" << tensor.name() << "' to have a name without NUL",
           Attribute();
  auto file = io::MappedFile::open(place.file);
  if (!file.ok())
    return emitError(loc) << "cannot read external data of tensor '" << tensor.name()
                          << "': " << std::string(file.status().message()),
           Attribute();
  uint64_t size = file->size();
  if (!bytes || !place.offset || place.length.value_or(*bytes) != *bytes)
    return emitError(loc) << "expected external data of tensor '" << tensor.name() << "' of type " << type << " to be "
                          << (bytes ? std::to_string(*bytes) : "fewer than 2^63")
                          << " bytes at a non-negative offset, but got offset '" << place.offsetText << "' and length '"
                          << place.lengthText << "'",
           Attribute();
  if (static_cast<uint64_t>(*place.offset) > size || size - *place.offset < static_cast<uint64_t>(*bytes))
    return emitError(loc) << "expected '" << place.file << "' to hold " << *bytes << " bytes of tensor '"
                          << tensor.name() << "' at offset " << *place.offset << ", but it ends at " << size,
           Attribute();
  if (!onnxir::getPackedBits(type.getElementType()))
    return ExternalAttr::get(builder.getContext(), place.file, *place.offset, *bytes);
  return importPacked(type, StringRef(file->text().data() + *place.offset, *bytes), tensor);
}

/// Two scopes may use one name, and functions have theirs; a symbol is unique. Its location keeps the name.
std::string GraphImporter::makeSymbol(StringRef name) {
  std::string symbol = name.str();
  for (unsigned &uses = parameterNames[name]; !symbols.insert(symbol).second;)
    symbol = (name + "#" + Twine(++uses)).str();
  return symbol;
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
  std::string symbol = makeSymbol(name);
  ParamOp::create(parameters, loc, symbol, type, storage);
  scopes.back()[name] = GetParamOp::create(builder, loc, type, symbol);
  return success();
}

LogicalResult GraphImporter::importInitializers(const GraphProto &graph) {
  for (const TensorProto &tensor : graph.initializer())
    if (failed(importInitializer(tensor, tensor.name(), getLocation(tensor))))
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

/// Gradient names what it is of by attributes: y becomes its last operand, and its inputs have to be what xs and zs name.
LogicalResult GraphImporter::bindGradient(const NodeProto &node, Location loc, SmallVectorImpl<Value> &operands) {
  SmallVector<std::string> names;
  std::string y;
  for (const AttributeProto &attribute : node.attribute()) {
    if (attribute.name() == "xs")
      names.insert(names.begin(), attribute.strings().begin(), attribute.strings().end());
    else if (attribute.name() == "zs")
      names.append(attribute.strings().begin(), attribute.strings().end());
    else if (attribute.name() == "y")
      y = attribute.s();
  }
  if (names.size() != operands.size())
    return emitError(loc) << "expected an input for each name in xs and zs, " << names.size() << ", but got "
                          << operands.size();
  for (auto [name, operand] : llvm::zip_equal(names, operands))
    if (lookUp(name) != operand)
      return emitError(loc) << "unsupported gradient where '" << name
                            << "' has another value; supported: inputs that are what xs and zs name";
  Value of = lookUp(y);
  if (!of)
    return emitError(loc) << "expected y '" << y << "' to be made by an earlier node, but it is not";
  operands.push_back(of);
  return success();
}

LogicalResult GraphImporter::importNode(const NodeProto &node) {
  Location loc = getLocation(node);
  if (const TensorProto *tensor = getConstantTensor(node))
    return importInitializer(*tensor, node.output(0), loc);
  FailureOr<SmallVector<Value>> inputs = lookUpInputs(node, loc);
  if (failed(inputs))
    return failure();
  std::string name = onnxir::getOperationName(node.domain(), node.op_type());
  if (name == onnxir::kGradientName && failed(bindGradient(node, loc, *inputs)))
    return failure();
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
  onnxir::YieldOp::create(builder, getLocation(graph), values);
  return success();
}

} // namespace hone
