// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sum of x · xᵀ over many rows x, in memory that the caller gives: it may be mapped, and larger than the machine's.

#ifndef HONE_RUNTIME_CALIBRATION_SECOND_MOMENTS_H
#define HONE_RUNTIME_CALIBRATION_SECOND_MOMENTS_H

#include "absl/status/status.h"

#include <cstdint>
#include <vector>

namespace hone::calibration {

/// Sums for rows of `width` elements. Products of up to kMostRows rows are added up in f32, and those sums in f64, always in the
/// same order, whatever the number of threads.
class SecondMoments {
public:
  /// Rows that `add` takes at once.
  static constexpr int64_t kMostRows = 512;
  /// Rows of a band.
  static constexpr int64_t kBandRows = 256;

  /// How many sums there are for a width: the matrix is symmetric, and little more than its upper half is kept.
  static int64_t countSums(int64_t width);

  /// Over countSums(width) sums, which are 0 at first.
  SecondMoments(int64_t width, double *sums) : width(width), sums(sums) {}

  /// Adds 0 … kMostRows dense rows. Without memory for the products it fails, and the sums are undefined.
  absl::Status add(float *rows, int64_t count);

  int64_t bandCount() const { return (width + kBandRows - 1) / kBandRows; }
  /// The rows of a band of the whole matrix, each sum divided by `divisor`.
  std::vector<float> band(int64_t number, double divisor) const;

private:
  /// Band `number` keeps, of each of its rows, the columns from its first row on.
  int64_t bandBegin(int64_t number) const;
  double *tile(int64_t band, int64_t column) const;
  int64_t bandHeight(int64_t number) const;
  bool addTile(float *rows, int64_t count, int64_t band, int64_t columnBand, float *products) const;

  int64_t width;
  double *sums;
};

} // namespace hone::calibration

#endif // HONE_RUNTIME_CALIBRATION_SECOND_MOMENTS_H
