// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A search over two exponents, by the error of rounding to nearest.

#include "hone/Compress/ChannelScales.h"

#include "hone/Compress/ScaleSearch.h"

#include <array>
#include <limits>

namespace hone::compress {
namespace {

/// Most rows of a weight that are rounded for an estimate.
constexpr int64_t kMostRows = 256;
/// Exponents are multiples of 1 / kSteps, up to 1.
constexpr int kSteps = 4;

/// Rows at equal distances: the first of every `step`.
int64_t getStep(const Weight &weight) { return std::max<int64_t>(weight.rows / kMostRows, 1); }

/// The mean square of each column over all weights.
std::vector<double> getColumnSquares(std::span<const Weight> weights, int64_t columns) {
  std::vector<double> squares(columns);
  int64_t rows = 0;
  for (const Weight &weight : weights) {
    rows += weight.rows;
    for (int64_t row = 0; row < weight.rows; ++row)
      for (int64_t j = 0; j < columns; ++j)
        squares[j] += static_cast<double>(weight.row(row)[j]) * weight.row(row)[j];
  }
  for (double &square : squares)
    square /= static_cast<double>(std::max<int64_t>(rows, 1));
  return squares;
}

/// H_jj^(a/2) · m_j^-b with a geometric mean of 1.
std::vector<float> makeScales(std::span<const float> hessians, std::span<const double> squares, double a, double b) {
  std::vector<double> logarithms(hessians.size());
  double sum = 0;
  int64_t live = 0;
  for (size_t j = 0; j < hessians.size(); ++j)
    if (hessians[j] > 0 && squares[j] > 0) {
      logarithms[j] = (a * std::log(static_cast<double>(hessians[j])) - b * std::log(squares[j])) / 2;
      sum += logarithms[j];
      ++live;
    }
  std::vector<float> scales(hessians.size(), 1.0f);
  for (size_t j = 0; j < hessians.size(); ++j)
    if (hessians[j] > 0 && squares[j] > 0)
      scales[j] = static_cast<float>(std::exp(logarithms[j] - sum / static_cast<double>(live)));
  return scales;
}

/// What rounding the scaled rows costs the outputs; infinite where it cannot be done.
double estimateError(std::span<const Weight> weights, const AffineFormat &format, std::span<const float> hessians,
                     std::span<const float> scales) {
  int64_t columns = static_cast<int64_t>(hessians.size()), width = format.width(columns);
  std::vector<float> scaled(columns), importance(columns);
  for (int64_t j = 0; j < columns; ++j)
    importance[j] = hessians[j] / (scales[j] * scales[j]);
  double error = 0;
  for (const Weight &weight : weights)
    for (int64_t row = 0; row < weight.rows; row += getStep(weight)) {
      for (int64_t j = 0; j < columns; ++j)
        scaled[j] = weight.row(row)[j] * scales[j];
      for (int64_t begin = 0; begin < columns; begin += width) {
        auto group = std::span(scaled).subspan(begin, std::min(width, columns - begin));
        auto scale = fitScale(format, group);
        if (!scale)
          return std::numeric_limits<double>::infinity();
        error += static_cast<double>(getStep(weight)) *
                 getRoundingError(format, *scale, group, std::span(importance).subspan(begin, group.size()));
      }
    }
  return error;
}

} // namespace

ChannelScales findChannelScales(std::span<const Weight> weights, const AffineFormat &format,
                                std::span<const float> hessianDiagonal) {
  std::vector<double> squares = getColumnSquares(weights, static_cast<int64_t>(hessianDiagonal.size()));
  ChannelScales best{std::vector<float>(hessianDiagonal.size(), 1.0f), 1};
  constexpr int kChoices = (kSteps + 1) * (kSteps + 1);
  std::array<std::vector<float>, kChoices> scales;
  std::array<double, kChoices> errors;
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < kChoices; ++i) {
    double a = i / (kSteps + 1), b = i % (kSteps + 1);
    scales[i] = makeScales(hessianDiagonal, squares, a / kSteps, b / kSteps);
    bool isUsable =
        std::ranges::all_of(scales[i], [](float one) { return std::isnormal(one) && std::isnormal(1 / one); });
    errors[i] =
        isUsable ? estimateError(weights, format, hessianDiagonal, scales[i]) : std::numeric_limits<double>::infinity();
  }
  double first = estimateError(weights, format, hessianDiagonal, best.scales), least = first;
  for (int i = 0; i < kChoices; ++i)
    if (errors[i] < least) {
      least = errors[i];
      best.scales = std::move(scales[i]);
    }
  best.error = least < first ? least / first : 1;
  return best;
}

} // namespace hone::compress
