// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which elements become outliers, by rank; and by what their groups gain, one after the other.

#include "hone/Compress/Outliers.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>

namespace hone::compress {

//===----------------------------------------------------------------------===//
// By rank
//===----------------------------------------------------------------------===//

/// Elements of a row by what they gain, the best first, as far as anybody asks.
struct Ranking {
  std::vector<int64_t> columns;
  std::vector<double> gains;
  std::vector<bool> needsNext; // whether it gains that only together with the one after it
};

/// The columns of the `count` highest scores of a row.
static Ranking rankHighest(std::span<const float> scores, int64_t count) {
  Ranking ranking;
  auto rank = [&](int64_t i) { return std::isnan(scores[i]) ? std::numeric_limits<float>::infinity() : scores[i]; };
  ranking.columns.resize(scores.size());
  std::iota(ranking.columns.begin(), ranking.columns.end(), 0);
  std::ranges::partial_sort(ranking.columns, ranking.columns.begin() + count,
                            [&](int64_t a, int64_t b) { return rank(a) > rank(b) || (rank(a) == rank(b) && a < b); });
  ranking.columns.resize(count);
  for (int64_t column : ranking.columns)
    ranking.gains.push_back(rank(column));
  ranking.needsNext.assign(count, false);
  return ranking;
}

/// How many slots each panel gets of `slots`, at most `most`: one after the other to the panel whose rows gain most by one more.
static std::vector<int64_t> divideSlots(std::span<const Ranking> rankings, int64_t slots, int64_t most) {
  auto rows = static_cast<int64_t>(rankings.size()), panels = countSparsePanels(rows);
  std::vector<int64_t> counts(panels);
  auto gainOf = [&](int64_t panel) {
    double gain = 0;
    for (int64_t row = panel * kSparseRows; row < std::min((panel + 1) * kSparseRows, rows); ++row)
      gain += rankings[row].gains[counts[panel]];
    return gain;
  };
  auto isAfter = [](const auto &a, const auto &b) {
    return a.first < b.first || (a.first == b.first && a.second > b.second);
  };
  std::priority_queue<std::pair<double, int64_t>, std::vector<std::pair<double, int64_t>>, decltype(isAfter)> queue(
      isAfter);
  for (int64_t panel = 0; panel < panels && most > 0; ++panel)
    queue.emplace(gainOf(panel), panel);
  for (int64_t left = slots; left > 0 && !queue.empty(); --left) {
    int64_t panel = queue.top().second;
    queue.pop();
    if (++counts[panel] < most)
      queue.emplace(gainOf(panel), panel);
  }
  return counts;
}

/// Marks of a matrix; `rank(row, count)` is the Ranking of a row, to be called in parallel. Panels get twice the slots that would be
/// theirs if all had the same, and one, at most.
template <typename Function>
static Outliers markRanked(int64_t rows, int64_t columns, int64_t slots, const Function &rank) {
  int64_t panels = countSparsePanels(rows);
  Outliers marks(rows * columns, slots >= panels * columns);
  if (slots <= 0 || slots >= panels * columns)
    return marks;
  int64_t most = std::min(columns, 2 * (slots + panels - 1) / panels + 1);
  std::vector<Ranking> rankings(rows);
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t row = 0; row < rows; ++row)
    rankings[row] = rank(row, most);
  std::vector<int64_t> counts = divideSlots(rankings, slots, most);
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t row = 0; row < rows; ++row)
    if (int64_t count = counts[row / kSparseRows]; count > 0 && rankings[row].needsNext[count - 1])
      rankings[row] = rank(row, count);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < counts[row / kSparseRows]; ++i)
      marks[row * columns + rankings[row].columns[i]] = true;
  return marks;
}

Outliers markHighest(std::span<const float> scores, int64_t columns, int64_t slots) {
  int64_t rows = columns > 0 ? static_cast<int64_t>(scores.size()) / columns : 0;
  return markRanked(rows, columns, slots, [&](int64_t row, int64_t count) {
    return rankHighest(scores.subspan(row * columns, columns), count);
  });
}

Outliers markLargest(const Weight &weight, int64_t slots) {
  std::vector<float> scores(weight.elements.size());
  std::ranges::transform(weight.elements, scores.begin(), [](float element) { return std::abs(element); });
  return markHighest(scores, weight.columns, slots);
}

