// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns a module of the onnx dialect into a ModelProto and writes it; the inverse of lib/Import/GraphImporter.cpp.

#include "hone/Export/Export.h"

#include "ExportTensor.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/io/file.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace hone {

namespace {

/// Models whose parameters pass this go to a data file: a protobuf ends at 2 GiB.
constexpr int64_t kMaxInline = int64_t(1) << 30;
/// Bytes copied at a time.
constexpr int64_t kPiece = int64_t(16) << 20;
/// What a module that was not imported is written as (ONNX 1.16, opset 21).
constexpr int64_t kDefaultIrVersion = 10;

class GraphExporter {
public:
  GraphExporter(ModuleOp module, StringRef dataName) : module(module), dataName(dataName) {}

  LogicalResult exportMain(::onnx::ModelProto &model);
  /// Writes what the model refers to in its data file; nothing if it has none.
  LogicalResult writeData(StringRef path);

private:
  LogicalResult exportParameters(GraphProto &graph);
  LogicalResult exportParameter(ParamOp param, bool external, TensorProto &tensor);
  LogicalResult exportInterface(func::FuncOp main, GraphProto &graph);
  LogicalResult exportBlock(Block &block, GraphProto &graph);
  LogicalResult exportOperation(Operation *op, GraphProto &graph);
  LogicalResult exportAttributes(Operation *op, NodeProto &node);
  LogicalResult exportAttribute(Location loc, Attribute value, AttributeProto &proto);
  LogicalResult exportRegions(Operation *op, NodeProto &node);
  LogicalResult exportSubgraph(Region &region, GraphProto &graph);
  void exportIdentity(Value value, StringRef name, GraphProto &graph);
  StringRef getName(Value value);
  std::string getFreshName(StringRef wish);

