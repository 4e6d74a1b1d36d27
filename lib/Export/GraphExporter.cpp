// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names, nodes and subgraphs.

#include "GraphExporter.h"

#include "ExportTensor.h"
#include "hone/Dialect/Onnx/Gradient.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

namespace hone {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

bool GraphExporter::isTaken(StringRef name) const {
  return scopes.back().outputs.contains(name) ||
         llvm::any_of(scopes, [&](const Scope &scope) { return scope.values.contains(name); });
}

std::string GraphExporter::getFreshName(StringRef wish) {
  std::string name = wish.str();
  while (name.empty() || isTaken(name))
    name = ((wish.empty() ? StringRef("value") : wish) + "_" + Twine(nextValue++)).str();
  return name;
}

void GraphExporter::setName(Value value, StringRef name) {
  names[value] = name.str();
  scopes.back().values[name] = value.getType();
}

std::string GraphExporter::getName(Value value) {
  auto get = value.getDefiningOp<GetParamOp>();
  if (auto name = get ? parameterNames.find(get.getName()) : parameterNames.end();
      get && !isConstantNode(get) && name != parameterNames.end())
    return name->second;
  return names.lookup(value);
}

static StringRef getNodeName(Operation *op) {
  auto name = dyn_cast<NameLoc>(op->getLoc());
  return name ? name.getName().getValue() : StringRef();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static LogicalResult exportAttribute(Location loc, Attribute value, AttributeProto &proto) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    proto.set_type(AttributeProto::INT);
    proto.set_i(integer.getInt());
  } else if (auto real = dyn_cast<FloatAttr>(value)) {
    proto.set_type(AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(real.getValueAsDouble()));
  } else if (auto string = dyn_cast<StringAttr>(value)) {
    proto.set_type(AttributeProto::STRING);
    proto.set_s(string.str());
  } else if (auto integers = dyn_cast<DenseI64ArrayAttr>(value)) {
    proto.set_type(AttributeProto::INTS);
    proto.mutable_ints()->Add(integers.asArrayRef().begin(), integers.asArrayRef().end());
  } else if (auto reals = dyn_cast<DenseF32ArrayAttr>(value)) {
    proto.set_type(AttributeProto::FLOATS);
    proto.mutable_floats()->Add(reals.asArrayRef().begin(), reals.asArrayRef().end());
  } else if (auto strings = dyn_cast<ArrayAttr>(value); strings && llvm::all_of(strings, llvm::IsaPred<StringAttr>)) {
    proto.set_type(AttributeProto::STRINGS);
    for (StringAttr element : strings.getAsRange<StringAttr>())
      proto.add_strings(element.str());
  } else if (auto tensor = dyn_cast<ElementsAttr>(value)) {
    proto.set_type(AttributeProto::TENSOR);
    return exportTensor(tensor, *proto.mutable_t(), loc);
  } else if (auto type = dyn_cast<TypeAttr>(value)) {
    proto.set_type(AttributeProto::TYPE_PROTO);
    return exportType(type.getValue(), {}, *proto.mutable_tp(), loc);
  } else {
    return emitError(loc) << "cannot export attribute '" << proto.name() << "' with the value " << value;
  }
  return success();
}

/// What the file said of an attribute beside its value goes on from there.
LogicalResult GraphExporter::exportAttributes(Operation *op, NodeProto &node) {
  llvm::StringMap<AttributeProto> said;
  for (AttributeProto &attribute : *node.mutable_attribute())
    said[attribute.name()] = std::move(attribute);
  node.clear_attribute();
  for (NamedAttribute attr : op->getAttrs()) {
    if (attr.getName() == onnxir::kRegionsAttr)
      continue;
    AttributeProto *proto = node.add_attribute();
    *proto = said.lookup(attr.getName());
    proto->set_name(attr.getName().str());
    if (failed(exportAttribute(op->getLoc(), attr.getValue(), *proto)))
      return failure();
  }
  return success();
}

