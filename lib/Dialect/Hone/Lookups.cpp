//===- Lookups.cpp - what callers have to know of tables ----------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds of lookups to attributes and back.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/Lookups.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace hone;

Attribute LookupRows::toAttribute(MLIRContext *context) const {
  return DenseI64ArrayAttr::get(context, {rows, offset});
}

std::optional<LookupRows> LookupRows::get(Attribute attribute) {
  auto numbers = dyn_cast_or_null<DenseI64ArrayAttr>(attribute);
  if (!numbers || numbers.size() != 2 || numbers[0] <= 0)
    return std::nullopt;
  return LookupRows{numbers[0], numbers[1]};
}

Attribute hone::toAttribute(ArrayRef<PositionLimit> limits, MLIRContext *context) {
  Builder b(context);
  SmallVector<Attribute> list;
  for (const PositionLimit &limit : limits) {
    SmallVector<StringRef> sizes(limit.sizes.begin(), limit.sizes.end());
    list.push_back(b.getDictionaryAttr({b.getNamedAttr("most", b.getI64IntegerAttr(limit.most)),
                                        b.getNamedAttr("sizes", b.getStrArrayAttr(sizes)),
                                        b.getNamedAttr("table", b.getStringAttr(limit.table))}));
  }
  return b.getArrayAttr(list);
}

std::optional<SmallVector<PositionLimit>> hone::getPositionLimits(Attribute attribute) {
  auto list = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!list)
    return std::nullopt;
  SmallVector<PositionLimit> limits;
  for (Attribute element : list) {
    auto fields = dyn_cast<DictionaryAttr>(element);
    auto most = fields ? fields.getAs<IntegerAttr>("most") : IntegerAttr();
    auto sizes = fields ? fields.getAs<ArrayAttr>("sizes") : ArrayAttr();
    auto table = fields ? fields.getAs<StringAttr>("table") : StringAttr();
    bool isRight = most && most.getType().isInteger(64) && most.getInt() >= 0 && table && sizes && !sizes.empty() &&
                   llvm::all_of(sizes, llvm::IsaPred<StringAttr>);
    if (!isRight)
      return std::nullopt;
    PositionLimit &limit = limits.emplace_back();
    for (auto size : sizes.getAsRange<StringAttr>())
      limit.sizes.push_back(size.str());
    limit.most = most.getInt();
    limit.table = table.str();
  }
  return limits;
}
