// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of constants: at known indices, or anywhere in a matrix that has one value on some neighbouring diagonals and
// another one elsewhere, as masks of a fixed length have.

#include "ElementEvaluator.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace hone::analysis {

static const Expression *toExpression(Attribute attr, Expressions &e) {
  if (auto real = dyn_cast<FloatAttr>(attr))
    return e.real(real.getValueAsDouble());
  auto integer = dyn_cast<IntegerAttr>(attr);
  if (!integer)
    return nullptr;
  if (integer.getType().isInteger(1))
    return e.flag(integer.getValue().getBoolValue());
  if (integer.getType().isUnsignedInteger())
    return e.integer(static_cast<int64_t>(integer.getValue().getZExtValue()));
  return e.integer(integer.getValue().getSExtValue());
}

//===----------------------------------------------------------------------===//
// Diagonals
//===----------------------------------------------------------------------===//

namespace {
/// The elements of a matrix as bytes.
struct Matrix {
  ArrayRef<char> bytes;
  int64_t width, rows, columns;

  StringRef at(int64_t row, int64_t column, int64_t count = 1) const {
    return StringRef(bytes.data() + (row * columns + column) * width, count * width);
  }
  /// The first element of the diagonal on which row - column is `diagonal`.
  StringRef onDiagonal(int64_t diagonal) const { return diagonal < 0 ? at(0, -diagonal) : at(diagonal, 0); }
  bool hasEqualDiagonals() const {
    for (int64_t row = 1; row < rows; ++row)
      if (at(row, 1, columns - 1) != at(row - 1, 0, columns - 1))
        return false;
    return true;
  }
};
} // namespace

static Attribute toAttribute(StringRef bytes, Type element) {
  if (element.isInteger(1))
    return IntegerAttr::get(element, bytes[0] != 0);
  return DenseElementsAttr::getFromRawBuffer(RankedTensorType::get({1}, element), ArrayRef(bytes.data(), bytes.size()))
      .getSplatValue<Attribute>();
}

static std::optional<Diagonals> findDiagonals(const Matrix &matrix, Type element) {
  if (!matrix.hasEqualDiagonals())
    return std::nullopt;
  SmallVector<int64_t> changes;
  for (int64_t diagonal = 2 - matrix.columns; diagonal < matrix.rows && changes.size() <= 2; ++diagonal)
    if (matrix.onDiagonal(diagonal) != matrix.onDiagonal(diagonal - 1))
      changes.push_back(diagonal);
  bool isBand = changes.size() == 2 && matrix.onDiagonal(changes[1]) == matrix.onDiagonal(changes[0] - 1);
  if (changes.size() != 1 && !isBand)
    return std::nullopt;
  return Diagonals{changes[0], isBand ? std::optional(changes[1]) : std::nullopt,
                   toAttribute(matrix.onDiagonal(changes[0]), element),
                   toAttribute(matrix.onDiagonal(changes[0] - 1), element)};
}

/// What is found in `elements`, of which all but the last two dimensions are 1.
static std::optional<Diagonals> findDiagonals(Attribute elements, RankedTensorType type) {
  auto dense = dyn_cast<DenseElementsAttr>(elements);
  auto resource = dyn_cast<DenseResourceElementsAttr>(elements);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  if ((!dense && !blob) || (dense && dense.isSplat()))
    return std::nullopt;
  int64_t rows = type.getShape()[type.getRank() - 2], columns = type.getShape().back();
  std::string held = dense ? getElements(dense) : std::string();
  ArrayRef<char> bytes = dense ? ArrayRef(held.data(), held.size()) : blob->getData();
  int64_t width = static_cast<int64_t>(bytes.size()) / (rows * columns);
  bool fits = width > 0 && static_cast<int64_t>(bytes.size()) == rows * columns * width;
  return fits ? findDiagonals(Matrix{bytes, width, rows, columns}, type.getElementType()) : std::nullopt;
}

const Expression *ElementEvaluator::diagonals(Attribute elements, RankedTensorType type) {
  int64_t rank = type.getRank();
  Type element = type.getElementType();
  bool isMatrix = elements && rank >= 2 && type.hasStaticShape() && element.isIntOrFloat() &&
                  (element.isInteger(1) || element.getIntOrFloatBitWidth() >= 8) && type.getShape()[rank - 2] > 1 &&
                  type.getShape()[rank - 1] > 1 &&
                  llvm::all_of(type.getShape().drop_back(2), [](int64_t size) { return size == 1; });
  if (!isMatrix)
    return nullptr;
  auto [it, isNew] = analysis.diagonals.try_emplace(elements);
  if (isNew)
    it->second = findDiagonals(elements, type);
  const std::optional<Diagonals> &found = it->second;
  if (!found)
    return nullptr;
  Polynomial diagonal = indices[rank - 2] - indices[rank - 1];
  const Expression *isInside = e.nonNegative(diagonal - found->first);
  if (found->end)
    isInside = e.conjoin({isInside, e.nonNegative(Polynomial(*found->end - 1) - diagonal)});
  const Expression *inside = toExpression(found->inside, e), *outside = toExpression(found->outside, e);
  if (!inside || !outside)
    return nullptr;
  return inside->kind == ExpressionKind::Integer ? selectInteger(isInside, inside, outside)
                                                 : e.select(isInside, inside, outside);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

const Expression *ElementEvaluator::constant(Attribute attr) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(attr);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!elements)
    return type ? diagonals(attr, type) : nullptr;
  if (elements.empty() || !elements.getElementType().isIntOrFloat())
    return nullptr;
  if (elements.isSplat())
    return toExpression(elements.getSplatValue<Attribute>(), e);
  auto shape = elements.getType().getShape();
  int64_t position = 0;
  for (auto [index, size] : llvm::zip_equal(indices, shape)) {
    auto known = index.getConstant();
    if (!known)
      return diagonals(elements, cast<RankedTensorType>(elements.getType()));
    if (*known < 0 || *known >= size)
      return nullptr;
    position = position * size + *known;
  }
  return toExpression(elements.getValues<Attribute>()[position], e);
}

/// A parameter whose elements are bytes may be a mask; others are weights, and stay loads.
const Expression *ElementEvaluator::param() {
  auto get = cast<GetParamOp>(op);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  bool mayBeMask =
      type && !type.getEncoding() && type.getElementType().isInteger() && type.getElementTypeBitWidth() <= 8;
  auto source = mayBeMask ? SymbolTable::lookupNearestSymbolFrom<ParamOp>(get, get.getNameAttr()) : ParamOp();
  return source ? diagonals(source.getStorage(), type) : nullptr;
}

} // namespace hone::analysis
