// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounded weights into planes.

#include "RoundedWeight.h"

#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"

using namespace mlir;

namespace hone {

EncodingInterface getBaseOf(EncodingInterface encoding) {
  auto sparse = dyn_cast<DenseSparseAttr>(encoding);
  return sparse ? sparse.getBase() : encoding;
}

void RoundedWeight::append(const RoundedWeight &below) {
  compress::append(below.outliers, outliers);
  if (auto *codes = std::get_if<compress::AffineWeight>(&base)) {
    const auto &more = std::get<compress::AffineWeight>(below.base);
    codes->rows += more.rows;
    llvm::append_range(codes->codes, more.codes);
    llvm::append_range(codes->scales, more.scales);
    return;
  }
  auto &indices = std::get<compress::CodebookWeight>(base);
  const auto &more = std::get<compress::CodebookWeight>(below.base);
  indices.rows += more.rows;
  llvm::append_range(indices.indices, more.indices);
  llvm::append_range(indices.codebook, more.codebook);
}

void RoundedWeight::writeValues(EncodingInterface encoding, const compress::Weight &weight) const {
  if (const auto *indices = std::get_if<compress::CodebookWeight>(&base)) {
    compress::writeValues(*indices, weight);
    return compress::addMissing(outliers, weight);
  }
  compress::writeValues(std::get<compress::AffineWeight>(base), cast<AffineAttr>(encoding).getFormat(), weight);
  compress::attach(outliers, weight);
}

Attribute RoundedWeight::makeStorage(RankedTensorType type) const {
  SmallVector<EncodingPlane> planes = getPlanes(type);
  SmallVector<SmallVector<char, 0>> bytes;
  for (const EncodingPlane &plane : planes)
    bytes.emplace_back().resize_for_overwrite(getDenseBytes(plane.type).value_or(0));
  SmallVector<MutableArrayRef<char>> buffers(bytes.begin(), bytes.end());
  ArrayRef<MutableArrayRef<char>> ofBase = buffers;
  auto encoding = cast<EncodingInterface>(type.getEncoding());
  if (auto sparse = dyn_cast<DenseSparseAttr>(encoding)) {
    sparse.packOutliers(outliers, buffers);
    ofBase = ofBase.drop_front(DenseSparseAttr::kSparsePlanes);
  }
  if (const auto *indices = std::get_if<compress::CodebookWeight>(&base)) {
    cast<CodebookAttr>(getBaseOf(encoding)).packIndices(type.getShape(), indices->indices, indices->codebook, ofBase);
  } else {
    const auto &codes = std::get<compress::AffineWeight>(base);
    cast<AffineAttr>(getBaseOf(encoding)).packCodes(type.getShape(), codes.codes, codes.scales, ofBase);
  }
  SmallVector<NamedAttribute> entries;
  for (auto [plane, buffer] : llvm::zip_equal(planes, buffers))
    entries.emplace_back(StringAttr::get(type.getContext(), plane.name), makeResource(plane.type, buffer));
  return DictionaryAttr::get(type.getContext(), entries);
}

} // namespace hone
