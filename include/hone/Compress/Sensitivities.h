// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much each element of a model's weights matters, as somebody measured it: the diagonal of a Fisher matrix, say. A safetensors
// file with a tensor of f32 [N, K] for each weight, by its name.

#ifndef HONE_COMPRESS_SENSITIVITIES_H
#define HONE_COMPRESS_SENSITIVITIES_H

#include "hone/io/safetensors.h"

#include <map>
#include <span>

namespace hone::compress {

/// Such a file, mapped. Every error begins with its name.
class Sensitivities {
public:
  /// What the metadata call `format` where tensors are the integrals of `hone calibrate --pqi`, with signs: magnitudes count.
  static constexpr std::string_view kIntegralFormat = "hone-pqi";

  static absl::StatusOr<Sensitivities> open(const std::string &path);

  const std::string &file() const { return path; }
  bool has(std::string_view weight) const { return reader.find(weight) != nullptr; }

  /// Those of a weight [rows, columns] that it has, row-major. Fails where they are of another type or shape, or one is not finite
  /// or, but for integrals, below 0.
  absl::StatusOr<std::vector<float>> read(std::string_view weight, int64_t rows, int64_t columns) const;

  /// Of each tensor the share of its elements that are among the highest `share` of all elements of the file. Fails as `read` does.
  absl::StatusOr<std::map<std::string, double>> distribute(double share) const;

private:
  bool areIntegrals() const;
  absl::StatusOr<std::span<const float>> elementsOf(const io::StoredTensor &tensor) const;

  io::SafetensorsReader reader;
  std::string path;
};

} // namespace hone::compress

#endif // HONE_COMPRESS_SENSITIVITIES_H
