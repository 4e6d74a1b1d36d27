// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Columns leave by Schur complements of the inverse Hessian: what each costs and its error compensation come from the same rows.

#include "hone/Compress/Structured.h"

#include "DenseProduct.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace hone::compress {

std::vector<double> scoreByEnergy(const Weight &weight, const Hessian &hessian, InputGroups groups) {
  std::vector<double> scores(groups.count);
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t k = 0; k < weight.columns; ++k)
      if (double element = weight.row(row)[k]; groups.groupOf[k] >= 0)
        scores[groups.groupOf[k]] += element * element * static_cast<double>(hessian.diagonal(k));
  return scores;
}

std::vector<double> scoreColumns(const Weight &weight, InputGroups groups) {
  std::vector<double> scores(groups.count);
  for (int64_t row = 0; row < weight.rows; ++row)
    for (int64_t k = 0; k < weight.columns; ++k)
      if (double element = weight.row(row)[k]; groups.groupOf[k] >= 0)
        scores[groups.groupOf[k]] += element * element;
  return scores;
}

std::vector<double> scoreRows(const Weight &weight, InputGroups groups) {
  std::vector<double> scores(groups.count);
  for (int64_t row = 0; row < weight.rows; ++row)
    if (groups.groupOf[row] >= 0)
      for (double element : weight.row(row))
        scores[groups.groupOf[row]] += element * element;
  return scores;
}

std::vector<int64_t> chooseLowest(std::span<const double> scores, int64_t count) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order,
                    [&](int64_t a, int64_t b) { return scores[a] != scores[b] ? scores[a] < scores[b] : a > b; });
  order.resize(count);
  std::ranges::sort(order);
  return order;
}

std::vector<float> selectInputs(const Hessian &hessian, std::span<const int64_t> kept) {
  std::vector<float> selected;
  selected.reserve(kept.size() * kept.size());
  for (int64_t row : kept)
    for (int64_t column : kept)
      selected.push_back(hessian.elements[row * hessian.size + column]);
  return selected;
}

namespace {

/// Rows of a matrix that a thread takes at a time.
constexpr int64_t kRows = 64;

/// A weight and the inverse of its damped Hessian while columns leave.
class Eliminator {
public:
  Eliminator(const Weight &weight, const InverseFactor &factor, InputGroups groups);

  /// What groups cost now, infinity for those that are gone; nothing where that has no finite value.
  std::optional<std::vector<double>> score() const;
  /// Removes groups; what it cost, or nothing where their rows of the inverse are not positive definite.
  std::optional<double> eliminate(std::span<const int64_t> gone);
  void write(const Weight &weight) const;

private:
  void invert(const InverseFactor &factor);
  std::vector<double> factorBlock(std::span<const int64_t> inputs) const;
  std::vector<double> solveRows(std::span<const int64_t> inputs, std::span<const double> lower) const;

  int64_t rows, columns;
  std::vector<double> elements, inverse; // [N, K], [K, K]
  std::vector<std::vector<int64_t>> inputsOf;
  std::vector<bool> isGone;
};

} // namespace

Eliminator::Eliminator(const Weight &weight, const InverseFactor &factor, InputGroups groups)
    : rows(weight.rows), columns(weight.columns), elements(weight.elements.begin(), weight.elements.end()),
      inputsOf(groups.count), isGone(groups.count) {
  for (int64_t k = 0; k < columns; ++k) {
    if (groups.groupOf[k] >= 0)
      inputsOf[groups.groupOf[k]].push_back(k);
    for (int64_t row = 0; factor.isDead(k) && row < rows; ++row)
      elements[row * columns + k] = 0;
  }
  invert(factor);
}

/// H'⁻¹ = Rᵀ R, by blocks of rows; what is before the block's first row in R has no part in the columns after it, but in those of
/// the block and before.
void Eliminator::invert(const InverseFactor &factor) {
  std::vector<double> transposed(columns * columns);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t k = 0; k <= i; ++k)
      transposed[i * columns + k] = -factor.data()[k * columns + i];
  inverse.assign(columns * columns, 0);
#pragma omp parallel for schedule(dynamic)
  for (int64_t begin = 0; begin < columns; begin += kRows) {
    int64_t count = std::min(kRows, columns - begin);
    subtractProduct(count, columns - begin, begin + count, {&transposed[begin * columns], columns},
                    {factor.data() + begin, columns}, {&inverse[begin * columns + begin], columns});
  }
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t k = 0; k < i; ++k)
      inverse[i * columns + k] = inverse[k * columns + i];
}

/// L of L Lᵀ = H'⁻¹[inputs, inputs], row-major; empty where that is not positive definite.
std::vector<double> Eliminator::factorBlock(std::span<const int64_t> inputs) const {
  auto size = static_cast<int64_t>(inputs.size());
  std::vector<double> lower(size * size);
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      double sum = inverse[inputs[i] * columns + inputs[j]];
      for (int64_t k = 0; k < j; ++k)
        sum -= lower[i * size + k] * lower[j * size + k];
      if (i == j && !(sum > 0 && std::isfinite(sum)))
        return {};
      lower[i * size + j] = i == j ? std::sqrt(sum) : sum / lower[j * size + j];
    }
  return lower;
}

