// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns a module of the onnx dialect into a ModelProto and writes it; the inverse of lib/Import/ImportGraph.cpp.

#include "hone/Export/Export.h"

#include "GraphExporter.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Onnx/OnnxDescription.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/io/file.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace hone {

/// What a module that was not imported is written as (ONNX 1.16, opset 21).
static constexpr int64_t kDefaultIrVersion = 10;
/// Protocol buffers cannot hold more (developers.google.com/protocol-buffers, encoding limits).
static constexpr uint64_t kProtobufLimit = (uint64_t(1) << 31) - 1;

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

/// What the file said of the model.
static LogicalResult describeModel(ModuleOp module, ::onnx::ModelProto &model) {
  auto text = module->getAttrOfType<StringAttr>(onnxir::kModelAttr);
  if (!text) {
    model.set_producer_name("hone");
    return success();
  }
  if (failed(onnxir::parseMessage(text, model, module.getLoc())))
    return failure();
  model.clear_graph();
  model.clear_functions();
  model.clear_opset_import();
  return success();
}

/// The module's opsets, and those of operators that it says none of: there is one version of com.microsoft.
static LogicalResult exportOpsets(ModuleOp module, std::set<std::string> domains, ::onnx::ModelProto &model) {
  auto opsets = module->getAttrOfType<DictionaryAttr>(onnxir::kOpsetsAttr);
  for (NamedAttribute opset : opsets ? opsets.getValue() : ArrayRef<NamedAttribute>()) {
    auto version = dyn_cast<IntegerAttr>(opset.getValue());
    if (!version)
      return module.emitError() << "expected the opset of '" << opset.getName().strref() << "' to be a number, but got "
                                << opset.getValue();
    auto *import = model.add_opset_import();
    import->set_domain(opset.getName() == onnxir::kDefaultDomain ? "" : opset.getName().str());
    import->set_version(version.getInt());
    domains.erase(import->domain());
  }
  for (const std::string &domain : domains) {
    auto *import = model.add_opset_import();
    import->set_domain(domain);
    import->set_version(1);
  }
  return success();
}

static LogicalResult exportModel(ModuleOp module, DataFile &data, ::onnx::ModelProto &model) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal())
    return module.emitError() << "expected a function @main to export, but the module has none";
  if (failed(checkExportable(main)) || failed(describeModel(module, model)))
    return failure();
  auto irVersion = module->getAttrOfType<IntegerAttr>(onnxir::kIrVersionAttr);
  model.set_ir_version(irVersion ? irVersion.getInt() : kDefaultIrVersion);
  GraphExporter exporter(module, data);
  if (failed(exporter.exportMain(main, *model.mutable_graph())))
    return failure();
  return exportOpsets(module, exporter.getDomains(), model);
}

/// Both files appear only once both are written.
static absl::Status writeFiles(const std::string &path, const std::string &bytes, std::optional<io::FileWriter> data) {
  auto model = io::FileWriter::create(path);
  absl::Status status = model.ok() ? model->write(bytes) : model.status();
  if (status.ok() && data)
    status = data->commit();
  return status.ok() ? model->commit() : status;
}

LogicalResult exportOnnx(ModuleOp module, StringRef path,
                         llvm::function_ref<void(int64_t done, int64_t total, StringRef name)> onWeight) {
  if (llvm::sys::fs::is_directory(path))
    return module.emitError() << "cannot write '" << path << "': it is a folder";
  std::string dataPath = (path + kDataEnding).str();
  DataFile data(llvm::sys::path::filename(dataPath));
  ::onnx::ModelProto model;
  if (failed(exportModel(module, data, model)))
    return failure();
  std::string bytes;
  if (model.ByteSizeLong() > kProtobufLimit || !model.SerializeToString(&bytes))
    return module.emitError() << "cannot write '" << path << "': the model passes the 2 GiB of a protobuf";
  FailureOr<std::optional<io::FileWriter>> written = data.write(dataPath, module.getLoc(), onWeight);
  if (failed(written))
    return failure();
  absl::Status status = writeFiles(path.str(), bytes, std::move(*written));
  if (!status.ok())
    return module.emitError() << std::string(status.message());
  return success();
}

} // namespace hone
