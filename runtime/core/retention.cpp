// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice of positions that stay, by sinks, recency and attention mass.

#include "core/retention.h"

#include <numeric>

namespace hone::rt {
namespace {

/// Queries whose mass is added up at once, where that of all counts: slots of queries are as long.
constexpr int64_t kMostQueries = 128;

std::vector<int64_t> ascending(int64_t first, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

/// The mean over heads.
std::vector<double> meanOf(std::span<const std::vector<double>> heads) {
  std::vector<double> mean(heads.front().size());
  for (const std::vector<double> &head : heads)
    for (size_t i = 0; i < mean.size(); ++i)
      mean[i] += head[i] / static_cast<double>(heads.size());
  return mean;
}

} // namespace

std::vector<double> meanOfNeighbours(std::span<const double> values, int64_t width) {
  std::vector<double> means;
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    int64_t begin = std::max<int64_t>(i - width / 2, 0), end = std::min(i - width / 2 + width, std::ssize(values));
    double sum = 0;
    for (int64_t j = begin; j < end; ++j)
      sum += values[static_cast<size_t>(j)];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

std::vector<int64_t> chooseKept(std::span<const double> mass, int64_t count, int64_t sinks, int64_t recent) {
  int64_t held = std::ssize(mass);
  std::vector<int64_t> others = ascending(sinks, held - sinks - recent);
  auto isBefore = [&](int64_t a, int64_t b) {
    double ofA = mass[static_cast<size_t>(a)], ofB = mass[static_cast<size_t>(b)];
    return ofA != ofB ? ofA > ofB : a < b;
  };
  auto chosen = others.begin() + (count - sinks - recent);
  std::ranges::nth_element(others, chosen, isBefore);
  others.erase(chosen, others.end());
  std::vector<int64_t> kept = ascending(0, sinks), last = ascending(held - recent, recent);
  kept.insert(kept.end(), others.begin(), others.end());
  kept.insert(kept.end(), last.begin(), last.end());
  std::ranges::sort(kept);
  return kept;
}

std::optional<int64_t> Retention::boundOf(size_t slot) const {
  auto number = static_cast<int64_t>(slot);
  for (const io::LayerRetention &layer : info->layers) {
    if (number == layer.keys || number == layer.values)
      return layer.budget;
    if (number == layer.queries)
      return info->accumulates ? kMostQueries : layer.recent + info->block;
  }
  return std::nullopt;
}

bool Retention::isDue(const State &state, size_t layer, int64_t fresh) const {
  const io::LayerRetention &own = info->layers[layer];
  int64_t held = state.heldBy(static_cast<size_t>(own.keys));
  return held + fresh > own.budget && held > own.budget - info->block;
}

bool Retention::hasManyQueries(const State &state, const io::LayerRetention &layer) const {
  return layer.queries &&
         state.heldBy(static_cast<size_t>(*layer.queries)) > *boundOf(static_cast<size_t>(*layer.queries));
}

/// The last `count` queries of a layer stay, or as many as there are.
absl::Status Retention::keepQueries(State &state, const io::LayerRetention &layer, int64_t count) {
  auto slot = static_cast<size_t>(*layer.queries);
  int64_t held = state.heldBy(slot), kept = std::min(held, count);
  std::vector<int64_t> last = ascending(held - kept, kept);
  return kept == held ? absl::OkStatus() : state.evict(slot, {&last, 1});
}

absl::Status Retention::makeRoom(State &state, int64_t fresh, Importance importance) {
  if (state.evictedAt() == 0) // a text of its own
    layers.assign(layers.size(), {});
  bool isAnyDue = false, hasMany = false;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    isAnyDue = isAnyDue || isDue(state, layer, fresh);
    hasMany = hasMany || hasManyQueries(state, info->layers[layer]);
  }
  if (!isAnyDue && !hasMany)
    return absl::OkStatus();
  if (!info->accumulates)
    for (const io::LayerRetention &layer : info->layers)
      if (layer.queries)
        HONE_RETURN_IF_ERROR(keepQueries(state, layer, layer.recent));
  if (isAnyDue || info->accumulates)
    HONE_RETURN_IF_ERROR(measure(state, importance));
  // All together, so that they are due together again.
  for (size_t layer = 0; isAnyDue && layer < layers.size(); ++layer)
    HONE_RETURN_IF_ERROR(evict(state, layer));
  return absl::OkStatus();
}

absl::Status Retention::measure(State &state, Importance importance) {
  auto hasQueries = [&](const io::LayerRetention &layer) {
    return layer.queries && state.heldBy(static_cast<size_t>(*layer.queries)) > 0;
  };
  if (std::ranges::none_of(info->layers, hasQueries))
    return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(std::vector<io::Array> results, importance());
  size_t next = 0;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const io::LayerRetention &own = info->layers[layer];
    if (!own.queries)
      continue;
    int64_t held = state.heldBy(static_cast<size_t>(own.keys));
    const io::Array *fresh = next < results.size() ? &results[next++] : nullptr;
    if (!fresh || fresh->dtype() != HONE_F32 || fresh->shape().size() != 3 || fresh->shape()[0] != 1 ||
        fresh->shape()[2] != std::max<int64_t>(held - 1, 0))
      return absl::DataLossError(io::cat("the entry '", kImportanceEntry, "' gave no mass of the ", held,
                                         " keys of layer ", layer, "; the artefact is damaged or mixed from two"));
    Mass mass(static_cast<size_t>(fresh->shape()[1]), std::vector<double>(static_cast<size_t>(held)));
    std::span<const float> values = fresh->as<float>();
    auto row = static_cast<size_t>(fresh->shape()[2]);
    for (size_t head = 0; head < mass.size(); ++head) {
      std::ranges::copy(values.subspan(head * row, row), mass[head].begin());
      if (info->accumulates && head < layers[layer].size())
        for (size_t i = 0; i < layers[layer][head].size(); ++i)
          mass[head][i] += layers[layer][head][i];
    }
    layers[layer] = std::move(mass);
    if (info->accumulates)
      HONE_RETURN_IF_ERROR(keepQueries(state, own, 0));
  }
  return absl::OkStatus();
}

absl::Status Retention::evict(State &state, size_t layer) {
  const io::LayerRetention &own = info->layers[layer];
  int64_t held = state.heldBy(static_cast<size_t>(own.keys)), count = own.budget - info->block;
  if (held <= count)
    return absl::OkStatus();
  Mass &mass = layers[layer];
  if (mass.empty()) // the last ones stay
    mass.emplace_back();
  for (std::vector<double> &head : mass)
    head.resize(static_cast<size_t>(held));
  auto choose = [&](std::span<const double> of) {
    return chooseKept(info->pooling > 1 ? meanOfNeighbours(of, info->pooling) : std::vector(of.begin(), of.end()),
                      count, own.sinks, own.recent);
  };
  std::vector<std::vector<int64_t>> kept;
  if (info->sharesHeads)
    kept.push_back(choose(meanOf(mass)));
  else
    for (const std::vector<double> &head : mass)
      kept.push_back(choose(head));
  HONE_RETURN_IF_ERROR(state.evict(static_cast<size_t>(own.keys), kept));
  HONE_RETURN_IF_ERROR(state.evict(static_cast<size_t>(own.values), kept));
  for (size_t head = 0; head < mass.size(); ++head) {
    const std::vector<int64_t> &stay = kept[kept.size() == 1 ? 0 : head];
    for (size_t i = 0; i < stay.size(); ++i)
      mass[head][i] = mass[head][static_cast<size_t>(stay[i])];
    mass[head].resize(stay.size());
  }
  return absl::OkStatus();
}

} // namespace hone::rt
