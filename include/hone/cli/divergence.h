// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far what a changed language model predicts is from what it predicted before.

#ifndef HONE_CLI_DIVERGENCE_H
#define HONE_CLI_DIVERGENCE_H

#include "hone/cli/calibrate.h"

#include <functional>

namespace hone::cli {

/// The mean over rows of KL(p || q) = Σ p (log p - log q), in nats, with p the softmax of a row of `expected` and q that of the same row of
/// `actual`, both [rows, width] and finite. In f64, parallel over rows, the same bits for every number of threads.
double meanDivergence(std::span<const float> expected, std::span<const float> actual, int64_t width);

/// What an artefact predicts on windows of tokens, and how far it is from that once its weights have changed.
class Predictions {
public:
  /// Runs the entry `forward` of `artefact` on each window, from nothing but the window. The logits, 4 bytes for each of the
  /// vocabulary and each token, lie in an unlinked spill file beside `path`. Fails where they do not fit, are not finite, or are not those of
  /// every token.
  static absl::StatusOr<Predictions> create(std::string artefact, CalibrationTokens tokens, int threads,
                                            const std::string &path);

  /// Runs the artefact as its files are now. The mean over tokens of KL(before || now), in nats.
  absl::StatusOr<double> measureDivergence() const;

private:
  using Receiver = std::function<absl::Status(size_t begin, std::span<const float> logits)>;
  absl::Status run(const Receiver &receive) const;

  std::string artefact;
  CalibrationTokens tokens;
  int threads = 0;
  int64_t vocabulary = 0;
  mutable io::ScratchFile memory;
};

} // namespace hone::cli

#endif // HONE_CLI_DIVERGENCE_H
