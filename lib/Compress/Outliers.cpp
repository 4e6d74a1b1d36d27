// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which elements are kept apart, by rank; and by what their groups gain, in a queue of groups.

#include "hone/Compress/Outliers.h"

#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>

namespace hone::compress {

//===----------------------------------------------------------------------===//
// By rank
//===----------------------------------------------------------------------===//

Outliers markHighest(std::span<const float> scores, int64_t count) {
  auto size = static_cast<int64_t>(scores.size());
  Outliers marks(size, count >= size);
  if (count <= 0 || count >= size)
    return marks;
  auto rank = [](float score) { return std::isnan(score) ? std::numeric_limits<float>::infinity() : score; };
  std::vector<float> sorted(scores.size());
  std::ranges::transform(scores, sorted.begin(), rank);
  std::ranges::nth_element(sorted, sorted.begin() + (count - 1), std::greater<>());
  float least = sorted[count - 1];
  int64_t ties = count - std::ranges::count_if(scores, [&](float score) { return rank(score) > least; });
  for (int64_t i = 0; i < size; ++i) {
    float score = rank(scores[i]);
    marks[i] = score > least || (score == least && ties-- > 0);
  }
  return marks;
}

Outliers markLargest(const Weight &weight, int64_t count) {
  std::vector<float> scores(weight.elements.size());
  std::ranges::transform(weight.elements, scores.begin(), [](float element) { return std::abs(element); });
  return markHighest(scores, count);
}

Outliers markSensitive(const Weight &weight, const SecondMoment &moment, int64_t count) {
  std::vector<float> scores(weight.elements.size());
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t column = 0; column < weight.columns; ++column) {
      float element = weight.row(row)[column];
      scores[row * weight.columns + column] = element * element * moment.diagonal(column);
    }
  return markHighest(scores, count);
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
      double error = static_cast<double>(rest[k]) - scale->valueOf(roundToLevel(format, *scale, rest[k]));
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

/// A group, by what it offers; the greatest gain comes first, of equal ones the first group.
struct Offer {
  Departure departure;
  int64_t group;

  bool operator<(const Offer &other) const {
    return departure.gain < other.departure.gain || (departure.gain == other.departure.gain && group > other.group);
  }
};

} // namespace

Outliers markCostly(const Weight &weight, const AffineFormat &format, std::span<const float> importance,
                    int64_t count) {
  auto size = static_cast<int64_t>(weight.elements.size());
  Outliers marks(size, count >= size);
  if (count <= 0 || count >= size)
    return marks;
  int64_t width = format.width(weight.columns), groups = format.groups(weight.columns);
  std::vector<float> rest(weight.elements.begin(), weight.elements.end());
  auto offer = [&](int64_t group, int64_t most) -> Offer {
    int64_t row = group / groups, begin = group % groups * width, columns = std::min(width, weight.columns - begin);
    std::span<const float> elements = std::span(rest).subspan(row * weight.columns + begin, columns);
    return {GroupLoss(format, importance, begin, elements).findBest(most), group};
  };
  std::vector<Offer> offers(weight.rows * groups);
#pragma omp parallel for schedule(static)
  for (int64_t group = 0; group < weight.rows * groups; ++group)
    offers[group] = offer(group, kMostTogether);
  std::priority_queue<Offer> queue(std::less<Offer>(), std::move(offers));
  for (int64_t left = count; left > 0;) {
    auto [departure, group] = queue.top();
    queue.pop();
    if (departure.count > left) { // fewer may leave than it offered
      queue.push(offer(group, left));
      continue;
    }
    if (departure.count == 0) // nothing is left to gain
      break;
    for (int64_t i = 0; i < departure.count; ++i) {
      int64_t place = group / groups * weight.columns + departure.columns[i];
      marks[place] = true;
      rest[place] = 0;
    }
    left -= departure.count;
    queue.push(offer(group, std::max<int64_t>(std::min(left, kMostTogether), 1)));
  }
  for (int64_t i = 0, left = count - std::ranges::count(marks, true); left > 0; ++i)
    if (!marks[i]) {
      marks[i] = true;
      --left;
    }
  return marks;
}

//===----------------------------------------------------------------------===//
// Taking them out
//===----------------------------------------------------------------------===//

absl::StatusOr<SparseWeight> detach(const Weight &weight, const Outliers &outliers) {
  SparseWeight sparse;
  sparse.starts.push_back(0);
  for (int64_t row = 0; row < weight.rows; ++row) {
    for (int64_t column = 0; column < weight.columns; ++column) {
      if (!outliers[row * weight.columns + column])
        continue;
      float &element = weight.row(row)[column];
      auto value = static_cast<float>(static_cast<_Float16>(element));
      if (!std::isfinite(value))
        return io::invalid("cannot keep an element of row ", row, " in f16: it is ", element);
      sparse.columns.push_back(static_cast<uint16_t>(column));
      sparse.values.push_back(value);
      element = 0;
    }
    sparse.starts.push_back(static_cast<int32_t>(sparse.size()));
  }
  return sparse;
}

void attach(const SparseWeight &outliers, const Weight &weight) {
  for (int64_t row = 0; row + 1 < static_cast<int64_t>(outliers.starts.size()); ++row)
    for (int32_t i = outliers.starts[row]; i < outliers.starts[row + 1]; ++i)
      weight.row(row)[outliers.columns[i]] = outliers.values[i];
}

} // namespace hone::compress
