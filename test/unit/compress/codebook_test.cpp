// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Codebooks: centroids are the best there are, rows that have few come back, and every step lowers the error.

#include "Matrices.h"
#include "hone/Compress/Codebook.h"
#include "hone/Compress/Rounding.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <omp.h>

using testing::HasSubstr;

namespace hone::compress {
namespace {

using CentroidType = CodebookFormat::CentroidType;

constexpr CodebookFormat kFormats[] = {{4, CentroidType::Bf16},
                                       {3, CentroidType::Bf16},
                                       {3, CentroidType::F16},
                                       {4, CentroidType::F32},
                                       {2, CentroidType::Bf16}};

OwnedWeight valuesOf(const CodebookWeight &rounded) {
  OwnedWeight values(rounded.rows, rounded.columns);
  writeValues(rounded, values.view());
  return values;
}

bool areSame(const CodebookWeight &a, const CodebookWeight &b) {
  return a.indices == b.indices && a.codebook == b.codebook;
}

/// What a choice of centroids costs: every element has the nearest.
double costOf(const std::vector<float> &elements, const std::vector<float> &importance,
              const std::vector<double> &centroids) {
  double cost = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (double centroid : centroids)
      least = std::min(least, (elements[i] - centroid) * (elements[i] - centroid));
    cost += (importance.empty() ? 1.0 : importance[i]) * least;
  }
  return cost;
}

/// The least cost of all ways to cut sorted elements into `count` ranges, one after the other.
double leastCost(std::vector<float> elements, const std::vector<float> &weights, int64_t count) {
  std::vector<size_t> order(elements.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return elements[i]; });
  size_t n = order.size();
  std::vector<double> least(n + 1, std::numeric_limits<double>::infinity());
  least[0] = 0;
  for (int64_t range = 0; range < count; ++range) {
    std::vector<double> next(n + 1, std::numeric_limits<double>::infinity());
    next[0] = 0;
    for (size_t begin = 0; begin < n; ++begin) {
      double weight = 0, mean = 0,
             cost = 0; // Welford, "Note on a method for calculating corrected sums of squares", 1962
      for (size_t end = begin; end < n; ++end) {
        double w = weights.empty() ? 1 : weights[order[end]], x = elements[order[end]];
        weight += w;
        double step = x - mean;
        mean += weight > 0 ? step * w / weight : 0;
        cost += w * step * (x - mean);
        next[end + 1] = std::min(next[end + 1], least[begin] + cost);
      }
    }
    least = next;
  }
  return least[n];
}

TEST(FindCentroids, AreTheBest) {
  for (int64_t count : {1, 2, 5, 8, 16})
    for (int64_t size : {17, 64, 300})
      for (bool isWeighted : {false, true}) {
        std::vector<float> elements = makeRandom(size, 5), weights;
        if (isWeighted)
          for (float root : makeRandom(size, 6))
            weights.push_back(root * root);
        std::vector<double> found = findCentroids(elements, weights, count);
        ASSERT_EQ(static_cast<int64_t>(found.size()), count);
        EXPECT_TRUE(std::ranges::is_sorted(found));
        double expected = leastCost(elements, weights, count);
        EXPECT_NEAR(costOf(elements, weights, found), expected, 1e-9 * expected + 1e-12) << count << ", " << size;
      }
}

TEST(FindCentroids, AreTheElementsWhereThoseAreFew) {
  std::vector<float> elements = {0.3f, -1.7f, 0.3f, 4.1f, -1.7f, 0.1f};
  EXPECT_THAT(findCentroids(elements, {}, 4), testing::ElementsAre(-1.7f, 0.1f, 0.3f, 4.1f));
  EXPECT_THAT(findCentroids(elements, {}, 7), testing::ElementsAre(-1.7f, 0.1f, 0.3f, 4.1f));
  EXPECT_THAT(findCentroids(elements, std::vector<float>{1, 1, 1, 0, 1, 1}, 4), // which 4.1 has no part in
              testing::ElementsAre(-1.7f, 0.1f, 0.3f));
  EXPECT_TRUE(findCentroids({}, {}, 4).empty());
}

TEST(RoundToCodebook, GivesEachElementTheNearestCentroid) {
  for (const CodebookFormat &format : kFormats) {
    OwnedWeight weight(9, 130);
    auto rounded = roundToCodebook(weight.view(), format);
    ASSERT_TRUE(rounded.ok()) << rounded.status();
    for (int64_t row = 0; row < 9; ++row)
      for (int64_t k = 0; k < 130; ++k) {
        std::span<const float> centroids = rounded->centroidsOf(row);
        float error = std::abs(centroids[rounded->indices[row * 130 + k]] - weight.at(row, k));
        for (float centroid : centroids) {
          EXPECT_EQ(format.round(centroid), centroid);
          ASSERT_LE(error, std::abs(centroid - weight.at(row, k)));
        }
      }
  }
}

