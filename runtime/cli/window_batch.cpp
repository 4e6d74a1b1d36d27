// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cli/window_batch.h"

#include <algorithm>
#include <limits>

namespace hone::cli {

using io::invalid;

static constexpr std::string_view kTargets = "targets";

/// The fewest rows of tables that ids are looked up in.
static int64_t vocabularyOf(const io::EntryInfo &entry) {
  int64_t rows = std::numeric_limits<int32_t>::max();
  for (const io::TensorInfo &input : entry.inputs)
    if (input.rows > 0)
      rows = std::min(rows, input.rows);
  return rows;
}

/// `end` is the size of the vocabulary.
static absl::Status checkVocabulary(const TuningData &data, int64_t end) {
  for (const TuningData::File &file : data.files) {
    auto wrong = std::ranges::find_if(file.ids, [end](int64_t id) { return id < 0 || id >= end; });
    if (wrong != file.ids.end())
      return invalid(file.name, ": token ", *wrong, " at position ", wrong - file.ids.begin(),
                     " is outside the vocabulary of ", end);
  }
  return absl::OkStatus();
}

static absl::Status checkEntry(const io::EntryInfo &entry, const TuningData &data, int64_t batch,
                               std::span<const std::string_view> numbers) {
  for (const io::TensorInfo &input : entry.inputs)
    if (&input != &entry.inputs.front() && input.name != kTargets &&
        std::ranges::find(numbers, input.name) == numbers.end())
      return invalid("unsupported input '", input.name, "' of the model; supported: models of tokens alone");
  const io::TensorInfo &first = entry.inputs.front();
  if (first.shape.size() != 2 || (first.dtype != HONE_I64 && first.dtype != HONE_I32) || first.name == kTargets)
    return invalid("expected the model to take tokens (i64 or i32, [batch, sequence])");
  for (auto [dim, wanted] : {std::pair(first.shape[0], batch), std::pair(first.shape[1], data.context)})
    if (dim.isFixed() && dim.size != wanted)
      return invalid("expected a batch and a context of ", io::shapeText(first.shape), ", but got [", batch, ", ",
                     data.context, "]");
  return checkVocabulary(data, vocabularyOf(entry));
}

absl::StatusOr<WindowBatch> WindowBatch::create(const io::EntryInfo &entry, const TuningData &data, int64_t batch,
                                                std::span<const std::string_view> numbers) {
  HONE_RETURN_IF_ERROR(checkEntry(entry, data, batch, numbers));
  WindowBatch made;
  made.name = entry.inputs.front().name;
  std::vector<int64_t> shape = {batch, data.context};
  HONE_ASSIGN_OR_RETURN(made.tokens, io::Array::create(entry.inputs.front().dtype, shape));
  HONE_ASSIGN_OR_RETURN(made.targets, io::Array::create(HONE_I64, shape));
  for (std::string_view number : numbers) {
    made.numberNames.emplace_back(number);
    HONE_ASSIGN_OR_RETURN(made.scalars.emplace_back(), io::Array::create(HONE_F32, {}));
  }
  return made;
}

void WindowBatch::set(int64_t row, std::span<const int64_t> window) {
  size_t context = window.size() - 1;
  auto copy = [&]<typename Id>(std::span<Id> all, std::span<const int64_t> ids) {
    std::ranges::transform(ids, all.subspan(static_cast<size_t>(row) * context, context).begin(),
                           [](int64_t id) { return static_cast<Id>(id); });
  };
  if (tokens.dtype() == HONE_I64)
    copy(tokens.as<int64_t>(), window.first(context));
  else
    copy(tokens.as<int32_t>(), window.first(context));
  copy(targets.as<int64_t>(), window.last(context));
}

std::vector<rt::NamedTensor> WindowBatch::inputs(std::span<const float> numbers) {
  std::vector<rt::NamedTensor> all = {{name, tokens.view()}, {std::string(kTargets), targets.view()}};
  for (size_t i = 0; i < numbers.size(); ++i) {
    scalars[i].as<float>()[0] = numbers[i];
    all.push_back({numberNames[i], scalars[i].view()});
  }
  return all;
}

} // namespace hone::cli
