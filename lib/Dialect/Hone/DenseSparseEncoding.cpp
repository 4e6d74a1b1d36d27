//===- DenseSparseEncoding.cpp - few bits and outliers ------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #hone.dense_sparse: outliers by rows beside the planes of #hone.affine or #hone.codebook.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Compress/Outliers.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hone/PlainElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace hone;

using compress::kSparseRows;

static int64_t countPanels(ArrayRef<int64_t> shape) { return compress::countSparsePanels(shape[0]); }

LogicalResult DenseSparseAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Attribute of,
                                      int64_t outliers) {
  auto affine = dyn_cast<AffineAttr>(of);
  bool isRounding = affine && affine.getActivations() != 0 && !affine.getAtLeast();
  if (isRounding || !isa<AffineAttr, CodebookAttr>(of)) // dense_sparse C1
    return emitError() << "unsupported encoding " << of
                       << " beside outliers; supported: #hone.affine, with atLeast where it has activations, and "
                          "#hone.codebook";
  if (outliers < 1 || outliers > std::numeric_limits<int32_t>::max() || outliers % kSparseRows != 0) // dense_sparse C2
    return emitError() << "expected the number of outliers to be a multiple of " << kSparseRows << " from "
                       << kSparseRows << " to " << std::numeric_limits<int32_t>::max() << ", but got " << outliers;
  return success();
}

LogicalResult DenseSparseAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                              llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (failed(cast<VerifiableTensorEncoding>(getOf()).verifyEncoding(shape, elementType, emitError)))
    return failure();
  if (shape[1] > compress::kMostSparseColumns) // dense_sparse C3
    return emitError() << "expected a tensor with outliers to have at most " << compress::kMostSparseColumns
                       << " columns, but got " << shape[1];
  if (getCodebook() && !elementType.isF32()) // dense_sparse C4
    return emitError() << "expected a tensor with outliers beside a codebook to have elements of f32, but got "
                       << elementType;
  if (ShapedType::isDynamicShape(shape))
    return success();
  uint64_t panels = llvm::divideCeil(static_cast<uint64_t>(shape[0]), kSparseRows), count = getOutliers();
  uint64_t most = llvm::SaturatingMultiply<uint64_t>(panels * kSparseRows, shape[1]);
  if (most < count) // dense_sparse C3
    return emitError() << "expected a tensor with " << getOutliers()
                       << " outliers to have as many elements in panels of 16 rows, but got " << most;
  return success();
}

SmallVector<EncodingPlane> DenseSparseAttr::getPlanes(ArrayRef<int64_t> shape, Type elementType) const {
  MLIRContext *context = getContext();
  int64_t slots = getOutliers() / kSparseRows;
  SmallVector<int64_t> starts{countPanels(shape) + 1}, places{slots, kSparseRows};
  SmallVector<EncodingPlane> planes{
      {"starts", RankedTensorType::get(starts, IntegerType::get(context, 32)), AddressRule{HONE_ADDRESS_STARTS, slots}},
      {"columns", RankedTensorType::get(places, IntegerType::get(context, 16)),
       AddressRule{HONE_ADDRESS_BELOW, shape[1]}},
      {"outliers", RankedTensorType::get(places, Float16Type::get(context))}};
  llvm::append_range(planes, getBase().getPlanes(shape, elementType));
  return planes;
}

//===- Packing ----------------------------------------------------------------------------------------------------===//

void DenseSparseAttr::packOutliers(const compress::SparseWeight &outliers,
                                   ArrayRef<MutableArrayRef<char>> planes) const {
  std::memcpy(planes[0].data(), outliers.starts.data(), planes[0].size());
  std::memcpy(planes[1].data(), outliers.columns.data(), planes[1].size());
  PlainElements halves(Float16Type::get(getContext()));
  for (auto [i, value] : llvm::enumerate(outliers.values))
    halves.store(planes[2], i, value);
}

LogicalResult DenseSparseAttr::pack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<char> dense,
                                    ArrayRef<MutableArrayRef<char>> planes,
                                    llvm::function_ref<InFlightDiagnostic()> emitError) const {
  PlainElements from(elementType);
  std::vector<float> elements(shape[0] * shape[1]);
  for (auto [i, element] : llvm::enumerate(elements))
    element = from.load(dense, i);
  compress::Weight weight{elements, shape[0], shape[1]};
  std::vector<float> whole = getCodebook() ? elements : std::vector<float>();
  auto outliers = compress::detach(weight, compress::markLargest(weight, getOutliers() / kSparseRows));
  if (!outliers.ok())
    return emitError() << std::string(outliers.status().message());
  Type f32 = Float32Type::get(getContext());
  ArrayRef<MutableArrayRef<char>> ofBase = planes.drop_front(kSparsePlanes);
  MutableArrayRef<char> rest(reinterpret_cast<char *>(elements.data()), elements.size() * sizeof(float));
  if (failed(getBase().pack(shape, f32, rest, ofBase, emitError)))
    return failure();
  if (getCodebook()) {
    getBase().unpack(shape, f32, SmallVector<ArrayRef<char>>(ofBase.begin(), ofBase.end()), rest);
    compress::takeMissing({whole, shape[0], shape[1]}, weight, *outliers);
  }
  packOutliers(*outliers, planes);
  return success();
}

