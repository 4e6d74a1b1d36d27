// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads sensitivities.

#include "hone/Compress/Sensitivities.h"

#include <cmath>
#include <cstring>

namespace hone::compress {

absl::StatusOr<Sensitivities> Sensitivities::open(const std::string &path) {
  auto reader = io::SafetensorsReader::open(path);
  HONE_RETURN_IF_ERROR(reader.status());
  Sensitivities sensitivities;
  sensitivities.reader = std::move(*reader);
  sensitivities.path = path;
  return sensitivities;
}

absl::StatusOr<std::vector<float>> Sensitivities::read(std::string_view weight, int64_t rows, int64_t columns) const {
  const io::StoredTensor *tensor = reader.find(weight);
  std::vector<int64_t> shape{rows, columns};
  if (tensor->dtype != HONE_F32 || tensor->shape != shape)
    return io::invalid(path, ": expected '", weight, "' to be f32 of ", io::shapeText(shape), ", but got ",
                       io::dtypeName(tensor->dtype), " of ", io::shapeText(tensor->shape));
  std::vector<float> scores(rows * columns);
  std::memcpy(scores.data(), reader.bytesOf(*tensor), tensor->bytes);
  for (size_t i = 0; i < scores.size(); ++i)
    if (!(scores[i] >= 0) || !std::isfinite(scores[i]))
      return io::invalid(path, ": expected the elements of '", weight, "' to be finite and 0 or more, but number ", i,
                         " is ", scores[i]);
  return scores;
}

} // namespace hone::compress
