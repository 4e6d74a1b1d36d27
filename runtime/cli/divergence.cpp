// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every measurement loads the artefact anew, so that it sees the weights as they are.

#include "hone/cli/divergence.h"

#include "core/language_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone::cli {

using io::invalid;

/// log of the sum of exponentials.
static double logSum(std::span<const float> logits) {
  double largest = *std::ranges::max_element(logits), sum = 0;
  for (float logit : logits)
    sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

double meanDivergence(std::span<const float> expected, std::span<const float> actual, int64_t width) {
  auto rows = static_cast<int64_t>(expected.size()) / std::max<int64_t>(width, 1);
  std::vector<double> divergences(static_cast<size_t>(rows));
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    auto p = expected.subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
    auto q = actual.subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
    double sumOfP = logSum(p), sumOfQ = logSum(q), divergence = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      double log = p[i] - sumOfP;
      divergence += std::exp(log) * (log - (q[i] - sumOfQ));
    }
    divergences[static_cast<size_t>(row)] = divergence;
  }
  return rows == 0 ? 0 : std::accumulate(divergences.begin(), divergences.end(), 0.0) / static_cast<double>(rows);
}

absl::Status Predictions::run(const Receiver &receive) const {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, rt::Module::load(artefact));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session, rt::openLanguageSession(module, threads));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  auto window = static_cast<size_t>(tokens.window);
  for (size_t begin = 0; begin < tokens.ids.size(); begin += window) {
    session->state().reset();
    HONE_ASSIGN_OR_RETURN(io::Array logits, model.feed(std::span(tokens.ids).subspan(begin, window)));
    if (logits.shape()[1] != tokens.window)
      return invalid("expected logits for each of ", tokens.window, " tokens, but got ", logits.shape()[1],
                     ": a model that was exported with those of the last token only cannot be compared");
    auto wrong = std::ranges::find_if_not(logits.as<float>(), [](float logit) { return std::isfinite(logit); });
    if (wrong != logits.as<float>().end())
      return invalid("expected logits to be finite, but got ", *wrong, " in a window from token ", begin);
    HONE_RETURN_IF_ERROR(receive(begin, logits.as<float>()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Predictions> Predictions::create(std::string artefact, CalibrationTokens tokens, int threads,
                                                const std::string &path) {
  Predictions predictions;
  predictions.artefact = std::move(artefact);
  predictions.tokens = std::move(tokens);
  predictions.threads = threads;
  auto keep = [&](size_t begin, std::span<const float> logits) -> absl::Status {
    if (predictions.memory.size() == 0) {
      predictions.vocabulary = static_cast<int64_t>(logits.size()) / predictions.tokens.window;
      uint64_t elements = predictions.tokens.ids.size() * static_cast<uint64_t>(predictions.vocabulary);
      HONE_ASSIGN_OR_RETURN(predictions.memory, io::ScratchFile::create(path, elements * sizeof(float)));
    }
    auto *all = reinterpret_cast<float *>(predictions.memory.data());
    std::ranges::copy(logits, all + begin * static_cast<size_t>(predictions.vocabulary));
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(predictions.run(keep));
  return predictions;
}

absl::StatusOr<double> Predictions::measureDivergence() const {
  double sum = 0;
  auto *all = reinterpret_cast<const float *>(memory.data());
  auto compare = [&](size_t begin, std::span<const float> logits) -> absl::Status {
    sum += meanDivergence({all + begin * static_cast<size_t>(vocabulary), logits.size()}, logits, vocabulary);
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(run(compare));
  return sum * static_cast<double>(tokens.window) / static_cast<double>(tokens.ids.size());
}

} // namespace hone::cli
