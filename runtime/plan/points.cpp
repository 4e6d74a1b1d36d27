// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "plan/points.h"

#include "io/json.h"

#include <cmath>
#include <tuple>

namespace hone::plan {
namespace {

using io::invalid;

absl::Status readNumber(const io::ParsedJson &object, const char *key, double most, const std::string &place,
                        double &number) {
  const io::ParsedJson *value = io::member(object, key);
  if (!value)
    return invalid(place, ": expected a member '", key, "'");
  const auto *whole = value->get_ptr<const io::ParsedJson::number_integer_t *>();
  const auto *positive = value->get_ptr<const io::ParsedJson::number_unsigned_t *>();
  const auto *fraction = value->get_ptr<const io::ParsedJson::number_float_t *>();
  number = positive ? static_cast<double>(*positive) : whole ? static_cast<double>(*whole) : fraction ? *fraction : NAN;
  if (!(number > 0 && number < most))
    return invalid(place, ": expected '", key, "' to be a positive number", most == 1 ? " below 1" : "", ", but got ",
                   value->dump());
  return absl::OkStatus();
}

absl::Status readPoint(std::string_view line, const std::string &place, LossPoints &points) {
  HONE_ASSIGN_OR_RETURN(io::JsonDocument document, io::parseJson(line, place));
  std::optional<std::string> kind = io::asString(io::member(*document, "kind"));
  if (!kind || kind->empty())
    return invalid(place, ": expected 'kind' to be the name of a kind of sparsity, such as \"structured\" or \"2:4\"");
  LossPoint point = {};
  const std::tuple<const char *, double, double *> members[] = {{"parameters", INFINITY, &point.pruning.parameters},
                                                                {"rate", 1, &point.pruning.rate},
                                                                {"tokens", INFINITY, &point.tokens},
                                                                {"dense_loss", INFINITY, &point.pruning.denseLoss},
                                                                {"loss", INFINITY, &point.loss}};
  for (auto [key, most, number] : members)
    HONE_RETURN_IF_ERROR(readNumber(*document, key, most, place, *number));
  points[*kind].push_back(point);
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<LossPoints> parseLossPoints(std::string_view text, const std::string &name) {
  LossPoints points;
  HONE_RETURN_IF_ERROR(io::forEachLine(text, [&](std::string_view line, int64_t number) {
    return readPoint(line, io::cat(name, ":", number), points);
  }));
  if (points.empty())
    return invalid(name, ": expected points, a JSON object a line, but there is none");
  return points;
}

} // namespace hone::plan