/// Z [N, inputs] of Z Lᵀ = W[:, inputs].
std::vector<double> Eliminator::solveRows(std::span<const int64_t> inputs, std::span<const double> lower) const {
  auto size = static_cast<int64_t>(inputs.size());
  std::vector<double> solved(rows * size);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < size; ++i) {
      double sum = elements[row * columns + inputs[i]];
      for (int64_t k = 0; k < i; ++k)
        sum -= solved[row * size + k] * lower[i * size + k];
      solved[row * size + i] = sum / lower[i * size + i];
    }
  return solved;
}

std::optional<std::vector<double>> Eliminator::score() const {
  std::vector<double> scores(inputsOf.size(), std::numeric_limits<double>::infinity());
#pragma omp parallel for schedule(dynamic)
  for (size_t group = 0; group < inputsOf.size(); ++group) {
    if (isGone[group])
      continue;
    std::vector<double> lower = factorBlock(inputsOf[group]);
    scores[group] = std::numeric_limits<double>::quiet_NaN();
    if (lower.empty() && !inputsOf[group].empty())
      continue;
    std::vector<double> solved = solveRows(inputsOf[group], lower);
    scores[group] = std::inner_product(solved.begin(), solved.end(), solved.begin(), 0.0);
  }
  bool isFinite = std::ranges::none_of(scores, [](double score) { return std::isnan(score); });
  return isFinite ? std::optional(std::move(scores)) : std::nullopt;
}

std::optional<double> Eliminator::eliminate(std::span<const int64_t> gone) {
  std::vector<int64_t> inputs;
  for (int64_t group : gone) {
    inputs.insert(inputs.end(), inputsOf[group].begin(), inputsOf[group].end());
    isGone[group] = true;
  }
  auto size = static_cast<int64_t>(inputs.size());
  std::vector<double> lower = factorBlock(inputs);
  if (lower.empty() && size > 0)
    return std::nullopt;
  std::vector<double> solved = solveRows(inputs, lower), spread(size * columns), transposed(columns * size);
  // Y = L⁻¹ H'⁻¹[inputs, :]; what is left of the inverse is H'⁻¹ - Yᵀ Y, and of the weight W - Z Y.
  constexpr int64_t kColumns = 256;
#pragma omp parallel for schedule(dynamic)
  for (int64_t begin = 0; begin < columns; begin += kColumns) {
    int64_t end = std::min(begin + kColumns, columns);
    for (int64_t i = 0; i < size; ++i) {
      double *row = &spread[i * columns];
      std::copy(&inverse[inputs[i] * columns + begin], &inverse[inputs[i] * columns] + end, row + begin);
      subtractProduct(1, end - begin, i, {&lower[i * size], size}, {spread.data() + begin, columns},
                      {row + begin, columns});
      for (int64_t k = begin; k < end; ++k) {
        row[k] /= lower[i * size + i];
        transposed[k * size + i] = row[k];
      }
    }
  }
#pragma omp parallel for schedule(dynamic)
  for (int64_t begin = 0; begin < columns; begin += kRows)
    subtractProduct(std::min(kRows, columns - begin), columns, size, {&transposed[begin * size], size},
                    {spread.data(), columns}, {&inverse[begin * columns], columns});
#pragma omp parallel for schedule(dynamic)
  for (int64_t begin = 0; begin < rows; begin += kRows)
    subtractProduct(std::min(kRows, rows - begin), columns, size, {&solved[begin * size], size},
                    {spread.data(), columns}, {&elements[begin * columns], columns});
  return std::inner_product(solved.begin(), solved.end(), solved.begin(), 0.0);
}

void Eliminator::write(const Weight &weight) const {
  std::ranges::transform(elements, weight.elements.begin(), [](double element) { return static_cast<float>(element); });
  for (size_t group = 0; group < inputsOf.size(); ++group)
    for (int64_t k : inputsOf[group])
      for (int64_t row = 0; isGone[group] && row < rows; ++row)
        weight.row(row)[k] = 0;
}

absl::StatusOr<Elimination> eliminateGroups(const Weight &weight, const InverseFactor &factor, InputGroups groups,
                                            int64_t count, int64_t rounds) {
  Eliminator eliminator(weight, factor, groups);
  Elimination result{{}, 0};
  for (int64_t round = 0; round < rounds; ++round) {
    int64_t wanted = count * (round + 1) / rounds - static_cast<int64_t>(result.groups.size());
    std::optional<std::vector<double>> scores = wanted > 0 ? eliminator.score() : std::vector<double>();
    std::vector<int64_t> gone = scores ? chooseLowest(*scores, wanted) : std::vector<int64_t>();
    std::optional<double> loss = scores ? eliminator.eliminate(gone) : std::nullopt;
    if (!loss)
      return io::invalid("expected what ", result.groups.size() + wanted, " of ", groups.count,
                         " groups leave to have an inverse of its Hessian in f64");
    result.loss += *loss;
    result.groups.insert(result.groups.end(), gone.begin(), gone.end());
  }
  std::ranges::sort(result.groups);
  eliminator.write(weight);
  return result;
}

} // namespace hone::compress
