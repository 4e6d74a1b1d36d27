// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Initializers: each is that of the one graph which reads it, or of the main graph.

#include "ExportTensor.h"
#include "GraphExporter.h"

#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"

using namespace mlir;
using ::onnx::GraphProto;
using ::onnx::TensorProto;

namespace hone {

/// Models whose parameters pass this go to a data file: a protobuf ends at 2 GiB.
static constexpr int64_t kMaxInline = int64_t(1) << 30;

GraphExporter::GraphExporter(ModuleOp module, DataFile &data) : module(module), symbols(module), data(data) {
  int64_t total = 0;
  for (auto param : module.getOps<ParamOp>())
    total += getExportedBytes(param.getTensorType());
  isLarge = total > kMaxInline;
}

/// Whether a parameter was, and can be, the value of a Constant node.
bool GraphExporter::isConstantNode(GetParamOp get) {
  if (isLarge || !onnxir::getDescription(get.getLoc(), onnxir::kNodeText))
    return false;
  auto param = symbols.lookup<ParamOp>(get.getName());
  return param && isa<ElementsAttr>(param.getStorage());
}

void GraphExporter::findHomes(Block &main) {
  module.walk([&](GetParamOp get) {
    if (isConstantNode(get)) {
      homes.try_emplace(get.getName(), nullptr);
      return;
    }
    Block *&home = homes[get.getName()];
    home = !home || home == get->getBlock() ? get->getBlock() : &main;
  });
  for (auto param : module.getOps<ParamOp>())
    homes.try_emplace(param.getSymName(), &main);
}

/// What the file said of an initializer; its name is `otherwise` where that is nothing.
static LogicalResult describeTensor(Location loc, StringRef otherwise, TensorProto &tensor) {
  if (StringAttr text = onnxir::getDescription(loc, onnxir::kTensorText))
    if (failed(onnxir::parseMessage(text, tensor, loc)))
      return failure();
  if (tensor.name().empty())
    tensor.set_name(otherwise.str());
  return success();
}

LogicalResult GraphExporter::exportParameter(ParamOp param, Location loc, GraphProto &graph) {
  TensorProto &tensor = *graph.add_initializer();
  if (failed(describeTensor(loc, param.getSymName(), tensor)))
    return failure();
  tensor.set_name(getFreshName(tensor.name()));
  scopes.back().values[tensor.name()] = param.getTensorType();
  parameterNames[param.getSymName()] = tensor.name();
  if (Attribute encoding = param.getTensorType().getEncoding())
    return param.emitError() << "cannot export a parameter stored as " << encoding;
  if (isLarge || isa<ExternalAttr>(param.getStorage()))
    return data.add(param, tensor);
  auto elements = dyn_cast<ElementsAttr>(param.getStorage());
  if (!elements)
    return param.emitError() << "cannot export a parameter with the value " << param.getStorage();
  return exportTensor(elements, tensor, param.getLoc());
}

bool GraphExporter::isSmallInitializer(Operation *op) {
  return onnxir::getDescription(op->getLoc(), onnxir::kTensorText) && op->getNumResults() == 1 &&
         op->getAttrOfType<ElementsAttr>("value");
}

LogicalResult GraphExporter::exportSmallInitializer(Operation *constant, GraphProto &graph) {
  TensorProto &tensor = *graph.add_initializer();
  if (failed(describeTensor(constant->getLoc(), "constant", tensor)))
    return failure();
  tensor.set_name(getFreshName(tensor.name()));
  setName(constant->getResult(0), tensor.name());
  return exportTensor(constant->getAttrOfType<ElementsAttr>("value"), tensor, constant->getLoc());
}

LogicalResult GraphExporter::exportInitializers(Block &block, GraphProto &graph) {
  auto isMissing = [&](StringRef name) { return homes.lookup(name) == &block && !parameterNames.contains(name); };
  for (Operation &op : block) {
    if (auto get = dyn_cast<GetParamOp>(op)) {
      auto param = symbols.lookup<ParamOp>(get.getName());
      if (!isConstantNode(get) && isMissing(get.getName()) && failed(exportParameter(param, get.getLoc(), graph)))
        return failure();
    } else if (isSmallInitializer(&op) && failed(exportSmallInitializer(&op, graph))) {
      return failure();
    }
  }
  if (scopes.size() > 1)
    return success();
  for (auto param : module.getOps<ParamOp>())
    if (isMissing(param.getSymName()) && failed(exportParameter(param, param.getLoc(), graph)))
      return failure();
  return success();
}

} // namespace hone
