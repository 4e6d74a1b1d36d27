// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Training of the classifier of drafted tokens on trees of which it is known what the target accepted (C2T, Huo et al. 2025, §4).

#ifndef HONE_RUNTIME_SPECULATE_CLASSIFIER_TRAINING_H
#define HONE_RUNTIME_SPECULATE_CLASSIFIER_TRAINING_H

#include "speculate/tree_classifier.h"

namespace hone::speculate {

struct TreeExample {
  TreeFeatures features;
  bool isAccepted;
};

/// The candidates of a tree that was grown without a pruner.
using RecordedTree = std::vector<TreeExample>;

struct TrainingOptions {
  int64_t epochs = 20, batch = 256;
  double learningRate = 1e-3;
  uint64_t seed = 0;
};

/// What a threshold does to the trees that training did not see: the share of the accepted tokens that stay, and that of all tokens.
struct ThresholdEffect {
  double threshold = 0, recall = 0, kept = 0;
};

struct TrainedClassifier {
  TreeClassifier classifier;
  int64_t trainingTrees = 0, heldTrees = 0;
  /// Areas under the ROC curve on trees that training did not see, of the classifier and of the probability of a path alone.
  double area = 0, areaOfProbability = 0;
  std::vector<ThresholdEffect> effects; // of 0.1, 0.2, … 0.9; each candidate for itself
};

/// By Adam (Kingma and Ba 2015) on the binary cross-entropy, over all accepted candidates and four times as many of the others, which are drawn; every
/// 20th tree is held out. The same trees and options give the same classifier. Fails where no candidate, or each of them, was accepted, among
/// the trees for training or the others.
absl::StatusOr<TrainedClassifier> trainClassifier(std::span<const RecordedTree> trees, const TrainingOptions &options);

/// The probability that a positive has a higher score than a negative; equal ones count half. `scores` and `isPositive` are as long, with one of
/// each kind at least.
double areaUnderCurve(std::span<const double> scores, const std::vector<bool> &isPositive);

} // namespace hone::speculate

#endif // HONE_RUNTIME_SPECULATE_CLASSIFIER_TRAINING_H
