// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many positions each sequence of a batch holds.

#ifndef HONE_RUNTIME_CORE_LENGTHS_H
#define HONE_RUNTIME_CORE_LENGTHS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hone::rt {

/// Sequences are numbered from 0; one whose length was never set has that of the longest.
class Lengths {
public:
  Lengths() = default;
  /// The same for all sequences.
  Lengths(int64_t all) : most(all) {}
  /// By sequence, one at least.
  explicit Lengths(std::vector<int64_t> each) : most(std::ranges::max(each)), own(std::move(each)) {
    if (std::ranges::min(own) == most)
      own.clear();
  }

  int64_t longest() const { return most; }
  int64_t shortest() const { return own.empty() ? most : std::ranges::min(own); }
  bool areEqual() const { return own.empty(); }
  int64_t of(int64_t sequence) const {
    bool isKnown = sequence >= 0 && sequence < static_cast<int64_t>(own.size());
    return isKnown ? own[static_cast<size_t>(sequence)] : most;
  }
  /// How many fewer than the longest.
  int64_t lagOf(int64_t sequence) const { return most - of(sequence); }

  void grow(int64_t count) {
    most += count;
    for (int64_t &each : own)
      each += count;
  }

  /// Whether no sequence of these is longer than that of `other`.
  bool fitIn(const Lengths &other) const {
    bool fit = most <= other.most || !own.empty();
    for (size_t i = 0; i < std::max(own.size(), other.own.size()); ++i)
      fit = fit && of(static_cast<int64_t>(i)) <= other.of(static_cast<int64_t>(i));
    return fit;
  }

  /// Of each sequence the smaller one.
  Lengths cutTo(const Lengths &other) const {
    if (own.empty() && other.own.empty())
      return std::min(most, other.most);
    std::vector<int64_t> each(std::max(own.size(), other.own.size()));
    for (size_t i = 0; i < each.size(); ++i)
      each[i] = std::min(of(static_cast<int64_t>(i)), other.of(static_cast<int64_t>(i)));
    return Lengths(std::move(each));
  }

  bool operator==(const Lengths &) const = default;

private:
  int64_t most = 0;
  std::vector<int64_t> own; // empty where all are the same
};

} // namespace hone::rt

#endif // HONE_RUNTIME_CORE_LENGTHS_H
