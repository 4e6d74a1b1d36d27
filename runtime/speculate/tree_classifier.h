// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C2T (Huo et al. 2025): a network of 241 parameters says of a drafted token how likely the target is to accept it.

#ifndef HONE_RUNTIME_SPECULATE_TREE_CLASSIFIER_H
#define HONE_RUNTIME_SPECULATE_TREE_CLASSIFIER_H

#include "hone/io/status.h"
#include "speculate/tree_expansion.h"

#include <array>

namespace hone::speculate {

/// What the network sees of a candidate: the probability of its path, the entropy of what follows its parent, and its depth. Of the probability
/// it sees the logarithm: what tells candidates apart is a factor, of those that are hardly probable too.
constexpr size_t kTreeFeatures = 3, kTreeHidden = 48;
using TreeFeatures = std::array<double, kTreeFeatures>;

TreeFeatures featuresOf(const TreeCandidate &candidate);

/// C = sigmoid(o · max(W x + b, 0) + c) for features x.
class TreeClassifier {
public:
  /// In the order of a file: W by rows, b, o, c.
  static constexpr size_t kParameters = kTreeHidden * kTreeFeatures + kTreeHidden + kTreeHidden + 1;
  using Parameters = std::array<float, kParameters>;

  explicit TreeClassifier(const Parameters &parameters) : parameters(parameters) {}

  /// Fails, with the file's name, for what is no classifier and where a parameter is not finite.
  static absl::StatusOr<TreeClassifier> open(const std::string &path);
  /// As a safetensors file.
  absl::Status write(const std::string &path) const;

  /// log(C / (1 - C)).
  double scoreOf(const TreeFeatures &features) const;
  const Parameters &values() const { return parameters; }

private:
  Parameters parameters;
};

/// Keeps candidates whose C is `threshold` at least: with 0 all, with 1 none.
class ClassifierPruner : public TreePruner {
public:
  /// `threshold` is 0 to 1.
  ClassifierPruner(const TreeClassifier &classifier, double threshold);
  bool keeps(const TreeCandidate &candidate) const override {
    return classifier.scoreOf(featuresOf(candidate)) >= leastScore;
  }

private:
  TreeClassifier classifier;
  double leastScore;
};

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_TREE_CLASSIFIER_H
