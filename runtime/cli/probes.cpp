// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of measured losses: what probes write, and what pruning is planned by.

#include "hone/cli/plan.h"

#include "hone/io/file.h"
#include "io/json.h"
#include "plan/plan.h"

#include <filesystem>

namespace hone::cli {

using io::invalid;

absl::StatusOr<PlannedPruning> planPruning(const std::string &file, const PruningGoal &goal) {
  HONE_ASSIGN_OR_RETURN(std::string text, io::readFile(file));
  HONE_ASSIGN_OR_RETURN(plan::LossPoints points, plan::parseLossPoints(text, file));
  plan::Question question;
  question.parameters = goal.parameters;
  question.denseLoss = goal.denseLoss;
  question.targetLoss = goal.targetLoss;
  question.budget = goal.tokens;
  absl::StatusOr<plan::Choice> choice = plan::chooseRate(points, question);
  if (!choice.ok())
    return invalid(file, ": ", io::messageOf(choice.status()));
  return PlannedPruning{choice->kind,     choice->rate,      choice->loss.value,
                        choice->loss.low, choice->loss.high, choice->isBeyond};
}

absl::StatusOr<std::set<std::string>> readProbes(const std::string &file) {
  std::set<std::string> runs;
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    return runs;
  HONE_ASSIGN_OR_RETURN(std::string text, io::readFile(file));
  HONE_RETURN_IF_ERROR(plan::parseLossPoints(text, file).status());
  HONE_RETURN_IF_ERROR(io::forEachLine(text, [&](std::string_view line, int64_t number) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(io::JsonDocument document, io::parseJson(line, io::cat(file, ":", number)));
    if (std::optional<std::string> run = io::asString(io::member(*document, "run")))
      runs.insert(std::move(*run));
    return absl::OkStatus();
  }));
  return runs;
}

absl::Status addProbe(const std::string &file, const ProbePoint &point) {
  std::string text;
  std::error_code error;
  if (std::filesystem::exists(file, error)) {
    HONE_ASSIGN_OR_RETURN(text, io::readFile(file));
    if (!text.empty() && text.back() != '\n')
      text += '\n';
  }
  text += io::Json({{"kind", point.kind},
                    {"parameters", point.parameters},
                    {"rate", point.rate},
                    {"tokens", point.tokens},
                    {"dense_loss", point.denseLoss},
                    {"loss", point.loss},
                    {"run", point.run}})
              .dump() +
          "\n";
  return io::writeFile(file, text);
}

} // namespace hone::cli
