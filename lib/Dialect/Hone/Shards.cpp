//===- Shards.cpp - parameters of which each rank has a part ------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts are taken plane by plane as they are stored: numbers that were rounded once are not rounded again.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/Shards.h"

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/InputRotation.h"
#include "hone/Dialect/Hone/ParamBytes.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

#include <numeric>

using namespace mlir;
using namespace hone;

//===- Ranks ------------------------------------------------------------------------------------------------------===//

FailureOr<int64_t> hone::countRanks(ModuleOp module) {
  auto grid = module.lookupSymbol<shard::GridOp>(kGridName);
  if (grid && (grid.getShape().size() != 1 || grid.getShape()[0] < 1))
    return grid.emitError() << "expected the grid of ranks to have one axis of a known size";
  int64_t ranks = grid ? grid.getShape()[0] : 1;
  for (auto param : module.getOps<ParamOp>())
    if (auto shards = param->getAttrOfType<ArrayAttr>(kShardsAttrName);
        shards && static_cast<int64_t>(shards.size()) != ranks)
      return param.emitError() << "expected a shard for each of " << ranks << " ranks, but got " << shards.size();
  return ranks;
}

void hone::selectRank(ParamOp param, int64_t rank) {
  auto shards = param->getAttrOfType<ArrayAttr>(kShardsAttrName);
  if (!shards)
    return;
  auto converted = dyn_cast<ConvertedAttr>(param.getStorage());
  param.setStorageAttr(converted ? ConvertedAttr::get(param.getContext(), converted.getType(), shards[rank])
                                 : shards[rank]);
}

//===- Planes -----------------------------------------------------------------------------------------------------===//

namespace {
/// The part of a plane that belongs to a part of a parameter.
struct PlanePart {
  int64_t dim = -1; // of the plane; negative: all of it
  SmallVector<int64_t, 0> indices = {};
};
} // namespace

/// The indices of a dimension of `size`, that stands for one of `all` indices, which belong to `indices` of these. Nothing where
/// they begin or end within an index.
static std::optional<SmallVector<int64_t, 0>> scaleIndices(ArrayRef<int64_t> indices, int64_t all, int64_t size) {
  int64_t block = all / std::gcd(all, size), perBlock = size / std::gcd(all, size);
  SmallVector<int64_t, 0> scaled;
  if (indices.size() % block != 0)
    return std::nullopt;
  for (size_t i = 0; i < indices.size(); i += block) {
    if (indices[i] % block != 0)
      return std::nullopt;
    for (int64_t k = 1; k < block; ++k)
      if (indices[i + k] != indices[i] + k)
        return std::nullopt;
    for (int64_t k = 0; k < perBlock; ++k)
      scaled.push_back(indices[i] / block * perBlock + k);
  }
  return scaled;
}

/// Parts of the planes of integers along `axis`; an empty list and the reason in `blocker` where they have none.
static SmallVector<PlanePart> listAffineParts(RankedTensorType type, AffineAttr affine, int64_t axis,
                                              ArrayRef<int64_t> indices, std::string &blocker) {
  int64_t inputs = type.getDimSize(1), group = affine.getGroup(), bits = affine.getBits();
  int64_t dim = affine.getTransposed() ? 1 - axis : axis;
  bool isPadded = group > 0 ? inputs % group != 0 || (affine.getHasZeros() && inputs / group * bits % 8 != 0)
                            : inputs * bits % 8 != 0;
  if (axis == 1 && isPadded) {
    blocker = "its rows are filled up to whole groups or bytes";
    return {};
  }
  SmallVector<PlanePart> parts;
  for (const EncodingPlane &plane : getPlanes(type)) {
    bool isOfRow = axis == 1 && group == 0 && plane.name != "values"; // one for all inputs
    auto scaled = scaleIndices(indices, type.getDimSize(axis), plane.type.getDimSize(dim));
    if (!isOfRow && !scaled) {
      blocker = ("a part of its " + Twine(inputs) + " inputs does not begin and end between groups" +
                 (group > 0 ? " of " + Twine(group) : Twine()) + " in '" + plane.name + "'")
                    .str();
      return {};
    }
    parts.push_back(isOfRow ? PlanePart() : PlanePart{dim, *scaled});
  }
  return parts;
}

/// The parts of the planes of a tensor of `type` that are `indices` along `axis`; as above.
static SmallVector<PlanePart> listParts(RankedTensorType type, int64_t axis, ArrayRef<int64_t> indices,
                                        std::string &blocker) {
  PlanePart part{axis, SmallVector<int64_t, 0>(indices)};
  if (auto stored = dyn_cast_or_null<StoredAttr>(type.getEncoding()))
    part.dim = stored.getTransposed() && axis >= type.getRank() - 2 ? 2 * type.getRank() - 3 - axis : axis;
  else if (auto affine = dyn_cast_or_null<AffineAttr>(type.getEncoding()))
    return listAffineParts(type, affine, axis, indices, blocker);
  else if (type.getEncoding()) {
    blocker = "no part of its form can be taken";
    return {};
  }
  return {part};
}

static RankedTensorType withSize(RankedTensorType type, int64_t dim, int64_t size, Attribute encoding = {}) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, type.getElementType(), encoding);
}

/// The bytes of `part` of a plane of `type`.
static SmallVector<char, 0> takeBytes(ArrayRef<char> bytes, RankedTensorType type, const PlanePart &part) {
  int64_t run = getElementBytes(type.getElementType()), size = type.getDimSize(part.dim);
  for (int64_t inner : type.getShape().drop_front(part.dim + 1))
    run *= inner;
  SmallVector<char, 0> taken;
  for (int64_t outer = 0, end = bytes.size(); outer < end; outer += size * run)
    for (int64_t index : part.indices)
      llvm::append_range(taken, bytes.slice(outer + index * run, run));
  return taken;
}

