// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the law says.

#include "plan/p2_law.h"

#include <algorithm>
#include <cmath>

namespace hone::plan {

double P2Law::factorOf(const Pruning &pruning) const {
  return std::pow(pruning.rate, -gamma) * std::pow(pruning.parameters / parameterUnit, -delta);
}

double P2Law::constantOf(const Pruning &pruning) const {
  return modelTerm * std::pow(pruning.parameters / parameterUnit, -alpha) + floor;
}

double P2Law::leastLoss(const Pruning &pruning) const {
  return pruning.denseLoss + factorOf(pruning) * constantOf(pruning);
}

double P2Law::lossOf(const Pruning &pruning, double tokens) const {
  double ofTokens = tokenTerm * std::pow(tokens / tokenUnit, -beta);
  return pruning.denseLoss + factorOf(pruning) * (constantOf(pruning) + ofTokens);
}

std::optional<double> P2Law::tokensFor(const Pruning &pruning, double loss) const {
  double left = loss - leastLoss(pruning);
  if (!(left > 0))
    return std::nullopt;
  return tokenUnit * std::pow(factorOf(pruning) * tokenTerm / left, 1 / beta);
}

double P2Law::tokensUntilFlat(const Pruning &pruning, double gain) const {
  double doubled = factorOf(pruning) * tokenTerm * (1 - std::exp2(-beta));
  return tokenUnit * std::pow(doubled / gain, 1 / beta);
}

std::optional<double> P2Law::rateFor(const Pruning &pruning, double tokens, double loss) const {
  if (gamma == 0)
    return std::nullopt;
  double excessOfAll = lossOf({pruning.parameters, 1, 0}, tokens); // the rate enters as a power, which is 1 there
  return std::pow(std::max(loss - pruning.denseLoss, 0.0) / excessOfAll, -1 / gamma);
}

} // namespace hone::plan
