// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adam over a network that fits into a few cache lines.

#include "speculate/classifier_training.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace hone::speculate {
namespace {

constexpr size_t kHeldOut = 20;                               // one tree of so many
constexpr size_t kNegatives = 4;                              // for each accepted candidate
constexpr double kRate1 = 0.9, kRate2 = 0.999, kSmall = 1e-8; // of Adam

using Examples = std::vector<TreeExample>;

/// 0 … 1, without 1.
double drawUnit(std::mt19937_64 &random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

template <typename Element> void shuffle(std::vector<Element> &elements, std::mt19937_64 &random) {
  for (size_t i = elements.size(); i > 1; --i)
    std::swap(elements[i - 1], elements[random() % i]);
}

/// Mean and standard deviation of each feature, so that the network sees features of like size.
struct Scaling {
  TreeFeatures mean = {}, deviation = {};

  explicit Scaling(const Examples &examples) {
    auto count = static_cast<double>(examples.size());
    for (size_t i = 0; i < kTreeFeatures; ++i) {
      double sum = 0, squares = 0;
      for (const TreeExample &example : examples)
        sum += example.features[i];
      mean[i] = sum / count;
      for (const TreeExample &example : examples)
        squares += (example.features[i] - mean[i]) * (example.features[i] - mean[i]);
      deviation[i] = squares > 0 ? std::sqrt(squares / count) : 1;
    }
  }

  TreeFeatures apply(const TreeFeatures &features) const {
    TreeFeatures scaled;
    for (size_t i = 0; i < kTreeFeatures; ++i)
      scaled[i] = (features[i] - mean[i]) / deviation[i];
    return scaled;
  }
};

class Network {
public:
  static constexpr size_t kCount = TreeClassifier::kParameters;

  explicit Network(std::mt19937_64 &random) {
    // Uniform in ±sqrt(6 / inputs) for units with max(x, 0) (He et al. 2015).
    fill(0, kTreeHidden * kTreeFeatures, std::sqrt(6.0 / kTreeFeatures), random);
    fill(kOutputs, kTreeHidden, std::sqrt(6.0 / kTreeHidden), random);
  }

  /// One step of Adam on the mean over these examples.
  void step(std::span<const TreeExample> examples, const Scaling &scaling, double rate) {
    std::array<double, kCount> gradients = {};
    for (const TreeExample &example : examples)
      addGradient(scaling.apply(example.features), example.isAccepted, gradients);
    ++steps;
    double unbias1 = 1 - std::pow(kRate1, steps), unbias2 = 1 - std::pow(kRate2, steps);
    for (size_t i = 0; i < kCount; ++i) {
      double gradient = gradients[i] / static_cast<double>(examples.size());
      first[i] = kRate1 * first[i] + (1 - kRate1) * gradient;
      second[i] = kRate2 * second[i] + (1 - kRate2) * gradient * gradient;
      values[i] -= rate * (first[i] / unbias1) / (std::sqrt(second[i] / unbias2) + kSmall);
    }
  }

  /// The same function of features as they come.
  TreeClassifier unscaled(const Scaling &scaling) const {
    TreeClassifier::Parameters parameters;
    std::ranges::transform(values, parameters.begin(), [](double value) { return static_cast<float>(value); });
    for (size_t unit = 0; unit < kTreeHidden; ++unit) {
      double bias = values[kBiases + unit];
      for (size_t i = 0; i < kTreeFeatures; ++i) {
        double weight = values[unit * kTreeFeatures + i] / scaling.deviation[i];
        parameters[unit * kTreeFeatures + i] = static_cast<float>(weight);
        bias -= weight * scaling.mean[i];
      }
      parameters[kBiases + unit] = static_cast<float>(bias);
    }
    return TreeClassifier(parameters);
  }

private:
  static constexpr size_t kBiases = kTreeHidden * kTreeFeatures, kOutputs = kBiases + kTreeHidden,
                          kLast = kOutputs + kTreeHidden;

  void fill(size_t begin, size_t count, double bound, std::mt19937_64 &random) {
    for (size_t i = begin; i < begin + count; ++i)
      values[i] = (2 * drawUnit(random) - 1) * bound;
  }

  void addGradient(const TreeFeatures &features, bool isAccepted, std::array<double, kCount> &gradients) const {
    std::array<double, kTreeHidden> hidden;
    double score = values[kLast];
    for (size_t unit = 0; unit < kTreeHidden; ++unit) {
      hidden[unit] = values[kBiases + unit];
      for (size_t i = 0; i < kTreeFeatures; ++i)
        hidden[unit] += values[unit * kTreeFeatures + i] * features[i];
      score += values[kOutputs + unit] * std::max(hidden[unit], 0.0);
    }
    double error = 1 / (1 + std::exp(-score)) - (isAccepted ? 1 : 0);
    gradients[kLast] += error;
    for (size_t unit = 0; unit < kTreeHidden; ++unit) {
      if (hidden[unit] <= 0)
        continue;
      gradients[kOutputs + unit] += error * hidden[unit];
      double ofHidden = error * values[kOutputs + unit];
      gradients[kBiases + unit] += ofHidden;
      for (size_t i = 0; i < kTreeFeatures; ++i)
        gradients[unit * kTreeFeatures + i] += ofHidden * features[i];
    }
  }

  std::array<double, kCount> values = {}, first = {}, second = {};
  double steps = 0;
};

/// Of every `kHeldOut` trees the last one, or the others.
Examples gather(std::span<const RecordedTree> trees, bool isHeldOut) {
  Examples examples;
  for (size_t i = 0; i < trees.size(); ++i)
    if ((i % kHeldOut == kHeldOut - 1) == isHeldOut)
      examples.insert(examples.end(), trees[i].begin(), trees[i].end());
  return examples;
}

absl::Status checkBothKinds(const Examples &examples, const char *which) {
  auto accepted = std::ranges::count_if(examples, &TreeExample::isAccepted);
  if (accepted > 0 && accepted < std::ssize(examples))
    return absl::OkStatus();
  return io::invalid("cannot train a classifier: of ", examples.size(), " candidates of the trees ", which, ", ",
                     accepted, " were accepted; more text, or other text, has both kinds");
}

/// All that were accepted, and some of the others.
Examples balance(Examples examples, std::mt19937_64 &random) {
  shuffle(examples, random);
  auto others =
      std::partition(examples.begin(), examples.end(), [](const TreeExample &example) { return example.isAccepted; });
  auto accepted = static_cast<size_t>(others - examples.begin());
  examples.resize(std::min(examples.size(), accepted * (1 + kNegatives)));
  return examples;
}

void evaluate(TrainedClassifier &trained, const Examples &examples) {
  std::vector<double> scores, probabilities;
  std::vector<bool> isAccepted;
  for (const TreeExample &example : examples) {
    scores.push_back(trained.classifier.scoreOf(example.features));
    probabilities.push_back(example.features[0]);
    isAccepted.push_back(example.isAccepted);
  }
  trained.area = areaUnderCurve(scores, isAccepted);
  trained.areaOfProbability = areaUnderCurve(probabilities, isAccepted);
  auto accepted = static_cast<double>(std::ranges::count(isAccepted, true));
  for (int tenth = 1; tenth < 10; ++tenth) {
    double threshold = tenth / 10.0, least = std::log(threshold / (1 - threshold)), kept = 0, recalled = 0;
    for (size_t i = 0; i < scores.size(); ++i)
      if (scores[i] >= least) {
        ++kept;
        recalled += isAccepted[i];
      }
    trained.effects.push_back({threshold, recalled / accepted, kept / static_cast<double>(scores.size())});
  }
}

} // namespace

double areaUnderCurve(std::span<const double> scores, const std::vector<bool> &isPositive) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double ranks = 0, positives = 0; // of the positives, with the mean rank where scores are equal
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && scores[order[end]] == scores[order[begin]])
      ++end;
    double mean = static_cast<double>(begin + end + 1) / 2;
    for (size_t i = begin; i < end; ++i)
      if (isPositive[order[i]]) {
        ranks += mean;
        ++positives;
      }
  }
  double negatives = static_cast<double>(scores.size()) - positives;
  return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
}

absl::StatusOr<TrainedClassifier> trainClassifier(std::span<const RecordedTree> trees, const TrainingOptions &options) {
  Examples held = gather(trees, /*isHeldOut=*/true), seen = gather(trees, /*isHeldOut=*/false);
  HONE_RETURN_IF_ERROR(checkBothKinds(seen, "for training"));
  HONE_RETURN_IF_ERROR(checkBothKinds(held, "that are held out"));
  std::mt19937_64 random(options.seed);
  seen = balance(std::move(seen), random);
  Scaling scaling(seen);
  Network network(random);
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    shuffle(seen, random);
    auto batch = static_cast<size_t>(options.batch);
    for (size_t begin = 0; begin < seen.size(); begin += batch)
      network.step(std::span(seen).subspan(begin, std::min(batch, seen.size() - begin)), scaling, options.learningRate);
  }
  auto heldTrees = static_cast<int64_t>(trees.size() / kHeldOut);
  TrainedClassifier trained = {.classifier = network.unscaled(scaling),
                               .trainingTrees = std::ssize(trees) - heldTrees,
                               .heldTrees = heldTrees,
                               .effects = {}};
  evaluate(trained, held);
  return trained;
}

} // namespace hone::speculate