/// Whether the part is neighbours of the first dimension, which lie together in a file.
static bool isRun(const PlanePart &part) {
  for (size_t i = 1; i < part.indices.size(); ++i)
    if (part.indices[i] != part.indices[0] + static_cast<int64_t>(i))
      return false;
  return part.dim == 0 && !part.indices.empty();
}

/// `part` of what a plane of `type` stores.
static FailureOr<Attribute> takePlane(Attribute storage, RankedTensorType type, const PlanePart &part, Location loc) {
  if (part.dim < 0)
    return storage;
  auto external = dyn_cast<ExternalAttr>(storage);
  if (external && isRun(part)) {
    int64_t row = external.getBytes() / type.getDimSize(0);
    return Attribute(ExternalAttr::get(loc.getContext(), external.getFile(),
                                       external.getOffset() + part.indices[0] * row,
                                       static_cast<int64_t>(part.indices.size()) * row));
  }
  FailureOr<StoredBytes> stored = StoredBytes::open(storage, loc);
  if (failed(stored))
    return failure();
  SmallVector<char, 0> taken = takeBytes(stored->get(), type, part);
  stored->release(0, stored->get().size());
  RankedTensorType cut = withSize(type, part.dim, static_cast<int64_t>(part.indices.size()));
  if (isa<DenseElementsAttr>(storage) && isa<FloatType>(type.getElementType()))
    return Attribute(DenseElementsAttr::getFromRawBuffer(cut, taken));
  return makeResource(cut, taken);
}

//===- Slices -----------------------------------------------------------------------------------------------------===//

ParamSlices::ParamSlices(ParamOp param, int64_t axis, int64_t size) : param(param), axis(axis), size(size) {}

RankedTensorType ParamSlices::cut(RankedTensorType type) const {
  return withSize(type, axis, size, type.getEncoding());
}

std::string ParamSlices::getBlocker(ArrayRef<int64_t> indices) const {
  std::string blocker;
  for (RankedTensorType type : {param.getStorageType(), param.getTensorType()}) {
    SmallVector<PlanePart> parts = listParts(type, axis, indices, blocker);
    for (auto [part, plane, whole] : llvm::zip(parts, getPlanes(cut(type)), getPlanes(type)))
      if (plane.type !=
          (part.dim < 0 ? whole.type : withSize(whole.type, part.dim, static_cast<int64_t>(part.indices.size()))))
        blocker = ("a part of it would have another '" + plane.name + "'").str();
  }
  return blocker.empty() ? "" : (param.getSymName() + ": " + blocker).str();
}

FailureOr<Attribute> ParamSlices::take(ArrayRef<int64_t> indices) const {
  std::string blocker;
  RankedTensorType type = param.getStorageType();
  SmallVector<PlanePart> parts = listParts(type, axis, indices, blocker);
  SmallVector<Attribute> taken;
  for (auto [part, plane, storage] : llvm::zip_equal(parts, getPlanes(type), param.getPlaneStorage())) {
    FailureOr<Attribute> one = takePlane(storage, plane.type, part, param.getLoc());
    if (failed(one))
      return failure();
    taken.push_back(*one);
  }
  return join(taken);
}

/// The storage of a part in planes.
Attribute ParamSlices::join(ArrayRef<Attribute> planes) const {
  Builder b(param.getContext());
  SmallVector<NamedAttribute> named;
  for (auto [plane, storage] : llvm::zip_equal(getPlanes(param.getStorageType()), planes))
    named.push_back(b.getNamedAttr(plane.name, storage));
  return planes.size() == 1 ? planes[0] : b.getDictionaryAttr(named);
}

/// Storage of a part whose bytes nobody reads.
Attribute ParamSlices::leaveOut() const {
  SmallVector<Attribute> planes;
  for (const EncodingPlane &plane : getPlanes(cut(param.getStorageType())))
    planes.push_back(ExternalAttr::get(param.getContext(), kNoFile, 0, getDenseBytes(plane.type).value_or(0)));
  return join(planes);
}

/// Makes `part`, which is the parameter or a copy of it, one of the part whose bytes are `storage`.
void ParamSlices::cut(ParamOp part, Attribute storage) const {
  auto converted = dyn_cast<ConvertedAttr>(part.getStorage());
  part.setStorageAttr(converted ? ConvertedAttr::get(part.getContext(), cut(converted.getType()), storage) : storage);
  part.setType(cut(part.getTensorType()));
  if (axis == 1)
    for (StringRef name : {StringRef(kChannelScalesName), StringRef(kInputsAttrName), StringRef(kInputRotationName)})
      part->removeAttr(name);
}

FailureOr<ParamOp> ParamSlices::create(SymbolTable &symbols, const Twine &name, ArrayRef<int64_t> indices,
                                       bool hasBytes) const {
  FailureOr<Attribute> storage = hasBytes ? take(indices) : leaveOut();
  if (failed(storage))
    return failure();
  auto part = cast<ParamOp>(param->clone());
  part.setSymName(name.str());
  cut(part, *storage);
  symbols.insert(part, std::next(param->getIterator()));
  return part;
}

void ParamSlices::assign(ArrayRef<Attribute> shards) const {
  cut(param, shards[0]);
  param->setAttr(kShardsAttrName, ArrayAttr::get(param.getContext(), shards));
  selectRank(param, 0);
}