Outliers markSensitive(const Weight &weight, const Hessian &hessian, int64_t slots) {
  std::vector<float> scores(weight.elements.size());
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t column = 0; column < weight.columns; ++column) {
      float element = weight.row(row)[column];
      scores[row * weight.columns + column] = element * element * hessian.diagonal(column);
    }
  return markHighest(scores, weight.columns, slots);
}

//===----------------------------------------------------------------------===//
// By what the group gains
//===----------------------------------------------------------------------===//

namespace {

/// Some elements of a group, and what it gains for each of them when all leave.
struct Departure {
  double gain = 0;
  int64_t count = 0;
  std::array<int64_t, kMostTogether> columns = {};
};

/// A group of a row, without the elements that have left.
class GroupLoss {
public:
  GroupLoss(const AffineFormat &format, std::span<const float> importance, int64_t first, std::span<const float> rest)
      : format(format), importance(importance), first(first), rest(rest.begin(), rest.end()) {}

  /// The best departure of `most` elements at most. To be asked once.
  Departure findBest(int64_t most) {
    double before = loss();
    Departure best;
    for (size_t k = 0; k < rest.size(); ++k)
      if (errors[k] > best.gain)
        best = {errors[k], 1, {first + static_cast<int64_t>(k)}};
    auto together = static_cast<int64_t>(std::min({rest.size(), size_t(kMostTogether), static_cast<size_t>(most)}));
    std::vector<int64_t> largest(rest.size());
    std::iota(largest.begin(), largest.end(), 0);
    std::ranges::partial_sort(largest, largest.begin() + together, [&](int64_t a, int64_t b) {
      float first = std::abs(rest[a]), second = std::abs(rest[b]);
      return first > second || (first == second && a < b);
    });
    Departure leaving;
    for (int64_t i = 0; i < together && rest[largest[i]] != 0; ++i) {
      rest[largest[i]] = 0;
      leaving.columns[leaving.count++] = first + largest[i];
      leaving.gain = (before - loss()) / static_cast<double>(leaving.count);
      if (leaving.gain > best.gain)
        best = leaving;
    }
    return best;
  }

private:
  /// Sum of the errors of rounding, each of which goes to `errors`.
  double loss() {
    errors.assign(rest.size(), 0.0);
    std::optional<AffineScale> scale = fitScale(format, rest);
    if (!scale)
      return 0;
    double sum = 0;
    for (size_t k = 0; k < rest.size(); ++k) {
      double error = static_cast<double>(rest[k]) - scale->valueOf(roundToCode(format, *scale, rest[k]));
      errors[k] = error * error * (importance.empty() ? 1.0 : static_cast<double>(importance[first + k]));
      sum += errors[k];
    }
    return sum;
  }

  const AffineFormat &format;
  std::span<const float> importance;
  int64_t first;
  std::vector<float> rest;
  std::vector<double> errors;
};

/// The elements of a row that leave, one after the other: each time those of the group that gains most, of equal ones the first.
class RowDepartures {
public:
  RowDepartures(std::span<const float> row, const AffineFormat &format, std::span<const float> importance)
      : format(format), importance(importance), rest(row.begin(), row.end()),
        offers(format.groups(static_cast<int64_t>(row.size()))) {}

  /// The first `count` that leave, or all.
  Ranking rank(int64_t count) {
    Ranking ranking;
    std::vector<bool> hasLeft(rest.size());
    auto leave = [&](int64_t column, double gain, bool needsNext) {
      hasLeft[column] = true;
      rest[column] = 0;
      ranking.columns.push_back(column);
      ranking.gains.push_back(gain);
      ranking.needsNext.push_back(needsNext);
    };
    for (size_t group = 0; group < offers.size(); ++group)
      renew(group, std::min(count, kMostTogether));
    for (int64_t left = count; left > 0; left = count - static_cast<int64_t>(ranking.columns.size())) {
      auto best = std::ranges::max_element(offers, {}, &Departure::gain);
      if (best->count == 0) // nothing is left to gain
        break;
      if (best->count <= left) // fewer may leave than it offered
        for (int64_t i = 0; i < best->count; ++i)
          leave(best->columns[i], best->gain, i + 1 < best->count);
      renew(best - offers.begin(),
            std::clamp<int64_t>(count - static_cast<int64_t>(ranking.columns.size()), 1, kMostTogether));
    }
    for (size_t i = 0; i < hasLeft.size() && static_cast<int64_t>(ranking.columns.size()) < count; ++i)
      if (!hasLeft[i])
        leave(static_cast<int64_t>(i), 0, false);
    return ranking;
  }

private:
  void renew(int64_t group, int64_t most) {
    auto columns = static_cast<int64_t>(rest.size());
    int64_t width = format.width(columns), first = group * width;
    auto elements = std::span<const float>(rest).subspan(first, std::min(width, columns - first));
    offers[group] = GroupLoss(format, importance, first, elements).findBest(most);
  }

