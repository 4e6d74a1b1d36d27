// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads sensitivities.

#include "hone/Compress/Sensitivities.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hone::compress {

absl::StatusOr<Sensitivities> Sensitivities::open(const std::string &path) {
  auto reader = io::SafetensorsReader::open(path);
  HONE_RETURN_IF_ERROR(reader.status());
  Sensitivities sensitivities;
  sensitivities.reader = std::move(*reader);
  sensitivities.path = path;
  return sensitivities;
}

bool Sensitivities::areIntegrals() const {
  auto format = reader.metadata().find("format");
  return format != reader.metadata().end() && format->second == kIntegralFormat;
}

absl::StatusOr<std::span<const float>> Sensitivities::elementsOf(const io::StoredTensor &tensor) const {
  if (tensor.dtype != HONE_F32)
    return io::invalid(path, ": expected '", tensor.name, "' to be f32, but got ", io::dtypeName(tensor.dtype));
  std::span elements(reinterpret_cast<const float *>(reader.bytesOf(tensor)), tensor.bytes / sizeof(float));
  bool haveSigns = areIntegrals();
  for (size_t i = 0; i < elements.size(); ++i)
    if (!std::isfinite(elements[i]) || (elements[i] < 0 && !haveSigns))
      return io::invalid(path, ": expected the elements of '", tensor.name, "' to be finite",
                         haveSigns ? "" : " and 0 or more", ", but number ", i, " is ", elements[i]);
  return elements;
}

absl::StatusOr<std::vector<float>> Sensitivities::read(std::string_view weight, int64_t rows, int64_t columns) const {
  const io::StoredTensor *tensor = reader.find(weight);
  std::vector<int64_t> shape{rows, columns};
  if (tensor->dtype != HONE_F32 || tensor->shape != shape)
    return io::invalid(path, ": expected '", weight, "' to be f32 of ", io::shapeText(shape), ", but got ",
                       io::dtypeName(tensor->dtype), " of ", io::shapeText(tensor->shape));
  HONE_ASSIGN_OR_RETURN(std::span<const float> elements, elementsOf(*tensor));
  std::vector<float> scores(elements.size());
  std::ranges::transform(elements, scores.begin(), [](float element) { return std::abs(element); });
  return scores;
}

//===- Shares -----------------------------------------------------------------------------------------------------===//

/// The bits of a magnitude, which order as it does.
static uint32_t orderOf(float element) { return std::bit_cast<uint32_t>(std::abs(element)); }

/// Finds how far numbers of 31 bits have to go for `count` of them: 16 bits first, and of those that share these, the rest.
static uint32_t findThreshold(std::span<const std::span<const float>> tensors, uint64_t count) {
  constexpr uint32_t kLowBits = 15;
  uint32_t high = 0;
  for (bool knowsHigh : {false, true}) {
    std::vector<uint64_t> numbers(size_t(1) << 16);
    for (std::span<const float> elements : tensors)
      for (float element : elements) {
        uint32_t order = orderOf(element);
        if (!knowsHigh)
          ++numbers[order >> kLowBits];
        else if (order >> kLowBits == high)
          ++numbers[order & ((1u << kLowBits) - 1)];
      }
    auto last = static_cast<uint32_t>(numbers.size() - 1);
    for (; last > 0 && numbers[last] < count; --last)
      count -= numbers[last];
    if (knowsHigh)
      return high << kLowBits | last;
    high = last;
  }
  return 0;
}

absl::StatusOr<std::map<std::string, double>> Sensitivities::distribute(double share) const {
  std::vector<std::span<const float>> tensors;
  uint64_t all = 0;
  for (const io::StoredTensor &tensor : reader.tensors()) {
    HONE_ASSIGN_OR_RETURN(tensors.emplace_back(), elementsOf(tensor));
    all += tensors.back().size();
  }
  auto count = static_cast<uint64_t>(std::llround(share * static_cast<double>(all)));
  uint32_t threshold = findThreshold(tensors, count);
  std::map<std::string, double> shares;
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto number = std::ranges::count_if(tensors[i], [&](float element) { return orderOf(element) >= threshold; });
    shares[reader.tensors()[i].name] =
        tensors[i].empty() || count == 0 ? 0 : static_cast<double>(number) / static_cast<double>(tensors[i].size());
  }
  return shares;
}

} // namespace hone::compress
