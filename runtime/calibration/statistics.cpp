// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counting blocks of rows, and writing the file.

#include "hone/calibration/statistics.h"

#include "calibration/second_moments.h"
#include "hone/io/safetensors.h"
#include "hone/io/statistics_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

namespace hone::calibration {
namespace {

using io::cat;
using io::invalid;

/// Names of some weights of a site, for messages.
std::string nameOf(const Site &site) {
  std::string name = cat("'", site.weights[0], "'");
  return site.weights.size() == 1 ? name : cat(name, " and ", site.weights.size() - 1, " more");
}

struct BFloat16 {
  uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <typename Element> void copyElements(const void *from, int64_t stride, std::span<float> to) {
  const auto *elements = static_cast<const Element *>(from);
  for (float &element : to) {
    element = static_cast<float>(*elements);
    elements += stride;
  }
}

/// Copies a row, of elements at a distance of `stride`, as f32.
using RowCopier = void (*)(const void *from, int64_t stride, std::span<float> to);

/// Null for a type that rows do not have.
RowCopier copierFor(int32_t dtype) {
  switch (dtype) {
  case HONE_F32:
    return copyElements<float>;
  case HONE_F16:
    return copyElements<_Float16>;
  case HONE_BF16:
    return copyElements<BFloat16>;
  default:
    return nullptr;
  }
}

/// Where each row of a view begins, in the order of its dimensions.
std::vector<const char *> findRows(const hone_tensor &values) {
  int64_t bytes = io::dtypeBytes(static_cast<hone_dtype>(values.dtype));
  std::vector<const char *> rows = {static_cast<const char *>(values.data)};
  for (int32_t axis = 0; axis + 1 < values.rank; ++axis) {
    std::vector<const char *> inner;
    inner.reserve(rows.size() * static_cast<size_t>(values.sizes[axis]));
    for (const char *row : rows)
      for (int64_t i = 0; i < values.sizes[axis]; ++i)
        inner.push_back(row + i * values.strides[axis] * bytes);
    rows = std::move(inner);
  }
  return rows;
}

} // namespace

absl::StatusOr<Statistics> Statistics::create(std::string path, std::vector<Site> sites) {
  Statistics statistics;
  statistics.path = std::move(path);
  int64_t total = 0;
  for (const Site &site : sites)
    total += SecondMoments::countSums(site.width);
  // At least a byte, so that a folder that cannot be written shows now.
  uint64_t bytes = std::max<uint64_t>(static_cast<uint64_t>(total) * sizeof(double), 1);
  HONE_ASSIGN_OR_RETURN(statistics.memory, io::ScratchFile::create(statistics.path, bytes));
  auto *sums = reinterpret_cast<double *>(statistics.memory.data());
  for (Site &site : sites) {
    int64_t width = site.width;
    statistics.counts.push_back({std::move(site), sums, std::vector<float>(static_cast<size_t>(width), 0.0f)});
    sums += SecondMoments::countSums(width);
  }
  return statistics;
}

absl::Status Statistics::add(int64_t site, const hone_tensor &values) {
  if (site < 0 || site >= static_cast<int64_t>(counts.size()))
    return absl::InternalError(cat("the program shows rows of site ", site, " of ", counts.size()));
  Count &count = counts[static_cast<size_t>(site)];
  if (!copierFor(values.dtype) || values.rank < 1 || values.sizes[values.rank - 1] != count.site.width)
    return absl::InternalError(cat("expected rows of ", count.site.width, " floats at site ", site));
  std::vector<const char *> rows = findRows(values);
  for (size_t begin = 0; begin < rows.size(); begin += SecondMoments::kMostRows) {
    size_t end = std::min(rows.size(), begin + SecondMoments::kMostRows);
    HONE_RETURN_IF_ERROR(addBlock(
        count, {rows.begin() + static_cast<ptrdiff_t>(begin), rows.begin() + static_cast<ptrdiff_t>(end)}, values));
  }
  release(count);
  return absl::OkStatus();
}

void Statistics::release(const Count &count) const {
  auto begin = static_cast<uint64_t>(reinterpret_cast<const uint8_t *>(count.sums) - memory.data());
  memory.release(begin, begin + static_cast<uint64_t>(SecondMoments::countSums(count.site.width)) * sizeof(double));
}

absl::Status Statistics::addBlock(Count &count, const std::vector<const char *> &rows, const hone_tensor &values) {
  auto width = static_cast<size_t>(count.site.width);
  std::vector<float> block(rows.size() * width);
  size_t taken = 0;
  for (const char *from : rows) {
    std::span<float> row = std::span(block).subspan(taken * width, width);
    copierFor(values.dtype)(from, values.strides[values.rank - 1], row);
    taken += std::ranges::any_of(row, [](float element) { return element != 0; });
  }
  block.resize(taken * width);
  HONE_RETURN_IF_ERROR(checkFinite(count, block));
  for (size_t row = 0; row < taken; ++row)
    for (size_t i = 0; i < width; ++i)
      count.largest[i] = std::max(count.largest[i], std::abs(block[row * width + i]));
  HONE_RETURN_IF_ERROR(SecondMoments(count.site.width, count.sums).add(block.data(), static_cast<int64_t>(taken)));
  count.rows += static_cast<int64_t>(taken);
  return absl::OkStatus();
}

absl::Status Statistics::checkFinite(const Count &count, const std::vector<float> &rows) const {
  auto wrong = std::ranges::find_if_not(rows, [](float element) { return std::isfinite(element); });
  if (wrong == rows.end())
    return absl::OkStatus();
  int64_t at = wrong - rows.begin();
  return invalid("expected the input of ", nameOf(count.site), " to be finite, but got ",
                 std::isnan(*wrong) ? "nan"
                 : *wrong > 0       ? "inf"
                                    : "-inf",
                 " in channel ", at % count.site.width, " of row ", count.rows + at / count.site.width);
}

std::vector<float> Statistics::bandOf(const Count &count, int64_t number) {
  auto divisor = static_cast<double>(std::max<int64_t>(count.rows, 1)); // what was never reached is 0
  return SecondMoments(count.site.width, count.sums).band(number, divisor);
}

std::vector<float> Statistics::secondMoment(size_t site) const {
  const Count &count = counts[site];
  std::vector<float> moment;
  for (int64_t number = 0; number < SecondMoments(count.site.width, count.sums).bandCount(); ++number)
    std::ranges::copy(bandOf(count, number), std::back_inserter(moment));
  return moment;
}

/// Elements from number `first` on of a matrix [width, width] of an input whose channels were divided by the scales of its site.
static void undoScales(const Site &site, int64_t first, std::span<float> elements) {
  for (size_t i = 0; i < elements.size() && !site.scales.empty(); ++i) {
    size_t place = static_cast<size_t>(first) + i, width = static_cast<size_t>(site.width);
    elements[i] *= site.scales[place / width] * site.scales[place % width];
  }
}

absl::Status Statistics::write(int64_t tokens, const std::string &model, std::span<const Cost> costs) const {
  std::map<std::string, std::string> metadata = {{"format", std::string(io::kStatisticsFormat)},
                                                 {"version", std::string(io::kStatisticsVersion)},
                                                 {"tokens", std::to_string(tokens)},
                                                 {"model", model}};
  std::vector<io::StoredTensor> tensors;
  for (size_t i = 0; i < counts.size(); ++i) {
    const Site &site = counts[i].site;
    for (const std::string &weight : site.weights)
      metadata[cat(io::kInputOf, weight)] = std::to_string(i);
    tensors.push_back({cat(i, io::kSecondMoment), HONE_F32, {site.width, site.width}});
    tensors.push_back({cat(i, io::kLargest), HONE_F32, {site.width}});
    tensors.push_back({cat(i, io::kRows), HONE_I64, {}});
  }
  for (const Cost &cost : costs)
    tensors.push_back({cat(io::kCostOf, cost.weight), HONE_F32, {}});
  HONE_ASSIGN_OR_RETURN(auto writer, io::SafetensorsWriter::create(path, std::move(tensors), metadata));
  auto append = [&](const void *data, size_t bytes) { return writer.append({static_cast<const char *>(data), bytes}); };
  for (const Count &count : counts) {
    int64_t first = 0;
    for (int64_t number = 0; number < SecondMoments(count.site.width, count.sums).bandCount(); ++number) {
      std::vector<float> band = bandOf(count, number);
      undoScales(count.site, first, band);
      HONE_RETURN_IF_ERROR(append(band.data(), band.size() * sizeof(float)));
      first += static_cast<int64_t>(band.size());
    }
    release(count);
    std::vector<float> largest = count.largest;
    for (size_t i = 0; i < count.site.scales.size(); ++i)
      largest[i] *= std::abs(count.site.scales[i]);
    HONE_RETURN_IF_ERROR(append(largest.data(), largest.size() * sizeof(float)));
    HONE_RETURN_IF_ERROR(append(&count.rows, sizeof count.rows));
  }
  for (const Cost &cost : costs)
    HONE_RETURN_IF_ERROR(append(&cost.cost, sizeof cost.cost));
  return writer.commit();
}

} // namespace hone::calibration
