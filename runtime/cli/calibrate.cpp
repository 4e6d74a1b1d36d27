// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows of tokens through an artefact that shows what it computes.

#include "hone/cli/calibrate.h"

#include "cli/commands.h"
#include "hone/cli/progress.h"

#include <algorithm>

namespace hone::cli {
namespace {

using io::invalid;

absl::Status checkVocabulary(const rt::LanguageModel &model, const CalibrationTokens &tokens) {
  int64_t end = model.vocabulary().value_or(std::numeric_limits<int32_t>::max());
  auto wrong = std::ranges::find_if(tokens.ids, [end](int64_t token) { return token < 0 || token >= end; });
  if (wrong == tokens.ids.end())
    return absl::OkStatus();
  return invalid(tokens.file, ": token ", *wrong, " at position ", wrong - tokens.ids.begin(),
                 " is outside the vocabulary of ", end);
}

} // namespace

absl::StatusOr<CalibrationTokens> readCalibrationTokens(const std::string &file, int64_t window, int64_t most) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> ids, readTokenRow(file));
  CalibrationTokens tokens = {file, std::move(ids), window};
  int64_t count = std::min(static_cast<int64_t>(tokens.ids.size()), most);
  if (count < window)
    return invalid(file, ": expected at least ", window, " tokens, a window, but got ", count);
  tokens.ids.resize(static_cast<size_t>(count / window * window));
  return tokens;
}

absl::Status runCalibration(const std::string &artefact, const CalibrationTokens &tokens, int threads,
                            calibration::Statistics &statistics) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, rt::Module::load(artefact));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session, rt::openLanguageSession(module, threads));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  HONE_RETURN_IF_ERROR(checkVocabulary(model, tokens));
  session->setObserver([&](int64_t site, const hone_tensor &values) { return statistics.add(site, values); });
  auto window = static_cast<size_t>(tokens.window);
  Progress progress("calibrating on windows", static_cast<int64_t>(tokens.ids.size() / window));
  for (size_t begin = 0; begin < tokens.ids.size(); begin += window) {
    progress.update(static_cast<int64_t>(begin / window));
    session->state().reset();
    // Logits of all positions: what is computed for the kept ones alone is observed as well.
    HONE_RETURN_IF_ERROR(model.feed(std::span(tokens.ids).subspan(begin, window), /*logitsToKeep=*/0).status());
  }
  return absl::OkStatus();
}

} // namespace hone::cli
