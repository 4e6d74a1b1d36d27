//===- Retention.cpp - how many keys a state keeps ----------------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The retention of a state to an attribute and back.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/Retention.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace hone;

Attribute Retention::toAttribute(MLIRContext *context) const {
  Builder b(context);
  auto number = [&](StringRef name, int64_t value) { return b.getNamedAttr(name, b.getI64IntegerAttr(value)); };
  SmallVector<Attribute> list;
  for (const LayerRetention &layer : layers) {
    SmallVector<NamedAttribute> fields = {number("keys", layer.keys), number("values", layer.values),
                                          number("budget", layer.budget), number("sinks", layer.sinks),
                                          number("recent", layer.recent)};
    if (layer.queries)
      fields.push_back(number("queries", *layer.queries));
    list.push_back(b.getDictionaryAttr(fields));
  }
  SmallVector<NamedAttribute> fields = {number("block", block), number("pooling", pooling),
                                        b.getNamedAttr("layers", b.getArrayAttr(list))};
  if (accumulates)
    fields.push_back(b.getNamedAttr("accumulates", b.getUnitAttr()));
  if (sharesHeads)
    fields.push_back(b.getNamedAttr("shares_heads", b.getUnitAttr()));
  return b.getDictionaryAttr(fields);
}

/// The number of a field, or -1.
static int64_t getNumber(DictionaryAttr fields, StringRef name) {
  auto number = fields.getAs<IntegerAttr>(name);
  return number && number.getType().isInteger(64) ? number.getInt() : -1;
}

std::optional<Retention> Retention::get(Attribute attribute) {
  auto fields = dyn_cast_or_null<DictionaryAttr>(attribute);
  auto list = fields ? fields.getAs<ArrayAttr>("layers") : ArrayAttr();
  if (!list)
    return std::nullopt;
  Retention retention;
  retention.block = getNumber(fields, "block");
  retention.pooling = getNumber(fields, "pooling");
  retention.accumulates = fields.contains("accumulates");
  retention.sharesHeads = fields.contains("shares_heads");
  for (Attribute element : list) {
    auto of = dyn_cast<DictionaryAttr>(element);
    if (!of)
      return std::nullopt;
    LayerRetention &layer = retention.layers.emplace_back();
    layer = {getNumber(of, "keys"),   getNumber(of, "values"), std::nullopt,
             getNumber(of, "budget"), getNumber(of, "sinks"),  getNumber(of, "recent")};
    if (of.contains("queries"))
      layer.queries = getNumber(of, "queries");
    if (layer.keys < 0 || layer.values < 0 || layer.queries.value_or(0) < 0 || layer.sinks < 0 || layer.recent < 0 ||
        layer.budget < 1)
      return std::nullopt;
  }
  return retention.block > 0 && retention.pooling > 0 ? std::optional(std::move(retention)) : std::nullopt;
}