  ModuleOp module;
  StringRef dataName;
  llvm::DenseMap<Value, std::string> names;
  llvm::StringSet<> used;
  unsigned nextValue = 0;
  /// Parameters in the data file, with their offsets.
  SmallVector<std::pair<ParamOp, int64_t>> data;
  int64_t dataBytes = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string GraphExporter::getFreshName(StringRef wish) {
  std::string name = wish.str();
  while (!used.insert(name).second)
    name = (wish + "_" + Twine(nextValue++)).str();
  return name;
}

StringRef GraphExporter::getName(Value value) {
  std::string &name = names[value];
  if (auto get = value.getDefiningOp<GetParamOp>())
    name = get.getName().str();
  else if (name.empty() && !onnxir::isAbsent(value))
    name = getFreshName("value_" + std::to_string(nextValue++));
  return name;
}

static StringRef getNodeName(Operation *op) {
  auto name = dyn_cast<NameLoc>(op->getLoc());
  return name ? name.getName().getValue() : StringRef();
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

static int64_t getStoredBytes(RankedTensorType type) {
  Type element = type.getElementType();
  int64_t bits = isa<ComplexType>(element) ? 2 * cast<ComplexType>(element).getElementType().getIntOrFloatBitWidth()
                                           : element.getIntOrFloatBitWidth();
  return bits >= 8 || bits == 1 ? type.getNumElements() * llvm::divideCeil(bits, 8)
                                : llvm::divideCeil(type.getNumElements() * bits, 8);
}

LogicalResult GraphExporter::exportParameter(ParamOp param, bool external, TensorProto &tensor) {
  tensor.set_name(param.getSymName().str());
  RankedTensorType type = param.getTensorType();
  if (type.getEncoding())
    return param.emitError() << "cannot export a parameter stored as " << type.getEncoding();
  if (!external)
    return exportTensor(cast<ElementsAttr>(param.getStorage()), tensor, param.getLoc());
  if (failed(exportTensorType(type, tensor, param.getLoc())))
    return failure();
  int64_t bytes = getStoredBytes(type);
  tensor.set_data_location(TensorProto::EXTERNAL);
  auto add = [&](const char *key, std::string value) {
    auto *entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(std::move(value));
  };
  add("location", dataName.str());
  add("offset", std::to_string(dataBytes));
  add("length", std::to_string(bytes));
  data.emplace_back(param, dataBytes);
  dataBytes += bytes;
  return success();
}

LogicalResult GraphExporter::exportParameters(GraphProto &graph) {
  int64_t total = 0;
  for (auto param : module.getOps<ParamOp>())
    total += getStoredBytes(param.getTensorType());
  for (auto param : module.getOps<ParamOp>()) {
    bool external = total > kMaxInline || isa<ExternalAttr>(param.getStorage());
    if (failed(exportParameter(param, external, *graph.add_initializer())))
      return failure();
    used.insert(param.getSymName());
  }
  return success();
}

static LogicalResult fail(Location loc, const absl::Status &status) {
  return emitError(loc) << std::string(status.message());
}

static LogicalResult copyExternal(io::FileWriter &writer, ExternalAttr external, Location loc) {
  auto file = io::MappedFile::open(external.getFile().str());
  if (!file.ok())
    return fail(loc, file.status());
  uint64_t begin = external.getOffset(), end = begin + external.getBytes();
  if (end > file->size())
    return emitError(loc) << "expected '" << external.getFile() << "' to hold " << external.getBytes()
                          << " bytes at offset " << begin << ", but it ends at " << file->size();
  for (uint64_t at = begin; at < end; at += kPiece)
    if (absl::Status status = writer.write(file->text().substr(at, std::min<uint64_t>(kPiece, end - at))); !status.ok())
      return fail(loc, status);
  return success();
}

LogicalResult GraphExporter::writeData(StringRef path) {
  if (data.empty())
    return success();
  auto writer = io::FileWriter::create(path.str());
  if (!writer.ok())
    return fail(module.getLoc(), writer.status());
  for (auto [param, offset] : data) {
    if (auto external = dyn_cast<ExternalAttr>(param.getStorage())) {
      if (failed(copyExternal(*writer, external, param.getLoc())))
        return failure();
      continue;
    }
    TensorProto tensor;
    if (failed(exportTensor(cast<ElementsAttr>(param.getStorage()), tensor, param.getLoc())))
      return failure();
    if (absl::Status status = writer->write(tensor.raw_data()); !status.ok())
      return fail(param.getLoc(), status);
  }
  absl::Status status = writer->commit();
  return status.ok() ? success() : fail(module.getLoc(), status);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

LogicalResult GraphExporter::exportAttribute(Location loc, Attribute value, AttributeProto &proto) {
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
  } else if (auto strings = dyn_cast<ArrayAttr>(value)) {
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

LogicalResult GraphExporter::exportAttributes(Operation *op, NodeProto &node) {
  for (NamedAttribute attr : op->getAttrs()) {
    if (attr.getName() == onnxir::kRegionsAttr)
      continue;
    AttributeProto *proto = node.add_attribute();
    proto->set_name(attr.getName().str());
    if (failed(exportAttribute(op->getLoc(), attr.getValue(), *proto)))
      return failure();
  }
  return success();
}

LogicalResult GraphExporter::exportRegions(Operation *op, NodeProto &node) {
  auto regionNames = op->getAttrOfType<ArrayAttr>(onnxir::kRegionsAttr);
  for (auto [i, region] : llvm::enumerate(op->getRegions())) {
    AttributeProto *proto = node.add_attribute();
    proto->set_name(cast<StringAttr>(regionNames[i]).str());
    proto->set_type(AttributeProto::GRAPH);
    proto->mutable_g()->set_name(proto->name());
    if (failed(exportSubgraph(region, *proto->mutable_g())))
      return failure();
  }
  return success();
}

void GraphExporter::exportIdentity(Value value, StringRef name, GraphProto &graph) {
  NodeProto *node = graph.add_node();
  node->set_op_type("Identity");
  node->add_input(getName(value).str());
  node->add_output(name.str());
}

LogicalResult GraphExporter::exportSubgraph(Region &region, GraphProto &graph) {
  Block &block = region.front();
  for (BlockArgument argument : block.getArguments()) {
    auto *input = graph.add_input();
    input->set_name(getName(argument).str());
    if (failed(exportType(argument.getType(), {}, *input->mutable_type(), argument.getLoc())))
      return failure();
  }
  if (failed(exportBlock(block, graph)))
    return failure();
  for (Value value : block.getTerminator()->getOperands()) {
    // An output is made by the subgraph itself, under a name of its own.
    auto *output = graph.add_output();
    output->set_name(getFreshName("output"));
    exportIdentity(value, output->name(), graph);
    if (failed(exportType(value.getType(), {}, *output->mutable_type(), value.getLoc())))
      return failure();
  }
  return success();
}

/// onnxruntime knows this operator in the default domain only, where its builders write it.
static bool isWrittenWithoutDomain(StringRef opType) { return opType == "SimplifiedLayerNormalization"; }

LogicalResult GraphExporter::exportOperation(Operation *op, GraphProto &graph) {
  NodeProto *node = graph.add_node();
  node->set_name(getNodeName(op).str());
  node->set_op_type(onnxir::getOpType(op).str());
  if (!isWrittenWithoutDomain(node->op_type()))
    node->set_domain(onnxir::getDomain(op).str());
  for (Value operand : op->getOperands())
    node->add_input(getName(operand).str());
  for (Value result : op->getResults())
    node->add_output(getName(result).str());
  if (failed(exportAttributes(op, *node)))
    return failure();
  return exportRegions(op, *node);
}

LogicalResult GraphExporter::exportBlock(Block &block, GraphProto &graph) {
  for (Operation &op : block.without_terminator())
    if (!isa<GetParamOp, onnxir::NoValueOp>(op) && failed(exportOperation(&op, graph)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

static std::string getInterfaceName(DictionaryAttr attrs, const Twine &otherwise) {
  auto name = attrs ? attrs.getAs<StringAttr>(onnxir::kNameAttr) : StringAttr();
  return name ? name.str() : otherwise.str();
}

LogicalResult GraphExporter::exportInterface(func::FuncOp main, GraphProto &graph) {
  auto describe = [&](Type type, DictionaryAttr attrs, const Twine &name, ::onnx::ValueInfoProto &info) {
    info.set_name(getInterfaceName(attrs, name));
    used.insert(info.name());
    auto dims = attrs ? attrs.getAs<ArrayAttr>(onnxir::kDimsAttr) : ArrayAttr();
    return exportType(type, dims, *info.mutable_type(), main.getLoc());
  };
  for (BlockArgument argument : main.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (failed(describe(argument.getType(), main.getArgAttrDict(i), "input" + Twine(i), *graph.add_input())))
      return failure();
    names[argument] = graph.input(i).name();
  }
  for (auto [i, type] : llvm::enumerate(main.getResultTypes()))
    if (failed(describe(type, main.getResultAttrDict(i), "output" + Twine(i), *graph.add_output())))
      return failure();
  return success();
}

/// Names every operation that ONNX does not have, one line a name.
static LogicalResult checkExportable(func::FuncOp main) {
  llvm::MapVector<StringRef, SmallVector<Operation *>> foreign;
  main.walk([&](Operation *op) {
    if (!onnxir::isOnnxOp(op) && !isa<GetParamOp, func::FuncOp, func::ReturnOp>(op))
      foreign[op->getName().getStringRef()].push_back(op);
  });
  for (auto &[name, ops] : foreign)
    ops.front()->emitError() << "cannot export " << name << " (" << ops.size()
                             << (ops.size() == 1 ? " operation" : " operations") << "): ONNX has none like it";
  return success(foreign.empty());
}

LogicalResult GraphExporter::exportMain(::onnx::ModelProto &model) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal())
    return module.emitError() << "expected a function @main to export, but the module has none";
  if (failed(checkExportable(main)))
    return failure();
  auto irVersion = module->getAttrOfType<IntegerAttr>(onnxir::kIrVersionAttr);
  model.set_ir_version(irVersion ? irVersion.getInt() : kDefaultIrVersion);
  model.set_producer_name("hone");
  if (auto opsets = module->getAttrOfType<DictionaryAttr>(onnxir::kOpsetsAttr))
    for (NamedAttribute opset : opsets) {
      auto *import = model.add_opset_import();
      import->set_domain(opset.getName() == onnxir::kDefaultDomain ? "" : opset.getName().str());
      import->set_version(cast<IntegerAttr>(opset.getValue()).getInt());
    }
  GraphProto &graph = *model.mutable_graph();
  StringRef name = getNodeName(main);
  graph.set_name(name.empty() ? "main" : name.str());
  if (failed(exportParameters(graph)) || failed(exportInterface(main, graph)))
    return failure();
  // A result takes the name of the first output it is; the others are copies.
  Operation *ret = main.getBody().front().getTerminator();
  SmallVector<std::pair<Value, std::string>> copies;
  for (auto [i, value] : llvm::enumerate(ret->getOperands())) {
    bool own = value.getDefiningOp() && onnxir::isOnnxOp(value.getDefiningOp()) && !names.count(value);
    if (own)
      names[value] = graph.output(i).name();
    else
      copies.emplace_back(value, graph.output(i).name());
  }
  if (failed(exportBlock(main.getBody().front(), graph)))
    return failure();
  for (auto &[value, output] : copies)
    exportIdentity(value, output, graph);
  return success();
}

LogicalResult exportOnnx(ModuleOp module, StringRef path) {
  std::string dataPath = (path + ".data").str();
  GraphExporter exporter(module, llvm::sys::path::filename(dataPath));
  ::onnx::ModelProto model;
  if (failed(exporter.exportMain(model)) || failed(exporter.writeData(dataPath)))
    return failure();
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    return module.emitError() << "cannot write '" << path << "': the model passes the 2 GiB of a protobuf";
  absl::Status status = io::writeFile(path.str(), bytes);
  return status.ok() ? success() : fail(module.getLoc(), status);
}

} // namespace hone
