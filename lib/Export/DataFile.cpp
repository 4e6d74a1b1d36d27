// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors lie one after the other, in the order in which they were added.

#include "DataFile.h"

#include "ExportTensor.h"
#include "hone/Dialect/Hone/Report.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using ::onnx::TensorProto;

namespace hone {

/// Bytes copied at a time.
static constexpr uint64_t kPiece = uint64_t(16) << 20;

LogicalResult DataFile::add(ParamOp param, TensorProto &tensor) {
  RankedTensorType type = param.getTensorType();
  if (failed(exportTensorType(type, tensor, param.getLoc())))
    return failure();
  tensor.set_data_location(TensorProto::EXTERNAL);
  int64_t length = getExportedBytes(type);
  auto say = [&](const char *key, std::string value) {
    auto *entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(std::move(value));
  };
  say("location", name);
  say("offset", std::to_string(bytes));
  say("length", std::to_string(length));
  params.push_back(param);
  bytes += length;
  return success();
}

static LogicalResult copyExternal(io::FileWriter &writer, ExternalAttr external, Location loc) {
  auto file = io::MappedFile::open(external.getFile().str());
  if (!file.ok())
    return report(loc, file.status());
  uint64_t begin = external.getOffset(), end = begin + external.getBytes();
  if (end > file->size())
    return emitError(loc) << "expected '" << external.getFile() << "' to hold " << external.getBytes()
                          << " bytes at offset " << begin << ", but it ends at " << file->size();
  for (uint64_t at = begin; at < end; at += kPiece)
    if (failed(report(loc, writer.write(file->text().substr(at, std::min(kPiece, end - at))))))
      return failure();
  return success();
}

static LogicalResult copy(io::FileWriter &writer, ParamOp param) {
  if (auto external = dyn_cast<ExternalAttr>(param.getStorage()))
    return copyExternal(writer, external, param.getLoc());
  TensorProto tensor;
  if (failed(exportTensor(cast<ElementsAttr>(param.getStorage()), tensor, param.getLoc())))
    return failure();
  return report(param.getLoc(), writer.write(tensor.raw_data()));
}

FailureOr<std::optional<io::FileWriter>>
DataFile::write(StringRef path, Location loc,
                llvm::function_ref<void(int64_t done, int64_t total, StringRef name)> onWeight) const {
  if (params.empty())
    return std::optional<io::FileWriter>();
  auto writer = io::FileWriter::create(path.str());
  if (!writer.ok())
    return report(loc, writer.status());
  int64_t done = 0;
  for (ParamOp param : params) {
    onWeight(done++, params.size(), param.getSymName());
    if (failed(copy(*writer, param)))
      return failure();
  }
  return std::optional<io::FileWriter>(std::move(*writer));
}

} // namespace hone