LogicalResult GraphExporter::exportRegions(Operation *op, NodeProto &node) {
  auto regionNames = op->getAttrOfType<ArrayAttr>(onnxir::kRegionsAttr);
  if (op->getNumRegions() != (regionNames ? regionNames.size() : 0))
    return op->emitError() << "expected attribute '" << onnxir::kRegionsAttr << "' to name " << op->getNumRegions()
                           << " subgraphs";
  for (auto [i, region] : llvm::enumerate(op->getRegions())) {
    auto name = dyn_cast<StringAttr>(regionNames[i]);
    if (!name || region.empty() || !isa<onnxir::YieldOp>(region.front().back()))
      return op->emitError() << "expected subgraph " << i << " to have a name and to end in onnx.Yield";
    AttributeProto *proto = node.add_attribute();
    proto->set_name(name.str());
    proto->set_type(AttributeProto::GRAPH);
    proto->mutable_g()->set_name(proto->name());
    if (failed(exportSubgraph(region, *proto->mutable_g())))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// onnxruntime knows this operator in the default domain only, where its builders write it.
static bool isWrittenWithoutDomain(StringRef opType) { return opType == "SimplifiedLayerNormalization"; }

/// What the file said of the node; without a file, the location's name.
static LogicalResult describeNode(Operation *op, NodeProto &node) {
  StringAttr text = onnxir::getDescription(op->getLoc(), onnxir::kNodeText);
  if (text)
    return onnxir::parseMessage(text, node, op->getLoc());
  if (StringRef name = getNodeName(op); !name.empty())
    node.set_name(name.str());
  return success();
}

LogicalResult GraphExporter::exportOperation(Operation *op, GraphProto &graph) {
  NodeProto *node = graph.add_node();
  if (failed(describeNode(op, *node)))
    return failure();
  NodeProto said;
  said.mutable_output()->Swap(node->mutable_output());
  node->set_op_type(onnxir::getOpType(op).str());
  std::string domain = onnxir::getDomain(op).str();
  if (!domain.empty() && !isWrittenWithoutDomain(node->op_type())) {
    node->set_domain(domain);
    domains.insert(domain);
  }
  // The last operand of Gradient is what its attribute y names.
  for (Value operand : op->getOperands().drop_back(op->getName().getStringRef() == onnxir::kGradientName))
    node->add_input(getName(operand));
  if (failed(exportAttributes(op, *node)) || failed(exportRegions(op, *node)))
    return failure();
  // After the subgraphs, which may have names in common with the results.
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    StringRef wish = static_cast<int>(i) < said.output_size() ? said.output(i) : StringRef();
    if (!onnxir::isAbsent(result))
      setName(result, names.contains(result) ? names.lookup(result) : getFreshName(wish));
    node->add_output(names.lookup(result));
  }
  return success();
}

LogicalResult GraphExporter::exportConstantNode(GetParamOp get, GraphProto &graph) {
  auto param = symbols.lookup<ParamOp>(get.getName());
  NodeProto *node = graph.add_node();
  if (failed(describeNode(get, *node)))
    return failure();
  node->set_op_type("Constant");
  Value result = get.getResult();
  StringRef wish = node->output_size() ? StringRef(node->output(0)) : get.getName();
  setName(result, names.contains(result) ? names.lookup(result) : getFreshName(wish));
  node->clear_output();
  node->add_output(names.lookup(result));
  if (node->attribute_size() != 1)
    node->clear_attribute();
  AttributeProto *value = node->attribute_size() ? node->mutable_attribute(0) : node->add_attribute();
  value->set_name("value");
  return exportAttribute(get.getLoc(), param.getStorage(), *value);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

static void exportIdentity(const std::string &from, const std::string &to, GraphProto &graph) {
  NodeProto *node = graph.add_node();
  node->set_op_type("Identity");
  node->add_input(from);
  node->add_output(to);
}

/// Whether `value` can take any name: an operation of the graph makes it, and it has none.
static bool isNode(Value value, Block &block) {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == &block && onnxir::isOnnxOp(op) && !isa<onnxir::NoValueOp>(op);
}

LogicalResult GraphExporter::nameOutputs(Block &block, Infos &outputs, Copies &copies) {
  bool isMain = scopes.size() == 1;
  for (auto [value, output] : llvm::zip(block.getTerminator()->getOperands(), outputs)) {
    if (getName(value) == output.name() && !output.name().empty() && scopes.back().values.contains(output.name()))
      continue;
    if (isMain && isTaken(output.name()))
      return block.getParentOp()->emitError() << "expected the names of inputs, outputs and parameters to differ, but '"
                                              << output.name() << "' is that of two";
    output.set_name(getFreshName(output.name()));
    auto get = value.getDefiningOp<GetParamOp>();
    bool isConstant = get && get->getBlock() == &block && isConstantNode(get);
    scopes.back().outputs.insert(output.name());
    if (!names.contains(value) && (isConstant || isNode(value, block)))
      names[value] = output.name();
    else
      copies.emplace_back(value, output.name());
  }
  return success();
}

/// A tensor type without its shape; other types as they are.
static ::onnx::TypeProto getElementType(::onnx::TypeProto type) {
  if (type.has_tensor_type())
    type.mutable_tensor_type()->clear_shape();
  return type;
}

/// Says of the graph's own values what the file said. Files contradict themselves about shapes, and are read all the same.
LogicalResult GraphExporter::exportTypes(const GraphProto &said, GraphProto &graph, Location loc) {
  for (const auto &info : said.value_info()) {
    auto type = scopes.back().values.find(info.name());
    if (type == scopes.back().values.end())
      continue;
    ::onnx::TypeProto known;
    if (failed(exportType(type->second, {}, known, loc)))
      return failure();
    if (agrees(getElementType(info.type()), known))
      *graph.add_value_info() = info;
  }
  return success();
}

/// `graph` has its inputs and outputs, and `block` arguments and results that fit them.
LogicalResult GraphExporter::exportGraph(Block &block, const GraphProto &said, GraphProto &graph) {
  for (auto [argument, input] : llvm::zip(block.getArguments(), graph.input()))
    setName(argument, input.name());
  Copies copies;
  if (failed(exportInitializers(block, graph)) || failed(nameOutputs(block, *graph.mutable_output(), copies)))
    return failure();
  for (Operation &op : block.without_terminator()) {
    auto get = dyn_cast<GetParamOp>(op);
    bool isInitializer = get ? !isConstantNode(get) : isSmallInitializer(&op);
    if (isa<onnxir::NoValueOp>(op) || isInitializer)
      continue;
    if (failed(get ? exportConstantNode(get, graph) : exportOperation(&op, graph)))
      return failure();
  }
  for (auto &[value, output] : copies)
    exportIdentity(getName(value), output, graph);
  if (said.has_name())
    graph.set_name(said.name());
  if (said.has_doc_string())
    graph.set_doc_string(said.doc_string());
  *graph.mutable_metadata_props() = said.metadata_props();
  *graph.mutable_quantization_annotation() = said.quantization_annotation();
  return exportTypes(said, graph, block.getParentOp()->getLoc());
}

/// What the file said of a value, where it agrees with what is known of its type.
static LogicalResult describeValue(Type type, ArrayAttr dims, Location loc, const std::string &name,
                                   const ::onnx::ValueInfoProto *said, ::onnx::ValueInfoProto &info) {
  ::onnx::TypeProto known;
  if (failed(exportType(type, dims, known, loc)))
    return failure();
  if (said)
    info = *said;
  info.set_name(name);
  if (!said || !agrees(said->type(), known))
    *info.mutable_type() = known;
  return success();
}

LogicalResult GraphExporter::exportSubgraph(Region &region, GraphProto &graph) {
  Block &block = region.front();
  Operation *yield = block.getTerminator();
  GraphProto said;
  if (StringAttr text = onnxir::getDescription(yield->getLoc(), onnxir::kGraphText))
    if (failed(onnxir::parseMessage(text, said, yield->getLoc())))
      return failure();
  scopes.emplace_back();
  llvm::scope_exit leave([&] { scopes.pop_back(); });
  auto add = [&](Value value, int i, const Infos &saidInfos, Infos &infos, StringRef otherwise) {
    const ::onnx::ValueInfoProto *info = i < saidInfos.size() ? &saidInfos[i] : nullptr;
    std::string wish = info && !info->name().empty() ? info->name() : otherwise.str();
    return describeValue(value.getType(), {}, value.getLoc(), wish, info, *infos.Add());
  };
  for (BlockArgument argument : block.getArguments()) {
    if (failed(add(argument, argument.getArgNumber(), said.input(), *graph.mutable_input(), "input")))
      return failure();
    auto *input = graph.mutable_input(argument.getArgNumber());
    input->set_name(getFreshName(input->name()));
    setName(argument, input->name());
  }
  for (auto [i, value] : llvm::enumerate(yield->getOperands()))
    if (failed(add(value, i, said.output(), *graph.mutable_output(), "output")))
      return failure();
  return exportGraph(block, said, graph);
}

//===----------------------------------------------------------------------===//
// The main graph
//===----------------------------------------------------------------------===//

/// `infos` hold what the file said, and get what the function says; names are the function's.
static LogicalResult describeInterface(TypeRange types, llvm::function_ref<DictionaryAttr(unsigned)> getAttrs,
                                       StringRef otherwise, Location loc,
                                       ::google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto> &infos) {
  llvm::StringMap<::onnx::ValueInfoProto> said;
  for (auto &info : infos)
    said[info.name()] = std::move(info);
  infos.Clear();
  for (auto [i, type] : llvm::enumerate(types)) {
    DictionaryAttr attrs = getAttrs(i);
    auto given = attrs ? attrs.getAs<StringAttr>(onnxir::kNameAttr) : StringAttr();
    std::string name = given ? given.str() : (otherwise + Twine(i)).str();
    auto dims = attrs ? attrs.getAs<ArrayAttr>(onnxir::kDimsAttr) : ArrayAttr();
    auto found = said.find(name);
    if (failed(describeValue(type, dims, loc, name, found == said.end() ? nullptr : &found->second, *infos.Add())))
      return failure();
  }
  return success();
}

/// Puts the inputs that only give initializers a type, or let callers replace them, back where they were.
static void addInitializedInputs(const GraphProto &said, GraphProto &graph) {
  llvm::StringSet<> initializers;
  for (const auto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  auto inputs = std::move(*graph.mutable_input());
  graph.clear_input();
  int next = 0;
  for (const auto &info : said.input()) {
    if (next < inputs.size() && inputs[next].name() == info.name())
      *graph.add_input() = inputs[next++];
    else if (initializers.contains(info.name()))
      *graph.add_input() = info;
  }
  for (; next < inputs.size(); ++next)
    *graph.add_input() = inputs[next];
}

LogicalResult GraphExporter::exportMain(func::FuncOp main, GraphProto &graph) {
  GraphProto said;
  if (StringAttr text = onnxir::getDescription(main.getLoc(), onnxir::kGraphText))
    if (failed(onnxir::parseMessage(text, said, main.getLoc())))
      return failure();
  StringRef name = getNodeName(main);
  graph.set_name(name.empty() ? "main" : name.str());
  *graph.mutable_input() = said.input();
  *graph.mutable_output() = said.output();
  auto argAttrs = [&](unsigned i) { return main.getArgAttrDict(i); };
  auto resultAttrs = [&](unsigned i) { return main.getResultAttrDict(i); };
  if (failed(describeInterface(main.getArgumentTypes(), argAttrs, "input", main.getLoc(), *graph.mutable_input())) ||
      failed(describeInterface(main.getResultTypes(), resultAttrs, "output", main.getLoc(), *graph.mutable_output())))
    return failure();
  Block &block = main.getBody().front();
  findHomes(block);
  scopes.emplace_back();
  if (failed(exportGraph(block, said, graph)))
    return failure();
  addInitializedInputs(said, graph);
  return success();
}

} // namespace hone
