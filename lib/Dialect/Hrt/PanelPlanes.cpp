// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The planes of #hrt.panels, and what they have of each array: include/hone/cpu/packing/panel_block.h.

#include "Panels.h"

#include "hone/Dialect/Hone/HoneStorage.h"

#include "llvm/Support/Parallel.h"

using namespace mlir;

namespace hone::hrt {

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> getPanelBytes(ArrayRef<EncodingPlane> arrays) {
  return llvm::map_to_vector(arrays, [](const EncodingPlane &array) {
    RankedTensorType type = array.type;
    return ShapedType::getNumElements(type.getShape().drop_front()) * getElementBytes(type.getElementType());
  });
}

PanelBlocks::PanelBlocks(ArrayRef<EncodingPlane> arrays)
    : arrays(arrays), panelBytes(getPanelBytes(arrays)), block(std::span<const int64_t>(panelBytes)) {}

int64_t PanelBlocks::getCount() const { return arrays[0].type.getDimSize(0); }

RankedTensorType PanelBlocks::getPlane() const {
  return RankedTensorType::get({getCount(), block.bytes}, IntegerType::get(arrays[0].type.getContext(), 8));
}

SmallVector<PlaneView> PanelBlocks::getViews() const {
  SmallVector<PlaneView> views;
  for (auto [array, offset] : llvm::zip_first(arrays, block.offsets))
    views.push_back({array.type, 0, offset, block.bytes});
  return views;
}

SmallVector<MutableArrayRef<char>> PanelBlocks::allocate() {
  memory.clear();
  for (int64_t bytes : panelBytes)
    memory.emplace_back().resize_for_overwrite(getCount() * bytes);
  return SmallVector<MutableArrayRef<char>>(memory.begin(), memory.end());
}

void PanelBlocks::join(MutableArrayRef<char> plane) const {
  llvm::parallelFor(0, getCount(), [&](int64_t panel) {
    MutableArrayRef<char> to = plane.slice(panel * block.bytes, block.bytes);
    llvm::fill(to, 0);
    for (auto [array, bytes, offset] : llvm::zip_first(memory, panelBytes, block.offsets))
      std::memcpy(to.data() + offset, array.data() + panel * bytes, bytes);
  });
}

SmallVector<ArrayRef<char>> PanelBlocks::divide(ArrayRef<char> plane) {
  allocate();
  llvm::parallelFor(0, getCount(), [&](int64_t panel) {
    ArrayRef<char> from = plane.slice(panel * block.bytes, block.bytes);
    for (auto [array, bytes, offset] : llvm::zip_first(memory, panelBytes, block.offsets))
      std::memcpy(array.data() + panel * bytes, from.data() + offset, bytes);
  });
  return SmallVector<ArrayRef<char>>(memory.begin(), memory.end());
}

//===----------------------------------------------------------------------===//
// Planes
//===----------------------------------------------------------------------===//

PanelsAttr getBase(PanelsAttr panels) { return PanelsAttr::get(Attribute(panels.getSparse().getBase())); }

SmallVector<EncodingPlane> PanelsAttr::getPlanes(ArrayRef<int64_t> shape, Type elementType) const {
  if (DenseSparseAttr sparse = getSparse()) {
    SmallVector<EncodingPlane> planes = sparse.getPlanes(shape, elementType);
    planes.resize(DenseSparseAttr::kSparsePlanes);
    llvm::append_range(planes, getBase(*this).getPlanes(shape, elementType));
    return planes;
  }
  SmallVector<EncodingPlane> arrays = getLayout(getElements())->getArrays(shape);
  if (arrays.size() == 1)
    return arrays;
  return {{"panels", PanelBlocks(arrays).getPlane()}};
}

SmallVector<PlaneView> PanelsAttr::getViews(ArrayRef<int64_t> shape, Type elementType) const {
  if (DenseSparseAttr sparse = getSparse()) {
    SmallVector<PlaneView> views = sparse.getViews(shape, elementType);
    views.resize(DenseSparseAttr::kSparsePlanes);
    for (PlaneView view : getBase(*this).getViews(shape, elementType)) {
      view.plane += DenseSparseAttr::kSparsePlanes;
      views.push_back(view);
    }
    return views;
  }
  SmallVector<EncodingPlane> arrays = getLayout(getElements())->getArrays(shape);
  return arrays.size() == 1 ? viewWhole(arrays) : PanelBlocks(arrays).getViews();
}

} // namespace hone::hrt
