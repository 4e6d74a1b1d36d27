// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The best centroids of a row by dynamic programming, and rounding to them.

#include "hone/Compress/Codebook.h"

#include "ColumnSweep.h"
#include "FirstFailure.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace hone::compress {

float CodebookFormat::round(float value) const {
  if (type == CentroidType::F32 || std::isnan(value))
    return value;
  if (type == CentroidType::F16)
    return static_cast<float>(static_cast<_Float16>(value));
  auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

void writeValues(const CodebookWeight &rounded, const Weight &weight) {
  for (int64_t row = 0; row < rounded.rows; ++row)
    for (int64_t column = 0; column < rounded.columns; ++column)
      weight.row(row)[column] = rounded.centroidsOf(row)[rounded.indices[row * rounded.columns + column]];
}

int64_t findNearest(std::span<const float> centroids, double element) {
  auto distance = [element](float centroid) { return std::abs(centroid - element); };
  return std::ranges::min_element(centroids, {}, distance) - centroids.begin();
}

//===----------------------------------------------------------------------===//
// The best centroids
//===----------------------------------------------------------------------===//

namespace {
/// Different elements in ascending order, and how important all of each value are.
struct SortedValues {
  std::vector<double> values, importance;

  SortedValues(std::span<const float> elements, std::span<const float> weights) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < static_cast<int64_t>(elements.size()); ++i)
      if (weights.empty() || weights[i] > 0)
        order.push_back(i);
    std::ranges::sort(order, {}, [&](int64_t i) { return std::pair(elements[i], i); });
    for (int64_t i : order) {
      double weight = weights.empty() ? 1 : weights[i];
      if (!values.empty() && values.back() == elements[i]) {
        importance.back() += weight;
        continue;
      }
      values.push_back(elements[i]);
      importance.push_back(weight);
    }
  }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
};

/// Sums over the first values of weights, and of weighted values and squares, which say what a range costs.
class RangeCosts {
public:
  explicit RangeCosts(const SortedValues &sorted) : sums(sorted.size() + 1) {
    // Values around 0 lose least to cancellation.
    double center = sorted.values[sorted.size() / 2];
    for (int64_t i = 0; i < sorted.size(); ++i) {
      double value = sorted.values[i] - center, weight = sorted.importance[i];
      sums[i + 1] = {sums[i].weight + weight, sums[i].first + weight * value, sums[i].second + weight * value * value};
    }
  }

  /// The least Σ importance (value - c)² of values [begin, end) and one c.
  double of(int64_t begin, int64_t end) const {
    double weight = sums[end].weight - sums[begin].weight, first = sums[end].first - sums[begin].first;
    return std::max(sums[end].second - sums[begin].second - first * first / weight, 0.0);
  }

private:
  struct Sums {
    double weight = 0, first = 0, second = 0;
  };
  std::vector<Sums> sums;
};

/// Cuts of sorted values into ranges that cost least together.
class BestCuts {
public:
  BestCuts(const SortedValues &sorted, int64_t count)
      : size(sorted.size()), costs(sorted), least(size + 1), next(size + 1), cuts(count * (size + 1)) {
    for (int64_t end = 1; end <= size; ++end)
      least[end] = costs.of(0, end);
    for (int64_t ranges = 2; ranges <= count; ++ranges) {
      std::ranges::fill(next, std::numeric_limits<double>::infinity());
      addRange(ranges - 1, ranges, size, ranges - 1, size - 1);
      std::swap(least, next);
    }
    for (int64_t ranges = count, end = size; ranges > 0; --ranges) {
      begins.insert(begins.begin(), ranges == 1 ? 0 : cuts[(ranges - 1) * (size + 1) + end]);
      end = begins.front();
    }
  }

  /// The first value of each range.
  std::vector<int64_t> begins;

private:
  /// What the first [low, high] values cost in one range more, the last of which begins in [first, last].
  void addRange(int64_t row, int64_t low, int64_t high, int64_t first, int64_t last) {
    if (low > high)
      return;
    int64_t end = (low + high) / 2, best = first;
    for (int64_t begin = first; begin <= std::min(last, end - 1); ++begin)
      if (double cost = least[begin] + costs.of(begin, end); cost < next[end]) {
        next[end] = cost;
        best = begin;
      }
    cuts[row * (size + 1) + end] = static_cast<int32_t>(best);
    addRange(row, low, end - 1, first, best);
    addRange(row, end + 1, high, best, last);
  }

  int64_t size;
  RangeCosts costs;
  std::vector<double> least, next; // for the first so many values
  std::vector<int32_t> cuts;       // where the last range begins, by ranges and values
};

/// The mean of values [begin, end), which of one value is that value.
double getMean(const SortedValues &sorted, int64_t begin, int64_t end) {
  double weight = 0, sum = 0, origin = sorted.values[begin];
  for (int64_t i = begin; i < end; ++i) {
    weight += sorted.importance[i];
    sum += sorted.importance[i] * (sorted.values[i] - origin);
  }
  return origin + sum / weight;
}
} // namespace

