// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of squares over pieces of fixed size, so that their order does not depend on threads.

#include "hone/Compress/Difference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace hone::compress {

double relativeDifference(std::span<const float> before, std::span<const float> after) {
  constexpr int64_t piece = 1 << 16;
  auto count = static_cast<int64_t>(before.size()), pieces = (count + piece - 1) / piece;
  std::vector<double> changes(pieces), sizes(pieces);
#pragma omp parallel for schedule(static)
  for (int64_t number = 0; number < pieces; ++number)
    for (int64_t i = number * piece, end = std::min(count, i + piece); i < end; ++i) {
      double element = before[i], change = element - after[i];
      changes[number] += change * change;
      sizes[number] += element * element;
    }
  double change = 0, size = 0;
  for (int64_t number = 0; number < pieces; ++number) {
    change += changes[number];
    size += sizes[number];
  }
  return size > 0 ? std::sqrt(change / size) : 0;
}

} // namespace hone::compress
