// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which positions of a bounded state stay. A layer that a call would make longer than its budget evicts before the call, so that between two
// calls all that the last one appended is there.

#ifndef HONE_RUNTIME_CORE_RETENTION_H
#define HONE_RUNTIME_CORE_RETENTION_H

#include "core/state.h"

namespace hone::rt {

/// The entry that gives the attention mass of keys.
constexpr std::string_view kImportanceEntry = "importance";

/// The mean of each number and its neighbours, `width` in all; at the ends of those that there are.
std::vector<double> meanOfNeighbours(std::span<const double> values, int64_t width);

/// Which `count` positions stay, ascending: the first `sinks` and the last `recent`, and of the others those of the most mass, of equal ones
/// the earlier. `mass` has one number for each position; `count` is `sinks + recent` at least and their number at most.
std::vector<int64_t> chooseKept(std::span<const double> mass, int64_t count, int64_t sinks, int64_t recent);

/// The eviction of one session's state, which has a retention.
class Retention {
public:
  /// Gives the mass of the keys of each layer with queries, f32 [1, heads, held - 1], by what their slots hold.
  using Importance = absl::FunctionRef<absl::StatusOr<std::vector<io::Array>>()>;

  explicit Retention(const io::RetentionInfo &info) : info(&info), layers(info.layers.size()) {}

  /// Before a call that appends `fresh` positions: layers that would hold more than their budgets evict down to a block less, or what sinks
  /// and recent positions are. Slots of queries are cut to those that count.
  absl::Status makeRoom(State &state, int64_t fresh, Importance importance);

  /// How many positions a slot can hold before a call; nothing for one that is not bounded.
  std::optional<int64_t> boundOf(size_t slot) const;

private:
  /// Of a layer, by head: the mass that its first keys got of earlier queries.
  using Mass = std::vector<std::vector<double>>;

  bool isDue(const State &state, size_t layer, int64_t fresh) const;
  bool hasManyQueries(const State &state, const io::LayerRetention &layer) const;
  absl::Status measure(State &state, Importance importance);
  absl::Status evict(State &state, size_t layer);
  absl::Status keepQueries(State &state, const io::LayerRetention &layer, int64_t count);

  const io::RetentionInfo *info;
  std::vector<Mass> layers;
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_RETENTION_H
