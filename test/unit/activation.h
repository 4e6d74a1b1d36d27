// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations of linear layers in double precision.

#ifndef HONE_TEST_UNIT_ACTIVATION_H
#define HONE_TEST_UNIT_ACTIVATION_H

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hone::test {

/// The activation of that number in kernels of linear layers: 0 none, 1 relu, 2 silu, 3 gelu, 4 gelu by tanh.
inline double activate(double v, int64_t activation) {
  switch (activation) {
  case 1:
    return std::max(v, 0.0);
  case 2:
    return v / (1 + std::exp(-v));
  case 3:
    return v * 0.5 * (1 + std::erf(v / std::sqrt(2.0)));
  case 4:
    return 0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
  default:
    return v;
  }
}

} // namespace hone::test

#endif // HONE_TEST_UNIT_ACTIVATION_H