/// Element `index` of a plane of integers.
template <typename Integer> static int64_t load(ArrayRef<char> plane, int64_t index) {
  Integer element;
  std::memcpy(&element, plane.data() + index * sizeof(Integer), sizeof(Integer));
  return element;
}

void DenseSparseAttr::placeOutliers(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                                    MutableArrayRef<char> dense) const {
  PlainElements from(Float16Type::get(getContext())), to(elementType);
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t slot = load<int32_t>(planes[0], row / kSparseRows),
                 end = load<int32_t>(planes[0], row / kSparseRows + 1);
         slot < end; ++slot) {
      int64_t place = slot * kSparseRows + row % kSparseRows, at = row * shape[1] + load<uint16_t>(planes[1], place);
      float value = from.load(planes[2], place);
      to.store(dense, at, getCodebook() ? to.load(dense, at) + value : value);
    }
}

void DenseSparseAttr::unpack(ArrayRef<int64_t> shape, Type elementType, ArrayRef<ArrayRef<char>> planes,
                             MutableArrayRef<char> dense) const {
  getBase().unpack(shape, elementType, planes.drop_front(kSparsePlanes), dense);
  placeOutliers(shape, elementType, planes, dense);
}

//===- IR ---------------------------------------------------------------------------------------------------------===//

namespace {
/// Looks for a column among the outliers of a row.
class OutlierSearch {
public:
  OutlierSearch(OpBuilder &builder, Location loc, ValueRange planes, Value row)
      : builder(builder), loc(loc), planes(planes), count(cast<ShapedType>(planes[1].getType()).getDimSize(0)),
        panel(arith::DivUIOp::create(builder, loc, row, constant(kSparseRows))),
        lane(arith::RemUIOp::create(builder, loc, row, constant(kSparseRows))), begin(readStart(panel)),
        end(readStart(arith::AddIOp::create(builder, loc, panel, constant(1)))) {}

  /// The first slot of the row whose column is not below `column`: halves of what is left, down to one.
  Value findFirst(Value column) {
    Value first = begin;
    auto most = static_cast<uint64_t>(std::min(count, compress::kMostSparseColumns));
    for (auto step = static_cast<int64_t>(llvm::bit_floor(most)); step > 0; step /= 2) {
      Value next = arith::AddIOp::create(builder, loc, first, constant(step));
      Value before = arith::SubIOp::create(builder, loc, next, constant(1));
      Value isBelow = compare(arith::CmpIPredicate::ult, readColumn(before), column);
      Value isInside = compare(arith::CmpIPredicate::ule, next, end);
      Value both = arith::AndIOp::create(builder, loc, isBelow, isInside);
      first = arith::SelectOp::create(builder, loc, both, next, first);
    }
    return first;
  }
  /// Whether the row has a slot of that number, and it has the column.
  Value isAt(Value slot, Value column) {
    Value isColumn = compare(arith::CmpIPredicate::eq, readColumn(slot), column);
    return arith::AndIOp::create(builder, loc, compare(arith::CmpIPredicate::ult, slot, end), isColumn);
  }
  Value readValue(Value slot) { return read(planes[2], slot); }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  /// Slots after the last are read as that one, and not used.
  Value read(Value plane, Value slot) {
    Value there = arith::MinUIOp::create(builder, loc, slot, constant(count - 1));
    return tensor::ExtractOp::create(builder, loc, plane, ValueRange{there, lane});
  }
  Value readStart(Value of) {
    Value start = tensor::ExtractOp::create(builder, loc, planes[0], of);
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), start);
  }
  Value readColumn(Value slot) {
    return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), read(planes[1], slot));
  }

  OpBuilder &builder;
  Location loc;
  ValueRange planes;
  int64_t count; // of slots
  Value panel, lane, begin, end;
};
} // namespace

Value DenseSparseAttr::buildChoice(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                                   ValueRange indices, Value element) const {
  OutlierSearch search(builder, loc, planes, indices[0]);
  Value first = search.findFirst(indices[1]);
  Value value = arith::ExtFOp::create(builder, loc, builder.getF32Type(), search.readValue(first));
  if (getCodebook())
    value = arith::AddFOp::create(builder, loc, element, value);
  value = arith::SelectOp::create(builder, loc, search.isAt(first, indices[1]), value, element);
  return elementType.isF32() ? value : arith::TruncFOp::create(builder, loc, elementType, value);
}

Value DenseSparseAttr::buildElement(OpBuilder &builder, Location loc, Type elementType, ValueRange planes,
                                    ValueRange indices) const {
  Value element = getBase().buildElement(builder, loc, builder.getF32Type(), planes.drop_front(kSparsePlanes), indices);
  return buildChoice(builder, loc, elementType, planes, indices, element);
}

ActivationRounding DenseSparseAttr::getActivationRounding() const { return getBase().getActivationRounding(); }

std::string DenseSparseAttr::getKernelSuffix() const { return "outliers." + getBase().getKernelSuffix(); }
