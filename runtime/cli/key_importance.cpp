// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranked shares of attention, averaged over windows.

#include "hone/cli/key_importance.h"

#include "cli/commands.h"
#include "hone/cli/progress.h"

#include <algorithm>

namespace hone::cli {

using io::invalid;

/// The shares of the keys of [1, heads, keys], the greatest first. The last key of a window, which is not among them, has none.
static std::vector<double> rankShares(const io::Array &mass, int64_t window) {
  std::vector<double> shares(static_cast<size_t>(window));
  std::span<const float> values = mass.as<float>();
  auto keys = static_cast<size_t>(mass.shape()[2]);
  double all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    shares[i % keys] += values[i];
    all += values[i];
  }
  for (double &share : shares)
    share /= all;
  std::ranges::sort(shares, std::greater());
  return shares;
}

absl::StatusOr<std::map<std::string, std::vector<double>>>
measureKeyImportance(const std::string &artefact, const CalibrationTokens &tokens, int threads) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, loadModule(artefact));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session, rt::openLanguageSession(module, threads));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  const io::StateInfo &state = *module->manifest().state(session->entry().state);
  std::vector<std::string> slots;
  for (const io::LayerRetention &layer : state.retention->layers)
    if (layer.queries)
      slots.push_back(state.slots[static_cast<size_t>(layer.keys)].name);
  std::map<std::string, std::vector<double>> means;
  auto windows = static_cast<int64_t>(tokens.ids.size()) / tokens.window;
  Progress progress("measuring windows", windows);
  for (int64_t i = 0; i < windows; ++i) {
    session->state().reset();
    auto window =
        std::span(tokens.ids).subspan(static_cast<size_t>(i * tokens.window), static_cast<size_t>(tokens.window));
    HONE_RETURN_IF_ERROR(model.feed(window, /*logitsToKeep=*/1).status());
    HONE_ASSIGN_OR_RETURN(std::vector<io::Array> masses, session->call(rt::kImportanceEntry, {}));
    for (size_t layer = 0; layer < slots.size(); ++layer) {
      std::vector<double> shares = rankShares(masses[layer], tokens.window), &mean = means[slots[layer]];
      mean.resize(shares.size());
      for (size_t key = 0; key < shares.size(); ++key) {
        if (!std::isfinite(shares[key]))
          return invalid(artefact, ": the attention of window ", i, " is not a number");
        mean[key] += shares[key] / static_cast<double>(windows);
      }
    }
    progress.update(i + 1);
  }
  return means;
}

} // namespace hone::cli
