// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile is the product of two bands; tiles are computed by one thread each.

#include "calibration/second_moments.h"

#include "cpu/sgemm.h"

#include <algorithm>
#include <memory>
#include <omp.h>

namespace hone::calibration {

int64_t SecondMoments::bandHeight(int64_t number) const { return std::min(kBandRows, width - number * kBandRows); }

int64_t SecondMoments::bandBegin(int64_t number) const {
  // Bands before this one are full, and each is kBandRows columns shorter than the one before it.
  return number * kBandRows * width - kBandRows * kBandRows * (number * (number - 1) / 2);
}

int64_t SecondMoments::countSums(int64_t width) {
  SecondMoments moments(width, nullptr);
  int64_t last = moments.bandCount() - 1;
  return width == 0 ? 0 : moments.bandBegin(last) + moments.bandHeight(last) * moments.bandHeight(last);
}

double *SecondMoments::tile(int64_t band, int64_t column) const {
  return sums + bandBegin(band) + (column - band * kBandRows);
}

/// False where there is no memory.
bool SecondMoments::addTile(float *rows, int64_t count, int64_t band, int64_t columnBand, float *products) const {
  int64_t height = bandHeight(band), columns = bandHeight(columnBand), stride = width - band * kBandRows;
  if (!cpu::trySgemm(height, columns, count, {rows + band * kBandRows, /*transposed=*/true, width},
                     {rows + columnBand * kBandRows, /*transposed=*/false, width}, /*beta=*/0,
                     {products, false, columns}))
    return false;
  double *target = tile(band, columnBand * kBandRows);
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < columns; ++j)
      target[i * stride + j] += products[i * columns + j];
  return true;
}

absl::Status SecondMoments::add(float *rows, int64_t count) {
  if (count == 0)
    return absl::OkStatus();
  int64_t bands = bandCount();
  std::vector<std::pair<int64_t, int64_t>> tiles;
  for (int64_t band = 0; band < bands; ++band)
    for (int64_t column = band; column < bands; ++column)
      tiles.emplace_back(band, column);
  // Before the region: what is thrown in one ends the process.
  auto products =
      std::make_unique_for_overwrite<float[]>(static_cast<size_t>(omp_get_max_threads()) * kBandRows * kBandRows);
  bool hasMemory = true;
#pragma omp parallel for schedule(dynamic) reduction(&& : hasMemory)
  for (size_t i = 0; i < tiles.size(); ++i)
    hasMemory = addTile(rows, count, tiles[i].first, tiles[i].second,
                        products.get() + omp_get_thread_num() * kBandRows * kBandRows) &&
                hasMemory;
  return hasMemory ? absl::OkStatus()
                   : absl::ResourceExhaustedError("cannot multiply the rows of a layer's input: out of memory");
}

std::vector<float> SecondMoments::band(int64_t number, double divisor) const {
  int64_t first = number * kBandRows, height = bandHeight(number);
  std::vector<float> rows(static_cast<size_t>(height * width));
  for (int64_t other = 0; other < bandCount(); ++other)
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < bandHeight(other); ++j) {
        int64_t row = first + i, column = other * kBandRows + j;
        auto [low, high] = std::minmax(row, column);
        int64_t band = low / kBandRows;
        double sum = tile(band, high)[(low - band * kBandRows) * (width - band * kBandRows)];
        rows[static_cast<size_t>(i * width + column)] = static_cast<float>(sum / divisor);
      }
  return rows;
}

} // namespace hone::calibration
