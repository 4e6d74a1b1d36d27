// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bisection for the share of attention that all layers keep.

#include "hone/Compress/KeyBudgets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone::compress {
namespace {

using Shares = std::vector<std::vector<double>>; // by layer, of its first n + 1 keys

/// Halvings of [0, 1] after which both ends are neighbours among doubles near 1.
constexpr int kHalvings = 64;

Shares cumulate(std::span<const std::vector<double>> mass) {
  Shares shares;
  for (const std::vector<double> &layer : mass) {
    std::vector<double> &own = shares.emplace_back(layer.size());
    std::partial_sum(layer.begin(), layer.end(), own.begin());
    double all = own.back();
    for (double &share : own)
      share /= all;
  }
  return shares;
}

/// The shortest prefixes that have a share `p`.
std::vector<int64_t> prefixesOf(const Shares &shares, double p, int64_t least) {
  std::vector<int64_t> counts;
  for (const std::vector<double> &layer : shares) {
    auto found = std::ranges::lower_bound(layer, p);
    auto count = std::min(found - layer.begin() + 1, std::ssize(layer));
    counts.push_back(std::max<int64_t>(count, least));
  }
  return counts;
}

int64_t sumOf(std::span<const int64_t> counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

absl::Status checkMass(std::span<const std::vector<double>> mass) {
  for (size_t layer = 0; layer < mass.size(); ++layer) {
    const std::vector<double> &own = mass[layer];
    bool isRight = std::ranges::all_of(own, [](double x) { return std::isfinite(x) && x >= 0; }) &&
                   std::ranges::is_sorted(own, std::greater()) && !own.empty() && own.front() > 0;
    if (!isRight || own.size() != mass.front().size())
      return io::invalid("expected the attention mass of layer ", layer, " to be ", mass.front().size(),
                         " finite numbers, 0 or more and not all 0, the greatest first");
  }
  return absl::OkStatus();
}

} // namespace

KeyBudgets shareOf(std::span<const std::vector<double>> mass, std::vector<int64_t> budgets) {
  KeyBudgets result = {std::move(budgets), 1, 0};
  Shares shares = cumulate(mass);
  for (size_t layer = 0; layer < shares.size(); ++layer) {
    int64_t count = result.budgets[layer];
    double share = count > 0 ? shares[layer][static_cast<size_t>(count - 1)] : 0;
    result.share = std::min(result.share, share);
    result.meanShare += share / static_cast<double>(shares.size());
  }
  return result;
}

absl::StatusOr<KeyBudgets> searchKeyBudgets(std::span<const std::vector<double>> mass, int64_t budget, int64_t least) {
  if (mass.empty())
    return io::invalid("expected the attention mass of one layer at least");
  HONE_RETURN_IF_ERROR(checkMass(mass));
  auto keys = static_cast<int64_t>(mass.front().size());
  if (budget < least || budget > keys)
    return io::invalid("expected a budget of ", least, " to ", keys,
                       " keys a layer, as many as were measured, but got ", budget);
  Shares shares = cumulate(mass);
  int64_t wanted = budget * std::ssize(mass);
  double low = 0, high = 1;
  std::vector<int64_t> fewer = prefixesOf(shares, low, least);
  std::vector<int64_t> more(shares.size(), keys);
  for (int halving = 0; halving < kHalvings; ++halving) {
    double middle = low + (high - low) / 2;
    std::vector<int64_t> counts = prefixesOf(shares, middle, least);
    if (sumOf(counts) <= wanted)
      low = middle, fewer = std::move(counts);
    else
      high = middle, more = std::move(counts);
  }
  for (int64_t missing = wanted - sumOf(fewer); missing > 0; --missing) {
    auto gain = [&](size_t layer) {
      auto next = static_cast<size_t>(fewer[layer]);
      return fewer[layer] >= more[layer] ? -1.0 : shares[layer][next] - (next > 0 ? shares[layer][next - 1] : 0);
    };
    size_t best = 0;
    for (size_t layer = 1; layer < shares.size(); ++layer)
      if (gain(layer) > gain(best))
        best = layer;
    ++fewer[best];
  }
  return shareOf(mass, std::move(fewer));
}

} // namespace hone::compress
