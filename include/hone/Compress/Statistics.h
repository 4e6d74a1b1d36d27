// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone calibrate` measured of the inputs of a model's layers, as methods of compression read it (docs/calibration.md).

#ifndef HONE_COMPRESS_STATISTICS_H
#define HONE_COMPRESS_STATISTICS_H

#include "hone/io/safetensors.h"

#include <optional>

namespace hone::compress {

/// A file of statistics, mapped. Every error begins with its name.
class Statistics {
public:
  /// Fails where `path` is no such file, of another version, or names inputs that are no numbers.
  static absl::StatusOr<Statistics> open(const std::string &path);

  /// Fingerprint of the model that was measured.
  const std::string &model() const { return fingerprint; }

  /// The number of the input that the products with `weight` read; nothing where none was measured.
  std::optional<int64_t> findInput(std::string_view weight) const;

  /// How many rows of input number `input` were measured: those of an expert may never have come. 1 where the file does not say.
  int64_t countRows(int64_t input) const;

  /// The Hessian [inputs, inputs] of input number `input`, row-major. Fails where the file has none, or one of another
  /// size, or no row was measured.
  absl::StatusOr<std::vector<float>> readHessian(int64_t input, int64_t inputs) const;

  /// Whether it was measured what errors of weights cost.
  bool hasCosts() const;

  /// What an error of `weight` costs: nats of KL(before || after) for each mean square of what changes of the outputs of its layers,
  /// relative to that of the outputs; of elements where its input was not measured. Fails where the file does not say, or
  /// the number is not finite, or less than 0.
  absl::StatusOr<double> readCost(std::string_view weight) const;

private:
  io::SafetensorsReader reader;
  absl::Status parseInputs();

  std::string path, fingerprint;
  std::map<std::string, int64_t, std::less<>> inputs; // by weight
};

} // namespace hone::compress

#endif // HONE_COMPRESS_STATISTICS_H
