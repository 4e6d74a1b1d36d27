//===- ParamBytes.cpp - the bytes of parameters -------------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files are mapped: what is read once never stays in memory.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/ParamBytes.h"

#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ScratchBytes.h"

#include "hone/io/addresses.h"
#include "hone/io/pages.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace hone;

LogicalResult StoredBytes::map(ExternalAttr external, Location loc) {
  auto opened = io::MappedFile::open(external.getFile().str());
  if (!opened.ok())
    return emitError(loc) << std::string(opened.status().message());
  file = std::move(*opened);
  uint64_t begin = external.getOffset(), count = external.getBytes();
  if (begin > file->size() || count > file->size() - begin)
    return emitError(loc) << "expected '" << external.getFile() << "' to hold " << count << " bytes at offset " << begin
                          << ", but it ends at " << file->size();
  bytes = {reinterpret_cast<const char *>(file->data()) + begin, count};
  return success();
}

/// Parts are read one after the other.
LogicalResult StoredBytes::join(StackedAttr stacked, Location loc) {
  RankedTensorType type = stacked.getType();
  copy = std::make_unique<std::string>(getDenseBytes(stacked.getStackedType()).value_or(0), '\0');
  size_t size = copy->size() / stacked.getParts().size();
  for (auto [number, part] : llvm::enumerate(stacked.getParts())) {
    FailureOr<StoredBytes> stored = open(part, loc);
    if (failed(stored))
      return failure();
    MutableArrayRef<char> to(copy->data() + number * size, size);
    if (auto encoding = dyn_cast_or_null<EncodingInterface>(type.getEncoding()))
      encoding.unpack(type.getShape(), type.getElementType(), stored->get(), to);
    else
      llvm::copy(stored->get(), to.begin());
    stored->release(0, stored->get().size());
  }
  bytes = *copy;
  return success();
}

FailureOr<StoredBytes> StoredBytes::open(Attribute storage, Location loc) {
  StoredBytes stored;
  if (auto external = dyn_cast<ExternalAttr>(storage)) {
    if (failed(stored.map(external, loc)))
      return failure();
  } else if (auto stacked = dyn_cast<StackedAttr>(storage)) {
    if (failed(stored.join(stacked, loc)))
      return failure();
  } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(storage)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return emitError(loc) << "expected the bytes of resource '" << resource.getRawHandle().getKey()
                            << "', but the file has none";
    stored.bytes = blob->getData();
    stored.isScratch = ScratchBytes::get(storage.getContext()).holds(stored.bytes);
  } else if (auto dense = dyn_cast<DenseElementsAttr>(storage)) {
    stored.copy = std::make_unique<std::string>(getElements(dense));
    stored.bytes = *stored.copy;
  } else {
    return emitError(loc) << "unsupported storage " << storage << " of a parameter";
  }
  return stored;
}

void StoredBytes::release(uint64_t begin, uint64_t end) const {
  if (file || isScratch)
    io::releasePages(bytes.data() + begin, end - begin);
}

Attribute hone::makeResource(RankedTensorType type, ArrayRef<char> bytes) {
  return DenseResourceElementsAttr::get(type, "weight", ScratchBytes::get(type.getContext()).copy(bytes));
}

/// Unpacking reads and writes where some planes say.
static LogicalResult checkElements(ParamOp param, const EncodingPlane &plane, ArrayRef<char> bytes) {
  if (!plane.addresses)
    return success();
  absl::Status status = io::checkAddresses(plane.addresses->rule, plane.addresses->bound,
                                           {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()},
                                           (param.getSymName() + "." + plane.name).str());
  return status.ok() ? success() : param.emitError() << std::string(status.message());
}

FailureOr<SmallVector<StoredBytes>> hone::openPlanes(ParamOp param) {
  RankedTensorType type = param.getStorageType();
  SmallVector<StoredBytes> opened;
  for (auto [plane, storage] : llvm::zip_equal(getPlanes(type), param.getPlaneStorage())) {
    FailureOr<StoredBytes> stored = StoredBytes::open(storage, param.getLoc());
    if (failed(stored))
      return failure();
    int64_t expected = getDenseBytes(plane.type).value_or(0);
    if (static_cast<int64_t>(stored->get().size()) != expected)
      return param.emitError() << "expected the bytes of a parameter of type " << type << " to be " << expected
                               << ", but got " << stored->get().size();
    if (failed(checkElements(param, plane, stored->get())))
      return failure();
    opened.push_back(std::move(*stored));
  }
  return opened;
}

/// The elements of f32 that `planes` of a tensor of `type` mean.
static std::vector<float> unpack(RankedTensorType type, ArrayRef<ArrayRef<char>> planes) {
  std::vector<float> elements(type.getNumElements());
  MutableArrayRef<char> bytes(reinterpret_cast<char *>(elements.data()), elements.size() * sizeof(float));
  if (auto encoding = dyn_cast_or_null<EncodingInterface>(type.getEncoding()))
    encoding.unpack(type.getShape(), type.getElementType(), planes, bytes);
  else
    llvm::copy(planes[0], bytes.begin());
  return elements;
}

static SmallVector<ArrayRef<char>> getBytes(ArrayRef<StoredBytes> planes) {
  return llvm::map_to_vector(planes, [](const StoredBytes &plane) { return plane.get(); });
}

static void releaseAll(ArrayRef<StoredBytes> planes) {
  for (const StoredBytes &plane : planes)
    plane.release(0, plane.get().size());
}

