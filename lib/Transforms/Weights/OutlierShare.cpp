// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OutlierShare.h"

#include "hone/Compress/Outliers.h"
#include "hone/Compress/Sensitivities.h"
#include "hone/Dialect/Hone/Report.h"

#include "mlir/IR/Diagnostics.h"

#include <cmath>

using namespace mlir;

namespace hone {

FailureOr<OutlierShares> OutlierShares::read(StringRef text, const std::string &file, Location loc) {
  double percent = 0;
  StringRef number = text;
  if (!text.empty() && (!number.consume_back("%") || number.getAsDouble(percent) || !(percent > 0 && percent <= 100)))
    return emitError(loc) << "expected outliers to be a share of the elements such as 0.45%, but got '" << text << "'";
  OutlierShares shares;
  shares.ofAll = percent / 100;
  if (file.empty())
    return shares;
  auto opened = compress::Sensitivities::open(file);
  if (failed(report(loc, opened.status())))
    return failure();
  auto distributed = opened->distribute(shares.ofAll);
  if (failed(report(loc, distributed.status())))
    return failure();
  shares.ofWeights = std::move(*distributed);
  return shares;
}

double OutlierShares::of(StringRef weight) const {
  auto found = ofWeights.find(weight.str());
  return found == ofWeights.end() ? ofAll : found->second;
}

EncodingInterface withOutliers(EncodingInterface base, RankedTensorType type, double share, int64_t parts) {
  int64_t rows = type.getDimSize(0) / parts, columns = type.getDimSize(1);
  if (parts > 1 && rows % compress::kSparseRows != 0)
    return base;
  int64_t panels = compress::countSparsePanels(rows);
  int64_t slots = parts * std::llround(share * static_cast<double>(panels * columns));
  if (slots == 0 || columns > compress::kMostSparseColumns)
    return base;
  return DenseSparseAttr::get(Attribute(base), slots * compress::kSparseRows);
}

} // namespace hone