TEST(RoundToCodebook, KeepsRowsOfFewCentroids) {
  for (const CodebookFormat &format : kFormats) {
    OwnedWeight weight(5, 300);
    std::vector<float> some = makeRandom(format.entries() * 5, 8);
    for (int64_t i = 0; i < 5 * 300; ++i)
      weight.elements[i] = format.round(some[i / 300 * format.entries() + i * i % 37 % format.entries()]);
    auto rounded = roundToCodebook(weight.view(), format, makeRandom(0, 0));
    ASSERT_TRUE(rounded.ok());
    EXPECT_EQ(valuesOf(*rounded).elements, weight.elements);
  }
}

TEST(RoundToCodebook, CountsWhatIsImportant) {
  CodebookFormat format{3, CentroidType::F32};
  OwnedWeight weight(4, 200);
  std::vector<float> columns(200, 1e-6f), elements(4 * 200, 1e-6f);
  for (int64_t k = 0; k < 200; k += 25)
    columns[k] = 1;
  for (int64_t i = 0; i < 4 * 200; i += 25)
    elements[i] = 1;
  for (const std::vector<float> &importance : {columns, elements}) {
    auto rounded = roundToCodebook(weight.view(), format, importance);
    ASSERT_TRUE(rounded.ok());
    OwnedWeight values = valuesOf(*rounded);
    for (int64_t row = 0; row < 4; ++row)
      for (int64_t k = 0; k < 200; k += 25) // eight, which have a centroid each but for what the others pull
        EXPECT_NEAR(values.at(row, k), weight.at(row, k), 1e-2f);
  }
}

TEST(RoundToCodebook, KeepsWhatWasPruned) {
  OwnedHessian hessian = OwnedHessian::random(128);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  for (const CodebookFormat &format : kFormats) {
    OwnedWeight weight(6, 128);
    for (size_t i = 0; i < weight.elements.size(); i += 2)
      weight.elements[i] = 0;
    OwnedWeight compensated = weight;
    auto nearest = roundToCodebook(weight.view(), format),
         swept = roundToCodebookWithCompensation(compensated.view(), format, *factor);
    ASSERT_TRUE(nearest.ok() && swept.ok());
    ASSERT_TRUE(refineCodebook(weight.view(), format, hessian.view(), 3, *swept).ok());
    for (const CodebookWeight *rounded : {&*nearest, &*swept})
      for (size_t i = 0; i < weight.elements.size(); i += 2)
        ASSERT_EQ(valuesOf(*rounded).elements[i], 0);
  }
}

TEST(RoundToCodebookWithCompensation, IsNearestForAMultipleOfTheIdentity) {
  auto factor = InverseFactor::create(OwnedHessian::identity(150, 0.37f).view());
  ASSERT_TRUE(factor.ok());
  for (const CodebookFormat &format : kFormats) {
    OwnedWeight weight(9, 150), compensated = weight;
    auto expected = roundToCodebook(weight.view(), format),
         rounded = roundToCodebookWithCompensation(compensated.view(), format, *factor);
    ASSERT_TRUE(expected.ok() && rounded.ok());
    EXPECT_TRUE(areSame(*rounded, *expected));
    EXPECT_EQ(compensated.elements, valuesOf(*expected).elements);
  }
}

TEST(RefineCodebook, LowersTheErrorWithEveryPass) {
  OwnedHessian hessian = OwnedHessian::random(150);
  std::vector<double> damped = hessian.damped(kDamping);
  auto factor = InverseFactor::create(hessian.view(), orderByDiagonal(hessian.view()));
  ASSERT_TRUE(factor.ok());
  for (const CodebookFormat &format : kFormats) {
    OwnedWeight weight(21, 150), compensated = weight;
    double nearest = errorIn(damped, weight, valuesOf(*roundToCodebook(weight.view(), format)));
    auto rounded = roundToCodebookWithCompensation(compensated.view(), format, *factor);
    ASSERT_TRUE(rounded.ok());
    double error = errorIn(damped, weight, valuesOf(*rounded));
    EXPECT_LT(error, nearest);
    for (int pass = 0; pass < 3; ++pass) {
      ASSERT_TRUE(refineCodebook(weight.view(), format, hessian.view(), 1, *rounded).ok());
      double refined = errorIn(damped, weight, valuesOf(*rounded));
      EXPECT_LE(refined, pass ? error : 0.99 * error) << format.bits << " bits, " << pass;
      error = refined;
    }
  }
}

/// Centroids of f32 are those of least squares for the indices: no small change of one is better.
TEST(RefineCodebook, EndsAtTheBestCentroids) {
  CodebookFormat format{3, CentroidType::F32};
  OwnedHessian hessian = OwnedHessian::random(60);
  std::vector<double> damped = hessian.damped(kDamping);
  OwnedWeight weight(2, 60);
  auto rounded = roundToCodebook(weight.view(), format);
  ASSERT_TRUE(rounded.ok() && refineCodebook(weight.view(), format, hessian.view(), 50, *rounded).ok());
  double error = errorIn(damped, weight, valuesOf(*rounded));
  for (float &centroid : rounded->codebook)
    for (float factor : {0.99f, 1.01f}) {
      float kept = centroid;
      centroid *= factor;
      EXPECT_GE(errorIn(damped, weight, valuesOf(*rounded)), error * (1 - 1e-6));
      centroid = kept;
    }
}

