// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statistics of the inputs of linear layers, and the file that holds them (docs/calibration.md).

#ifndef HONE_CALIBRATION_STATISTICS_H
#define HONE_CALIBRATION_STATISTICS_H

#include "hone/io/array.h"
#include "hone/io/file.h"

#include <span>

namespace hone::calibration {

/// An input: the elements of a row of it, and the names of the weights that it is multiplied with, at least one. With `scales`, one
/// for each element, what the program shows was divided by them, and what is written of it is not.
struct Site {
  int64_t width;
  std::vector<std::string> weights;
  std::vector<float> scales = {};
};

/// What an error of a weight costs a model: how far its predictions move, KL(before || after) in nats a token, for each mean square of
/// what changes of the outputs of the weight's layers relative to that of the outputs, or of its elements where its input is
/// at no site.
struct Cost {
  std::string weight;
  float cost;
};

/// Counts rows, site by site: sums of x · xᵀ, and the largest magnitude of each channel. The sums are in an
/// unlinked spill file beside the result, which is mapped.
class Statistics {
public:
  /// `path` is the file that `write` makes. Fails where there is no folder for it, or no room for the sums.
  static absl::StatusOr<Statistics> create(std::string path, std::vector<Site> sites);

  /// Counts rows, the last dimension of `values` (f32, f16 or bf16, any strides), but for those of zeros: an expert is shown these in
  /// place of rows that did not choose it. Fails where an element is not finite, with
  /// the names of the site's weights, and where there is no such site or its rows have another width.
  absl::Status add(int64_t site, const hone_tensor &values);

  const Site &site(size_t number) const { return counts[number].site; }
  size_t siteCount() const { return counts.size(); }
  /// How many of its rows were counted.
  int64_t rowCount(size_t site) const { return counts[site].rows; }

  /// The second moment of a site as the program shows it, [width, width], row-major; zeros where no row of it was counted.
  std::vector<float> secondMoment(size_t site) const;

  /// Writes what was counted over `tokens` tokens of the model with the fingerprint `model`, and `costs`. The file appears when it is
  /// whole.
  absl::Status write(int64_t tokens, const std::string &model, std::span<const Cost> costs) const;

private:
  struct Count {
    Site site;
    double *sums;
    std::vector<float> largest;
    int64_t rows = 0;
  };

  static std::vector<float> bandOf(const Count &count, int64_t number);
  absl::Status addBlock(Count &count, const std::vector<const char *> &rows, const hone_tensor &values);
  /// Leaves the sums to their file until rows of the site come again.
  void release(const Count &count) const;
  absl::Status checkFinite(const Count &count, const std::vector<float> &rows) const;

  std::string path;
  io::ScratchFile memory;
  std::vector<Count> counts;
};

} // namespace hone::calibration

#endif // HONE_CALIBRATION_STATISTICS_H