  const AffineFormat &format;
  std::span<const float> importance;
  std::vector<float> rest;
  std::vector<Departure> offers; // of the groups
};

} // namespace

Outliers markCostly(const Weight &weight, const AffineFormat &format, std::span<const float> importance,
                    int64_t slots) {
  return markRanked(weight.rows, weight.columns, slots, [&](int64_t row, int64_t count) {
    return RowDepartures(weight.row(row), format, importance).rank(count);
  });
}

//===----------------------------------------------------------------------===//
// Taking them out
//===----------------------------------------------------------------------===//

absl::StatusOr<SparseWeight> detach(const Weight &weight, const Outliers &outliers) {
  SparseWeight sparse{{0}, {}, {}};
  for (int64_t row = 0; row < weight.rows; ++row) {
    auto marks = outliers.begin() + row * weight.columns;
    auto count = static_cast<int32_t>(std::count(marks, marks + weight.columns, true));
    if (row % kSparseRows == 0) {
      sparse.starts.push_back(sparse.starts.back() + count);
      sparse.columns.resize(sparse.slots() * kSparseRows);
      sparse.values.resize(sparse.slots() * kSparseRows);
    }
    if (count != sparse.count(row))
      return io::invalid("expected row ", row, " to have ", sparse.count(row), " outliers, but got ", count);
    for (int64_t column = 0, number = 0; number < count; ++column) {
      if (!marks[column])
        continue;
      float &element = weight.row(row)[column];
      auto value = static_cast<float>(static_cast<_Float16>(element));
      if (!std::isfinite(value))
        return io::invalid("cannot keep an element of row ", row, " in f16: it is ", element);
      int64_t place = sparse.at(row, number++);
      sparse.columns[place] = static_cast<uint16_t>(column);
      sparse.values[place] = value;
      element = 0;
    }
  }
  return sparse;
}

void attach(const SparseWeight &outliers, const Weight &weight) {
  for (int64_t row = 0; row < weight.rows && outliers.slots() > 0; ++row)
    for (int64_t i = 0; i < outliers.count(row); ++i)
      weight.row(row)[outliers.columns[outliers.at(row, i)]] = outliers.values[outliers.at(row, i)];
}

void append(const SparseWeight &below, SparseWeight &outliers) {
  auto before = static_cast<int32_t>(outliers.slots());
  for (size_t panel = 1; panel < below.starts.size(); ++panel)
    outliers.starts.push_back(before + below.starts[panel]);
  outliers.columns.insert(outliers.columns.end(), below.columns.begin(), below.columns.end());
  outliers.values.insert(outliers.values.end(), below.values.begin(), below.values.end());
}

void takeMissing(const Weight &weight, const Weight &base, SparseWeight &outliers) {
  constexpr float most = 65504; // of f16
  for (int64_t row = 0; row < weight.rows && outliers.slots() > 0; ++row)
    for (int64_t i = 0; i < outliers.count(row); ++i) {
      int64_t place = outliers.at(row, i), column = outliers.columns[place];
      float missing = std::clamp(weight.row(row)[column] - base.row(row)[column], -most, most);
      outliers.values[place] = static_cast<float>(static_cast<_Float16>(missing));
    }
}

void addMissing(const SparseWeight &outliers, const Weight &base) {
  for (int64_t row = 0; row < base.rows && outliers.slots() > 0; ++row)
    for (int64_t i = 0; i < outliers.count(row); ++i)
      base.row(row)[outliers.columns[outliers.at(row, i)]] += outliers.values[outliers.at(row, i)];
}

} // namespace hone::compress
