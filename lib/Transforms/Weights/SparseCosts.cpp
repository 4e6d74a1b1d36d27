// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks costs up in the table.

#include "SparseCosts.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>

namespace hone {
namespace {

constexpr int64_t kRows[] = {
#define HONE_SPARSE_ROWS(...) __VA_ARGS__
#include "SparseCosts.def"
};
constexpr size_t kRowCounts = std::size(kRows);

struct Costs {
  llvm::StringRef isa, format;
  LayerShape shape;
  double costs[kRowCounts];
};

constexpr Costs kCosts[] = {
#define HONE_SPARSE_COSTS(isa, format, outputs, inputs, ...) {#isa, #format, {outputs, inputs}, {__VA_ARGS__}},
#include "SparseCosts.def"
};

constexpr llvm::StringRef kIsas[] = {
#define HONE_ISA(isa, space, ...) #space,
#include "hone/cpu/isa.def"
#undef HONE_ISA
};

double distance(LayerShape a, LayerShape b) {
  auto part = [](int64_t x, int64_t y) { return std::abs(std::log(static_cast<double>(x) / static_cast<double>(y))); };
  return part(a.outputs, b.outputs) + part(a.inputs, b.inputs);
}

double interpolate(const Costs &of, int64_t rows) {
  const int64_t *above = llvm::lower_bound(kRows, rows);
  if (above == std::begin(kRows))
    return of.costs[0];
  if (above == std::end(kRows))
    return of.costs[kRowCounts - 1];
  size_t i = above - std::begin(kRows);
  double from = std::log(kRows[i - 1]), to = std::log(kRows[i]), part = (std::log(rows) - from) / (to - from);
  return of.costs[i - 1] + part * (of.costs[i] - of.costs[i - 1]);
}

const Costs *findNearest(llvm::StringRef isa, llvm::StringRef format, LayerShape shape) {
  const Costs *nearest = nullptr;
  for (const Costs &of : kCosts)
    if (of.isa == isa && of.format == format &&
        (!nearest || distance(of.shape, shape) < distance(nearest->shape, shape)))
      nearest = &of;
  return nearest;
}

} // namespace

llvm::ArrayRef<llvm::StringRef> getCostIsas() { return kIsas; }

std::optional<double> getSparseCost(llvm::StringRef isa, llvm::StringRef format, LayerShape shape, int64_t rows) {
  bool isReached = false;
  for (llvm::StringRef each : llvm::reverse(kIsas)) {
    isReached |= each == isa;
    if (const Costs *nearest = isReached ? findNearest(each, format, shape) : nullptr)
      return interpolate(*nearest, rows);
  }
  return std::nullopt;
}

} // namespace hone
