// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading of statistics. Nothing in a file is believed: what is missing or of another shape is an error that says so.

#include "hone/Compress/Statistics.h"

#include "hone/io/pages.h"
#include "hone/io/statistics_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace hone::compress {

using io::invalid;
using io::kInputOf;

/// The string of the metadata called `key`, or an empty one.
static std::string lookUp(const io::SafetensorsReader &reader, const std::string &key) {
  auto entry = reader.metadata().find(key);
  return entry == reader.metadata().end() ? std::string() : entry->second;
}

absl::StatusOr<Statistics> Statistics::open(const std::string &path) {
  Statistics statistics;
  HONE_ASSIGN_OR_RETURN(statistics.reader, io::SafetensorsReader::open(path));
  statistics.path = path;
  std::string format = lookUp(statistics.reader, "format"), version = lookUp(statistics.reader, "version");
  if (format != io::kStatisticsFormat)
    return invalid(path, ": expected the format to be '", io::kStatisticsFormat,
                   "', as 'hone calibrate' writes it, but got '", format, "'");
  if (version != io::kStatisticsVersion)
    return invalid(path, ": unsupported version '", version, "' of statistics; supported: ", io::kStatisticsVersion);
  statistics.fingerprint = lookUp(statistics.reader, "model");
  HONE_RETURN_IF_ERROR(statistics.parseInputs());
  return statistics;
}

absl::Status Statistics::parseInputs() {
  for (const auto &[key, text] : reader.metadata()) {
    if (!key.starts_with(kInputOf))
      continue;
    int64_t input = -1;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), input);
    if (error != std::errc() || end != text.data() + text.size() || input < 0)
      return invalid(path, ": expected '", key, "' to be a number, but got '", text, "'");
    inputs[key.substr(kInputOf.size())] = input;
  }
  return absl::OkStatus();
}

std::optional<int64_t> Statistics::findInput(std::string_view weight) const {
  auto entry = inputs.find(weight);
  return entry == inputs.end() ? std::nullopt : std::optional(entry->second);
}

int64_t Statistics::countRows(int64_t input) const {
  const io::StoredTensor *rows = reader.find(io::cat(input, io::kRows));
  int64_t count = 1;
  if (rows && rows->bytes == sizeof(count))
    std::memcpy(&count, reader.bytesOf(*rows), sizeof(count));
  return count;
}

absl::StatusOr<std::vector<float>> Statistics::readHessian(int64_t input, int64_t inputs) const {
  std::string name = std::to_string(input);
  const io::StoredTensor *rows = reader.find(io::cat(name, io::kRows)),
                         *hessian = reader.find(io::cat(name, io::kSecondMoment));
  for (auto [tensor, kind] : {std::pair(rows, io::kRows), std::pair(hessian, io::kSecondMoment)})
    if (!tensor)
      return invalid(path, ": expected a tensor '", name, kind, "', but there is none");
  int64_t count = 0;
  if (rows->dtype != HONE_I64 || !rows->shape.empty())
    return invalid(path, ": expected '", rows->name, "' to be i64 of [], but got ", io::dtypeName(rows->dtype), " of ",
                   io::shapeText(rows->shape));
  std::memcpy(&count, reader.bytesOf(*rows), sizeof(count));
  if (count < 1)
    return invalid(path, ": expected '", rows->name, "' to be 1 or more, but got ", count);
  std::vector<int64_t> shape{inputs, inputs};
  if (hessian->dtype != HONE_F32 || hessian->shape != shape)
    return invalid(path, ": expected '", hessian->name, "' to be f32 of ", io::shapeText(shape), ", but got ",
                   io::dtypeName(hessian->dtype), " of ", io::shapeText(hessian->shape));
  std::vector<float> elements(inputs * inputs);
  std::memcpy(elements.data(), reader.bytesOf(*hessian), hessian->bytes);
  io::releasePages(reader.bytesOf(*hessian), hessian->bytes); // all of them are more than the model
  return elements;
}

bool Statistics::hasCosts() const {
  return std::ranges::any_of(reader.tensors(),
                             [](const io::StoredTensor &tensor) { return tensor.name.starts_with(io::kCostOf); });
}

absl::StatusOr<double> Statistics::readCost(std::string_view weight) const {
  const io::StoredTensor *tensor = reader.find(io::cat(io::kCostOf, weight));
  if (!tensor)
    return invalid(path, ": expected a tensor '", io::kCostOf, weight, "', but there is none");
  if (tensor->dtype != HONE_F32 || !tensor->shape.empty())
    return invalid(path, ": expected '", tensor->name, "' to be f32 of [], but got ", io::dtypeName(tensor->dtype),
                   " of ", io::shapeText(tensor->shape));
  float cost = 0;
  std::memcpy(&cost, reader.bytesOf(*tensor), sizeof(cost));
  if (!std::isfinite(cost) || cost < 0)
    return invalid(path, ": expected '", tensor->name, "' to be finite and 0 or more, but got ", cost);
  return cost;
}

} // namespace hone::compress
