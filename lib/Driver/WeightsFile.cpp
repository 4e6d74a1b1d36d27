// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes weights.safetensors. What keeps its form is streamed in pieces, what is converted goes through memory one parameter
// at a time, so that memory holds neither the model nor the file.

#include "Artefact.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/io/safetensors.h"

using namespace mlir;

namespace hone {

/// Bytes copied before their pages are given back.
static constexpr uint64_t kPiece = uint64_t(16) << 20;

static LogicalResult copyPlane(io::SafetensorsWriter &writer, Attribute storage, Location loc) {
  FailureOr<StoredBytes> stored = StoredBytes::open(storage, loc);
  if (failed(stored))
    return failure();
  for (uint64_t at = 0, end = stored->get().size(); at < end; at += kPiece) {
    ArrayRef<char> piece = stored->get().slice(at, std::min(kPiece, end - at));
    if (failed(report(loc, writer.append({piece.data(), piece.size()}))))
      return failure();
    stored->release(at, at + piece.size());
  }
  return success();
}

namespace {

/// The planes of a parameter that are made from other bytes. What was made last is kept: planes of one parameter are mostly
/// neighbours in the file.
class Converter {
public:
  /// Plane `number` of `param`; valid until the next call.
  FailureOr<ArrayRef<char>> convert(ParamOp param, size_t number);

private:
  LogicalResult makePlanes(ParamOp param);

  ParamOp last;
  SmallVector<SmallVector<char, 0>> planes;
};

} // namespace

LogicalResult Converter::makePlanes(ParamOp param) {
  RankedTensorType from = param.getStorageType(), to = param.getTensorType();
  SmallVector<StoredBytes> stored;
  for (Attribute storage : param.getPlaneStorage()) {
    FailureOr<StoredBytes> bytes = StoredBytes::open(storage, param.getLoc());
    if (failed(bytes))
      return failure();
    stored.push_back(std::move(*bytes));
  }
  planes.clear();
  for (const EncodingPlane &plane : getPlanes(to))
    planes.emplace_back().resize(getDenseBytes(plane.type).value_or(0));
  SmallVector<MutableArrayRef<char>> buffers(planes.begin(), planes.end());
  auto sources = llvm::map_to_vector(stored, [](const StoredBytes &bytes) { return bytes.get(); });
  auto encoding = cast<EncodingInterface>(to.getEncoding());
  if (encoding.repack(to.getShape(), from.getEncoding(), sources, buffers))
    return success();
  ArrayRef<char> dense = sources[0];
  SmallVector<char, 0> unpacked;
  if (auto source = dyn_cast_or_null<EncodingInterface>(from.getEncoding())) {
    unpacked.resize_for_overwrite(getDenseBytes(getPlainType(from)).value_or(0));
    source.unpack(from.getShape(), from.getElementType(), sources, unpacked);
    for (const StoredBytes &bytes : stored)
      bytes.release(0, bytes.get().size());
    dense = unpacked;
  }
  return encoding.pack(to.getShape(), to.getElementType(), dense, buffers, [&] { return param.emitError(); });
}

FailureOr<ArrayRef<char>> Converter::convert(ParamOp param, size_t number) {
  if (param != last) {
    last = nullptr;
    if (failed(makePlanes(param)))
      return failure();
    last = param;
  }
  return ArrayRef<char>(planes[number]);
}

namespace {
/// A plane of a parameter, by its number, and where it lies in the file.
struct PlacedPlane {
  ParamOp param;
  size_t number;
  int64_t offset;
};
} // namespace

static LogicalResult writePlane(io::SafetensorsWriter &writer, const PlacedPlane &plane, Converter &converter) {
  ParamOp param = plane.param;
  if (!isa<ConvertedAttr>(param.getStorage()))
    return copyPlane(writer, param.getPlaneStorage()[plane.number], param.getLoc());
  FailureOr<ArrayRef<char>> bytes = converter.convert(param, plane.number);
  if (failed(bytes))
    return failure();
  return report(param.getLoc(), writer.append({bytes->data(), bytes->size()}));
}

static SmallVector<PlacedPlane> listPlanes(ModuleOp module) {
  SmallVector<PlacedPlane> planes;
  for (auto param : module.getOps<ParamOp>())
    if (auto offsets = param->getAttrOfType<DenseI64ArrayAttr>(hrt::kOffsetsAttr))
      for (auto [i, offset] : llvm::enumerate(offsets.asArrayRef()))
        planes.push_back({param, i, offset});
  // Planes without bytes share their offset with the next one.
  llvm::sort(planes, [](PlacedPlane a, PlacedPlane b) {
    return std::tuple(a.offset, a.param.getSymName(), a.number) < std::tuple(b.offset, b.param.getSymName(), b.number);
  });
  return planes;
}

std::string getTensorName(ParamOp param, size_t number) {
  SmallVector<EncodingPlane> planes = getPlanes(param.getTensorType());
  return param.getSymName().str() + (planes.size() > 1 ? "." + planes[number].name.str() : "");
}

LogicalResult writeWeights(ModuleOp module, const std::string &path) {
  SmallVector<PlacedPlane> planes = listPlanes(module);
  std::vector<io::StoredTensor> tensors;
  for (PlacedPlane &placed : planes) {
    EncodingPlane plane = getPlanes(placed.param.getTensorType())[placed.number];
    std::optional<hone_dtype> dtype = getDtype(plane.type.getElementType());
    if (!dtype)
      return placed.param.emitError() << "unsupported element type " << plane.type.getElementType()
                                      << " of a parameter";
    tensors.push_back({getTensorName(placed.param, placed.number), *dtype, plane.type.getShape().vec()});
  }
  auto writer = io::SafetensorsWriter::create(path, std::move(tensors));
  if (!writer.ok())
    return report(module.getLoc(), writer.status());
  Converter converter;
  for (const PlacedPlane &plane : planes)
    if (failed(writePlane(*writer, plane, converter)))
      return failure();
  return report(module.getLoc(), writer->commit());
}

} // namespace hone
