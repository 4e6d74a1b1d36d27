// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The search for thresholds of selection: a grid, since errors of one head say nothing of another's, and all heads are measured by one
// call.

#include "hone/cli/attention_thresholds.h"

#include "cli/commands.h"
#include "hone/cli/progress.h"

#include <algorithm>
#include <array>

namespace hone::cli {
namespace {

using io::invalid;

constexpr std::array kShares = {0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 0.99};
constexpr std::array kSimilarities = {-1.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6};
constexpr size_t kResults = 4; // of each layer
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

using Chosen = std::vector<LayerThresholds>;

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
  /// What attention gives over all keys of the window that the session has.
  absl::Status computeOutputs() {
    HONE_ASSIGN_OR_RETURN(outputs, session.call(kOutputs, {}));
    return absl::OkStatus();
  }
  /// Adds what that window loses at a candidate.
  absl::Status measure(size_t candidate);
  Chosen choose(double error) const;
  /// Sets which blocks are read in that window.
  absl::Status readLists(Chosen &chosen);

private:
  struct Layer {
    std::string slot;
    int64_t heads;
  };
  using Row = std::array<double, 3>; // of thresholds

  template <typename GetRow> absl::StatusOr<std::vector<io::Array>> callErrors(GetRow getRow);

  const std::string &artefact;
  rt::Session &session;
  double least;
  std::vector<Layer> layers;
  std::vector<Candidate> candidates;
  std::vector<io::Array> outputs;
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

/// With the thresholds that `getRow` has for a KV head of a layer.
template <typename GetRow> absl::StatusOr<std::vector<io::Array>> ThresholdSearch::callErrors(GetRow getRow) {
  std::vector<std::vector<float>> rows(layers.size());
  std::vector<std::string> names;
  std::vector<rt::NamedTensor> inputs;
  names.reserve(2 * layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    for (int64_t head = 0; head < layers[i].heads; ++head)
      for (double threshold : getRow(i, static_cast<size_t>(head)))
        rows[i].push_back(static_cast<float>(threshold));
    hone_tensor thresholds = {rows[i].data(), HONE_F32, 3, {1, layers[i].heads, 3}, {3 * layers[i].heads, 3, 1}};
    inputs.push_back({names.emplace_back("thresholds." + layers[i].slot), thresholds});
    inputs.push_back({names.emplace_back("output." + layers[i].slot), outputs[i].view()});
  }
  return session.call(kErrors, inputs);
}

absl::Status ThresholdSearch::measure(size_t number) {
  Candidate &candidate = candidates[number];
  auto getRow = [&](size_t, size_t) { return Row{least, candidate.share, candidate.similarity}; };
  HONE_ASSIGN_OR_RETURN(std::vector<io::Array> results, callErrors(getRow));
  candidate.layers.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    auto sumsOf = [&](size_t result) { return results[kResults * i + result].as<float>(); };
    candidate.layers[i].resize(static_cast<size_t>(layers[i].heads));
    for (size_t head = 0; head < candidate.layers[i].size(); ++head) {
      HeadSums &sums = candidate.layers[i][head];
      sums.difference += sumsOf(0)[head];
      sums.magnitude += sumsOf(1)[head];
      sums.blocks += sumsOf(2)[head];
      if (!std::isfinite(sums.difference) || !std::isfinite(sums.magnitude))
        return invalid(artefact, ": what attention '", layers[i].slot, "' gives is not a number");
    }
  }
  return absl::OkStatus();
}

absl::Status ThresholdSearch::readLists(Chosen &chosen) {
  auto getRow = [&](size_t layer, size_t head) {
    const HeadThresholds &found = chosen[layer].heads[head];
    return Row{found.least, found.share, found.similarity};
  };
  HONE_ASSIGN_OR_RETURN(std::vector<io::Array> results, callErrors(getRow));
  for (size_t i = 0; i < layers.size(); ++i) {
    const io::Array &lists = results[kResults * i + 3]; // [1, heads, lists, places]
    auto count = static_cast<size_t>(lists.shape()[2]), places = static_cast<size_t>(lists.shape()[3]);
    for (size_t head = 0; head < static_cast<size_t>(layers[i].heads); ++head)
      for (size_t list = 0; list < count; ++list) {
        std::vector<int64_t> &blocks = chosen[i].heads[head].lists.emplace_back();
        for (int64_t block : lists.as<int64_t>().subspan((head * count + list) * places, places))
          if (block >= 0)
            blocks.push_back(block);
        std::ranges::sort(blocks);
      }
  }
  return absl::OkStatus();
}

Chosen ThresholdSearch::choose(double error) const {
  Chosen chosen;
  for (size_t i = 0; i < layers.size(); ++i) {
    chosen.push_back({layers[i].slot, {}});
    for (size_t head = 0; head < static_cast<size_t>(layers[i].heads); ++head) {
      HeadThresholds &best = chosen.back().heads.emplace_back();
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
  }
  return chosen;
}

absl::StatusOr<std::vector<LayerThresholds>> searchAttentionThresholds(const std::string &artefact,
                                                                       const CalibrationTokens &tokens, double error,
                                                                       double least, int threads) {
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
    HONE_RETURN_IF_ERROR(search.computeOutputs());
    for (int64_t candidate = 0; candidate < count; ++candidate) {
      HONE_RETURN_IF_ERROR(search.measure(static_cast<size_t>(candidate)));
      progress.update(i * count + candidate + 1);
    }
  }
  Chosen chosen = search.choose(error);
  HONE_RETURN_IF_ERROR(search.readLists(chosen));
  return chosen;
}

} // namespace hone::cli
