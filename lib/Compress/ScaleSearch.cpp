// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps tried from coarse to fine. Errors are added up in lanes, so that every width of vectors chooses the same scale.

#include "hone/Compress/ScaleSearch.h"

#include "EveryWidth.h"

#include <limits>
#include <vector>

namespace hone::compress {
namespace {

/// Elements that are evaluated at once; groups are filled up to a multiple with elements of no importance.
constexpr size_t kLanes = 16;
/// Steps that are tried, in sixteenths of fitScale's: a group of independent normal elements is served best by 0.8 of it at
/// 2 bits, and by more than it where fewer than 60 of them share 16 codes.
constexpr int kFirstStep = 5, kLastStep = 20;
/// Finer steps on each side of the best, in parts of 1 / 16.
constexpr int kFineSteps = 4;
/// How often the best step for the codes is computed.
constexpr int kLeastSquares = 2;
/// Added to a float below 2^22 and subtracted again, this rounds to nearest, ties to even.
constexpr float kRounder = 12582912.0f; // 1.5 · 2^23

/// The error of codes [least, most], relative to the zero point, times `step`.
HONE_EVERY_WIDTH
float sumErrors(const float *elements, const float *importance, size_t count, float step, float inverse, float least,
                float most) {
  float sums[kLanes] = {};
  for (size_t i = 0; i < count; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      float steps = elements[i + lane] * inverse;
      steps = steps < least ? least : steps;
      steps = steps > most ? most : steps;
      float error = elements[i + lane] - ((steps + kRounder) - kRounder) * step;
      sums[lane] += importance[i + lane] * error * error;
    }
  float sum = 0;
  for (float lane : sums)
    sum += lane;
  return sum;
}

/// The scale with the least error so far, and how others are tried against it.
class Search {
public:
  Search(const AffineFormat &format, std::span<const float> elements, std::span<const float> importance,
         AffineScale first)
      : format(format), count((elements.size() + kLanes - 1) / kLanes * kLanes), elements(count), importance(count),
        best(first) {
    std::ranges::copy(elements, this->elements.begin());
    std::ranges::copy(importance, this->importance.begin());
    error = evaluate(first);
  }

  void tryScale(float step, int64_t zero) {
    if (format.hasHalfScales)
      step = static_cast<float>(static_cast<_Float16>(step));
    AffineScale scale{step, std::clamp(zero, format.lowest(), format.highest())};
    float other = evaluate(scale);
    if (other < error) {
      error = other;
      best = scale;
    }
  }
  /// A step of either sign, or with zero points near `zero`.
  void tryStep(float step, int64_t zero) {
    if (!format.hasZeros) {
      tryScale(step, zero);
      tryScale(-step, zero);
      return;
    }
    for (int64_t offset : {0, -1, 1})
      tryScale(step, zero + offset);
  }
  /// The step with the least error where every element keeps its code: the sum of importance · w · code, divided by that of
  /// importance · code².
  void tryLeastSquares() {
    double products = 0, squares = 0;
    for (size_t i = 0; i < count; ++i) {
      auto code = static_cast<double>(roundToCode(format, best, elements[i]) - best.zero);
      products += importance[i] * code * elements[i];
      squares += importance[i] * code * code;
    }
    if (squares > 0)
      tryScale(static_cast<float>(products / squares), best.zero);
  }
  AffineScale getBest() const { return best; }

private:
  float evaluate(AffineScale scale) const {
    float inverse = 1 / scale.scale;
    if (!std::isfinite(inverse) || !std::isfinite(scale.scale))
      return std::numeric_limits<float>::infinity();
    return sumErrors(elements.data(), importance.data(), count, scale.scale, inverse,
                     static_cast<float>(format.lowest() - scale.zero),
                     static_cast<float>(format.highest() - scale.zero));
  }

  AffineFormat format;
  size_t count;
  std::vector<float> elements, importance;
  AffineScale best;
  float error;
};

} // namespace

double getRoundingError(const AffineFormat &format, AffineScale scale, std::span<const float> elements,
                        std::span<const float> importance) {
  double sum = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    double error = static_cast<double>(elements[i]) - scale.valueOf(roundToCode(format, scale, elements[i]));
    sum += importance[i] * error * error;
  }
  return sum;
}

std::optional<AffineScale> searchScale(const AffineFormat &format, std::span<const float> elements,
                                       std::span<const float> importance) {
  std::optional<AffineScale> fitted = fitScale(format, elements);
  if (!fitted || fitted->scale == 0)
    return fitted;
  Search search(format, elements, importance, *fitted);
  for (int i = kFirstStep; i <= kLastStep; ++i)
    search.tryStep(fitted->scale * static_cast<float>(i) / 16, fitted->zero);
  AffineScale coarse = search.getBest();
  for (int i = -kFineSteps + 1; i < kFineSteps; ++i)
    search.tryStep(coarse.scale + fitted->scale * static_cast<float>(i) / (16 * kFineSteps), coarse.zero);
  for (int i = 0; i < kLeastSquares; ++i)
    search.tryLeastSquares();
  // Sums of f32 could take one for better that is not.
  AffineScale found = search.getBest();
  bool isBetter =
      getRoundingError(format, found, elements, importance) < getRoundingError(format, *fitted, elements, importance);
  return isBetter ? found : *fitted;
}

} // namespace hone::compress