std::vector<double> findCentroids(std::span<const float> elements, std::span<const float> importance, int64_t count) {
  SortedValues sorted(elements, importance);
  if (sorted.size() <= count)
    return sorted.values;
  std::vector<int64_t> begins = BestCuts(sorted, count).begins;
  begins.push_back(sorted.size());
  std::vector<double> centroids;
  for (int64_t i = 0; i < count; ++i)
    centroids.push_back(getMean(sorted, begins[i], begins[i + 1]));
  return centroids;
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

namespace {
/// What decides the centroids of the rows of a weight.
struct CentroidChoice {
  const CodebookFormat &format;
  const Weight &weight;
  std::span<const float> importance;
  const Outliers &outliers;

  bool isOutlier(int64_t row, int64_t column) const {
    return !outliers.empty() && outliers[row * weight.columns + column];
  }
  float getImportance(int64_t row, int64_t column) const {
    if (importance.empty())
      return 1;
    bool isOfColumns = static_cast<int64_t>(importance.size()) == weight.columns;
    return importance[isOfColumns ? column : row * weight.columns + column];
  }

  /// Writes the centroids of a row. False where they, or its elements, are not finite.
  bool choose(int64_t row, std::span<float> centroids) const;
};
} // namespace

bool CentroidChoice::choose(int64_t row, std::span<float> centroids) const {
  std::span<const float> elements = weight.row(row);
  if (!std::ranges::all_of(elements, [](float element) { return std::isfinite(element); }))
    return false;
  auto entries = static_cast<int64_t>(centroids.size());
  bool hasZero = std::ranges::count(elements, 0.0f) * entries > weight.columns;
  std::vector<float> some, weights;
  for (int64_t column = 0; column < weight.columns; ++column)
    if (!isOutlier(row, column) && !(hasZero && elements[column] == 0)) {
      some.push_back(elements[column]);
      weights.push_back(getImportance(row, column));
    }
  if (!std::ranges::any_of(weights, [](float weight) { return weight > 0; }))
    weights.clear(); // nothing is known of the row: all count the same
  std::vector<double> best = findCentroids(some, weights, entries - static_cast<int64_t>(hasZero));
  if (hasZero || best.empty())
    best.insert(std::ranges::upper_bound(best, 0.0), 0.0);
  best.resize(entries, best.back());
  std::ranges::transform(best, centroids.begin(),
                         [&](double centroid) { return format.round(static_cast<float>(centroid)); });
  return std::ranges::all_of(centroids, [](float centroid) { return std::isfinite(centroid); });
}

/// Centroids for all rows of a weight.
static absl::StatusOr<CodebookWeight> chooseCentroids(const CentroidChoice &choice) {
  CodebookWeight rounded(choice.format, choice.weight.rows, choice.weight.columns);
  FirstFailure failure(rounded.rows);
#pragma omp parallel for schedule(dynamic)
  for (int64_t row = 0; row < rounded.rows; ++row)
    if (!choice.choose(row, std::span(rounded.codebook).subspan(row * rounded.entries, rounded.entries)))
      failure.add(row);
  HONE_RETURN_IF_ERROR(
      failure.status("its elements are not all finite, or too large for the centroids of its codebook"));
  return rounded;
}

absl::StatusOr<CodebookWeight> roundToCodebook(const Weight &weight, const CodebookFormat &format,
                                               std::span<const float> importance, const Outliers &outliers) {
  CentroidChoice choice{format, weight, importance, outliers};
  HONE_ASSIGN_OR_RETURN(CodebookWeight rounded, chooseCentroids(choice));
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t column = 0; column < weight.columns; ++column) {
      float element = choice.isOutlier(row, column) ? 0 : weight.row(row)[column];
      rounded.indices[row * weight.columns + column] =
          static_cast<uint8_t>(findNearest(rounded.centroidsOf(row), element));
    }
  return rounded;
}

absl::StatusOr<CodebookWeight> roundToCodebookWithCompensation(const Weight &weight, const CodebookFormat &format,
                                                               const InverseFactor &factor, const Outliers &outliers) {
  clearDeadColumns(weight, factor);
  std::vector<float> costs = getErrorCosts(factor);
  CentroidChoice choice{format, weight, costs, outliers};
  HONE_ASSIGN_OR_RETURN(CodebookWeight rounded, chooseCentroids(choice));
  FirstFailure failure(weight.rows);
  ColumnSweep(weight, factor, kSweepColumns).run([&](int64_t row, int64_t i, std::span<const double> current) -> float {
    int64_t column = factor.column(i);
    std::span<const float> centroids = rounded.centroidsOf(row);
    bool isOutlier = choice.isOutlier(row, column), wasZero = weight.row(row)[column] == 0;
    if (!std::isfinite(current[0]))
      failure.add(row);
    int64_t zero = findNearest(centroids, 0);
    bool staysZero = (wasZero && centroids[zero] == 0) || !std::isfinite(current[0]);
    int64_t index = staysZero || isOutlier ? zero : findNearest(centroids, current[0]);
    rounded.indices[row * weight.columns + column] = static_cast<uint8_t>(index);
    if (!isOutlier || staysZero)
      return centroids[index];
    return centroids[index] + static_cast<float>(static_cast<_Float16>(current[0] - centroids[index]));
  });
  HONE_RETURN_IF_ERROR(failure.status("its elements are not all finite"));
  return rounded;
}

} // namespace hone::compress
