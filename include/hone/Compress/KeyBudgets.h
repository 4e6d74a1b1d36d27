// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many keys each layer keeps, so that all keep the same share of their attention (PrefixKV).

#ifndef HONE_COMPRESS_KEYBUDGETS_H
#define HONE_COMPRESS_KEYBUDGETS_H

#include "hone/io/status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace hone::compress {

struct KeyBudgets {
  std::vector<int64_t> budgets; // by layer
  double share = 0;             // of its attention mass that the layer which keeps least keeps
  double meanShare = 0;         // of all layers
};

/// The shares of attention mass that layers keep with these budgets. `mass` is as searchKeyBudgets takes it.
KeyBudgets shareOf(std::span<const std::vector<double>> mass, std::vector<int64_t> budgets);

/// Chooses budgets whose sum is `budget` times the number of layers, each between `least` and the number of keys (Wang et al., "PrefixKV:
/// Adaptive Prefix KV Cache is What Vision Instruction-Following Models Need for Efficient Generation", 2024): every layer keeps the
/// shortest prefix of its keys, the one with most mass first, that has a share p of their mass, and p is found by bisection. Where no p
/// gives the sum, as several layers keep one key more at once, keys of those layers are added one by one, the one with the greatest share
/// first and of equal ones that of the earlier layer. `mass` is what the keys of each layer got, the greatest first; all layers have the
/// same number of keys. Fails where mass is not finite, negative, ascending or nothing, where there are other numbers of keys, and where
/// `budget` is not between `least` and the number of keys. The time is O(layers · log(keys) · 64).
absl::StatusOr<KeyBudgets> searchKeyBudgets(std::span<const std::vector<double>> mass, int64_t budget, int64_t least);

} // namespace hone::compress

#endif // HONE_COMPRESS_KEYBUDGETS_H
