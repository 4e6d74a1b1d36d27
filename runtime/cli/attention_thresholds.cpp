// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The search for thresholds of selection: a grid, since errors of one head say nothing of another's, and all heads are measured by one call.

#include "hone/cli/attention_thresholds.h"

#include "cli/commands.h"
#include "hone/cli/progress.h"

#include <array>

namespace hone::cli {
namespace {

using io::invalid;

constexpr std::array kShares = {0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 0.99};
constexpr std::array kSimilarities = {-1.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6};
constexpr std::string_view kOutputs = "attention_outputs", kErrors = "selection_errors";

/// Sums over windows for one KV head.
struct HeadSums {
  double difference = 0, magnitude = 0, blocks = 0;
};

/// A point of the grid, and what each head of each layer lost there.
struct Candidate {
  double share, similarity;
  std::vector<std::vector<HeadSums>> layers;
};

class ThresholdSearch {
public:
  ThresholdSearch(const std::string &artefact, rt::Session &session, double least)
      : artefact(artefact), session(session), least(least) {
    candidates.push_back({1, -1, {}}); // all blocks
    for (double similarity : kSimilarities)
      for (double share : kShares)
        candidates.push_back({share, similarity, {}});
  }

  size_t countCandidates() const { return candidates.size(); }

  /// The layers by slot, and how many KV heads each has.
  absl::Status readLayers();
  /// Adds what the window that the session has loses at a candidate.
  absl::Status measure(size_t candidate, std::span<const io::Array> outputs);
  absl::StatusOr<std::vector<io::Array>> computeOutputs() { return session.call(kOutputs, {}); }

  std::map<std::string, std::vector<HeadThresholds>> choose(double error) const;

private:
  struct Layer {
    std::string slot;
    int64_t heads;
  };

  const std::string &artefact;
  rt::Session &session;
  double least;
  std::vector<Layer> layers;
  std::vector<Candidate> candidates;
};

} // namespace

absl::Status ThresholdSearch::readLayers() {
  const io::EntryInfo *entry = session.module().manifest().entry(kErrors);
  constexpr std::string_view kPrefix = "thresholds.";
  for (const io::TensorInfo &input : entry ? entry->inputs : std::vector<io::TensorInfo>())
    if (input.name.starts_with(kPrefix))
      layers.push_back({input.name.substr(kPrefix.size()), input.shape[1].size});
  if (layers.empty())
    return invalid(artefact, ": expected an entry '", kErrors, "' with thresholds");
  return absl::OkStatus();
}

absl::Status ThresholdSearch::measure(size_t number, std::span<const io::Array> outputs) {
  Candidate &candidate = candidates[number];
  std::vector<std::vector<float>> rows;
  std::vector<std::string> names;
  std::vector<rt::NamedTensor> inputs;
  rows.reserve(layers.size());
  names.reserve(2 * layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    std::vector<float> &row = rows.emplace_back();
    for (int64_t head = 0; head < layers[i].heads; ++head)
      for (double threshold : {least, candidate.share, candidate.similarity})
        row.push_back(static_cast<float>(threshold));
    hone_tensor thresholds = {row.data(), HONE_F32, 3, {1, layers[i].heads, 3}, {3 * layers[i].heads, 3, 1}};
    inputs.push_back({names.emplace_back("thresholds." + layers[i].slot), thresholds});
    inputs.push_back({names.emplace_back("output." + layers[i].slot), outputs[i].view()});
  }
  HONE_ASSIGN_OR_RETURN(std::vector<io::Array> results, session.call(kErrors, inputs));
  candidate.layers.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    candidate.layers[i].resize(static_cast<size_t>(layers[i].heads));
    for (size_t head = 0; head < candidate.layers[i].size(); ++head) {
      HeadSums &sums = candidate.layers[i][head];
      sums.difference += results[3 * i].as<float>()[head];
      sums.magnitude += results[3 * i + 1].as<float>()[head];
      sums.blocks += results[3 * i + 2].as<float>()[head];
      if (!std::isfinite(sums.difference) || !std::isfinite(sums.magnitude))
        return invalid(artefact, ": what attention '", layers[i].slot, "' gives is not a number");
    }
  }
  return absl::OkStatus();
}

std::map<std::string, std::vector<HeadThresholds>> ThresholdSearch::choose(double error) const {
  std::map<std::string, std::vector<HeadThresholds>> chosen;
  for (size_t i = 0; i < layers.size(); ++i)
    for (size_t head = 0; head < static_cast<size_t>(layers[i].heads); ++head) {
      HeadThresholds &best = chosen[layers[i].slot].emplace_back();
      best.least = least;
      double all = candidates.front().layers[i][head].blocks;
      for (const Candidate &candidate : candidates) {
        const HeadSums &sums = candidate.layers[i][head];
        if (sums.difference > error * sums.magnitude || sums.blocks >= best.blocks * all)
          continue;
        best.share = candidate.share;
        best.similarity = candidate.similarity;
        best.blocks = sums.blocks / all;
        best.error = sums.magnitude > 0 ? sums.difference / sums.magnitude : 0;
      }
    }
  return chosen;
}

absl::StatusOr<std::map<std::string, std::vector<HeadThresholds>>>
searchAttentionThresholds(const std::string &artefact, const CalibrationTokens &tokens, double error, double least,
                          int threads) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, loadModule(artefact));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session, rt::openLanguageSession(module, threads));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session));
  ThresholdSearch search(artefact, *session, least);
  HONE_RETURN_IF_ERROR(search.readLayers());
  auto windows = static_cast<int64_t>(tokens.ids.size()) / tokens.window;
  auto count = static_cast<int64_t>(search.countCandidates());
  Progress progress("measuring thresholds", windows * count);
  for (int64_t i = 0; i < windows; ++i) {
    session->state().reset();
    auto window =
        std::span(tokens.ids).subspan(static_cast<size_t>(i * tokens.window), static_cast<size_t>(tokens.window));
    HONE_RETURN_IF_ERROR(model.feed(window, /*logitsToKeep=*/1).status());
    HONE_ASSIGN_OR_RETURN(std::vector<io::Array> outputs, search.computeOutputs());
    for (int64_t candidate = 0; candidate < count; ++candidate) {
      HONE_RETURN_IF_ERROR(search.measure(static_cast<size_t>(candidate), outputs));
      progress.update(i * count + candidate + 1);
    }
  }
  return search.choose(error);
}

} // namespace hone::cli