SmallVector<int64_t> hone::readIntegers(Value value) {
  SmallVector<int64_t> integers;
  Operation *op = value.getDefiningOp();
  if (auto read = dyn_cast_or_null<GetParamOp>(op); read && getElementTypeOrSelf(value).isInteger(64)) {
    auto param = SymbolTable::lookupNearestSymbolFrom<ParamOp>(op, read.getNameAttr());
    auto planes = openPlanes(param);
    if (succeeded(planes)) {
      ArrayRef<char> bytes = planes->front().get();
      integers.resize(bytes.size() / sizeof(int64_t));
      std::memcpy(integers.data(), bytes.data(), integers.size() * sizeof(int64_t));
    }
  } else if (auto values = op ? op->getAttrOfType<DenseIntElementsAttr>("value") : DenseIntElementsAttr()) {
    for (const APInt &integer : values)
      integers.push_back(integer.getSExtValue());
  }
  return integers;
}

FailureOr<std::vector<float>> hone::readElements(ParamOp param) {
  FailureOr<SmallVector<StoredBytes>> stored = openPlanes(param);
  if (failed(stored))
    return failure();
  std::vector<float> elements = unpack(param.getStorageType(), getBytes(*stored));
  releaseAll(*stored);
  return elements;
}

FailureOr<SmallVector<SmallVector<char, 0>>> hone::convertPlanes(ParamOp param) {
  RankedTensorType from = param.getStorageType(), to = param.getTensorType();
  FailureOr<SmallVector<StoredBytes>> stored = openPlanes(param);
  if (failed(stored))
    return failure();
  SmallVector<SmallVector<char, 0>> planes;
  for (const EncodingPlane &plane : getPlanes(to))
    planes.emplace_back().resize(getDenseBytes(plane.type).value_or(0));
  SmallVector<MutableArrayRef<char>> buffers(planes.begin(), planes.end());
  SmallVector<ArrayRef<char>> sources = getBytes(*stored);
  auto encoding = cast<EncodingInterface>(to.getEncoding());
  if (encoding.repack(to.getShape(), from.getEncoding(), sources, buffers)) {
    releaseAll(*stored);
    return planes;
  }
  ArrayRef<char> dense = sources[0];
  SmallVector<char, 0> unpacked;
  if (auto source = dyn_cast_or_null<EncodingInterface>(from.getEncoding())) {
    unpacked.resize_for_overwrite(getDenseBytes(getPlainType(from)).value_or(0));
    source.unpack(from.getShape(), from.getElementType(), sources, unpacked);
    releaseAll(*stored);
    dense = unpacked;
  }
  LogicalResult packed =
      encoding.pack(to.getShape(), to.getElementType(), dense, buffers, [&] { return param.emitError(); });
  releaseAll(*stored);
  if (failed(packed))
    return failure();
  return planes;
}

FailureOr<std::vector<float>> hone::readStoredElements(ParamOp param) {
  if (!isa<ConvertedAttr>(param.getStorage()))
    return readElements(param);
  FailureOr<SmallVector<SmallVector<char, 0>>> planes = convertPlanes(param);
  if (failed(planes))
    return failure();
  auto bytes = llvm::map_to_vector(*planes, [](const SmallVector<char, 0> &plane) { return ArrayRef<char>(plane); });
  return unpack(param.getTensorType(), bytes);
}

void hone::writeElements(ParamOp param, ArrayRef<float> elements) {
  RankedTensorType type = param.getStorageType();
  EncodingPlane plane = getPlanes(type)[0];
  ArrayRef<char> bytes(reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(float));
  SmallVector<char, 0> packed;
  if (auto encoding = dyn_cast_or_null<EncodingInterface>(type.getEncoding())) {
    packed.resize_for_overwrite(getDenseBytes(plane.type).value_or(0));
    // Every float has its place in plain elements.
    (void)encoding.pack(type.getShape(), type.getElementType(), bytes, MutableArrayRef<char>(packed),
                        [&] { return param.emitError(); });
    bytes = packed;
  }
  Attribute storage = makeResource(plane.type, bytes);
  if (isa<ConvertedAttr>(param.getStorage()))
    storage = ConvertedAttr::get(param.getContext(), type, storage);
  param.setStorageAttr(storage);
}

LogicalResult hone::takeIndices(ParamOp param, int64_t axis, ArrayRef<int64_t> indices) {
  FailureOr<std::vector<float>> elements = readElements(param);
  if (failed(elements))
    return failure();
  RankedTensorType type = param.getTensorType();
  SmallVector<int64_t> shape(type.getShape());
  int64_t inner = 1, all = shape[axis];
  for (int64_t size : ArrayRef(shape).drop_front(axis + 1))
    inner *= size;
  std::vector<float> left;
  left.reserve(elements->size() / all * indices.size());
  for (size_t outer = 0; outer < elements->size(); outer += all * inner)
    for (int64_t index : indices)
      left.insert(left.end(), elements->begin() + outer + index * inner,
                  elements->begin() + outer + (index + 1) * inner);
  if (axis == 1 && shape.size() == 2) {
    keepInputs(param, indices);
    SmallVector<float> scales;
    if (ArrayRef<float> before = getChannelScales(param); !before.empty()) {
      llvm::append_range(scales, llvm::map_range(indices, [&](int64_t column) { return before[column]; }));
      param->setAttr(kChannelScalesName, DenseF32ArrayAttr::get(param.getContext(), scales));
    }
  }
  shape[axis] = static_cast<int64_t>(indices.size());
  param.setType(RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  writeElements(param, left);
  return success();
}