TEST(Codebooks, StoreOutliersSeparately) {
  OwnedHessian hessian = OwnedHessian::random(96);
  std::vector<double> damped = hessian.damped(kDamping);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  for (const CodebookFormat &format : kFormats) {
    OwnedWeight weight(20, 96), compensated = weight;
    Outliers marks = markLargest(weight.view(), 6);
    auto rounded = roundToCodebookWithCompensation(compensated.view(), format, *factor, marks);
    OwnedWeight base = compensated;
    auto sparse = detach(base.view(), marks);
    ASSERT_TRUE(rounded.ok() && sparse.ok());
    base = valuesOf(*rounded);
    takeMissing(compensated.view(), base.view(), *sparse);
    auto sum = [&] {
      OwnedWeight values = valuesOf(*rounded);
      addMissing(*sparse, values.view());
      return values;
    };
    for (size_t i = 0; i < compensated.elements.size(); ++i)
      EXPECT_NEAR(sum().elements[i], compensated.elements[i], marks[i] ? 4e-3f : 0) << i; // f16
    double error = errorIn(damped, weight, sum());
    auto plain = roundToCodebookWithCompensation(OwnedWeight(weight).view(), format, *factor);
    ASSERT_TRUE(plain.ok());
    EXPECT_LT(error, errorIn(damped, weight, valuesOf(*plain)));
    ASSERT_TRUE(refineCodebook(weight.view(), format, hessian.view(), 2, *rounded, &*sparse).ok());
    EXPECT_LT(errorIn(damped, weight, sum()), error);
  }
}

TEST(Codebooks, IgnoreColumnsWithoutInputs) {
  OwnedHessian hessian = OwnedHessian::random(64);
  for (int64_t i = 0; i < 64; ++i)
    hessian.at(4, i) = hessian.at(i, 4) = 0;
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  CodebookFormat format{3, CentroidType::Bf16};
  OwnedWeight weight(3, 64);
  for (int64_t row = 0; row < 3; ++row)
    weight.elements[row * 64 + 4] = 1000; // which no centroid has to reach
  OwnedWeight compensated = weight;
  auto rounded = roundToCodebookWithCompensation(compensated.view(), format, *factor);
  ASSERT_TRUE(rounded.ok() && refineCodebook(weight.view(), format, hessian.view(), 3, *rounded).ok());
  for (float centroid : rounded->codebook)
    EXPECT_LT(std::abs(centroid), 10);
}

TEST(Codebooks, RefuseWhatIsNotFinite) {
  auto factor = InverseFactor::create(OwnedHessian::random(64).view());
  ASSERT_TRUE(factor.ok());
  for (float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f}) {
    OwnedWeight weight(40, 64);
    weight.elements[31 * 64 + 5] = weight.elements[37 * 64] = value;
    CodebookFormat format{4, CentroidType::F16};
    for (const absl::Status &status : {roundToCodebook(weight.view(), format).status(),
                                       roundToCodebookWithCompensation(weight.view(), format, *factor).status()})
      EXPECT_THAT(std::string(status.message()), HasSubstr("cannot quantize row 31: its elements are not all finite"));
  }
}

TEST(Codebooks, AreTheSameForEveryNumberOfThreads) {
  OwnedHessian hessian = OwnedHessian::random(200);
  auto factor = InverseFactor::create(hessian.view());
  ASSERT_TRUE(factor.ok());
  OwnedWeight weight(50, 200);
  std::vector<CodebookWeight> results;
  int threads = omp_get_max_threads();
  for (int count : {1, 3}) {
    omp_set_num_threads(count);
    OwnedWeight compensated = weight;
    auto rounded = roundToCodebookWithCompensation(compensated.view(), kFormats[0], *factor);
    ASSERT_TRUE(rounded.ok() && refineCodebook(weight.view(), kFormats[0], hessian.view(), 2, *rounded).ok());
    results.push_back(std::move(*rounded));
  }
  omp_set_num_threads(threads);
  EXPECT_TRUE(areSame(results[0], results[1]));
}

TEST(Codebooks, TakeEmptyWeights) {
  auto factor = InverseFactor::create({{}, 0});
  ASSERT_TRUE(factor.ok());
  for (int64_t rows : {0, 3}) {
    OwnedWeight weight(rows, 0);
    auto nearest = roundToCodebook(weight.view(), kFormats[0]),
         swept = roundToCodebookWithCompensation(weight.view(), kFormats[0], *factor);
    ASSERT_TRUE(nearest.ok() && swept.ok());
    EXPECT_TRUE(refineCodebook(weight.view(), kFormats[0], {{}, 0}, 2, *swept).ok());
    EXPECT_EQ(nearest->codebook, std::vector<float>(rows * 16));
  }
}

} // namespace
} // namespace hone::compress
