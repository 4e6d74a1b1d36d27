// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone tune` does with an artefact whose entry `train_step` changes parameters that its session keeps.

#ifndef HONE_CLI_TUNE_H
#define HONE_CLI_TUNE_H

#include "hone/io/status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hone::cli {

/// Tokens of files, in windows of `context` tokens and the one that follows. Windows of a file share no position that is predicted.
struct TuningData {
  struct File {
    std::string name;
    std::vector<int64_t> ids;
  };
  std::vector<File> files;
  int64_t context = 0;

  /// Adds a file. Fails where it is shorter than a window and one token more.
  absl::Status add(const std::string &file, std::vector<int64_t> ids);

  /// How many windows there are, of all files.
  int64_t countWindows() const;
  /// The tokens of window number `number`, one more than the context.
  std::span<const int64_t> windowOf(int64_t number) const;
  /// A sum of all tokens (CRC-32).
  uint32_t sum() const;
};

/// Reads .npy files of token ids (uint16, int32 or int64, one row), and other files as text if there is a `tokenizer`, a tokenizer.json.
/// Fails where a file cannot be read or is shorter than a window.
absl::StatusOr<TuningData> readTuningData(std::span<const std::string> files, const std::string &tokenizer,
                                          int64_t context);

/// How the learning rate falls after the warmup.
enum class RateSchedule { Constant, Cosine };

struct TuningOptions {
  int64_t steps = 0, batch = 8;
  int64_t accumulate = 1; // batches a step, all but the last by the entry `accumulate`
  double learningRate = 0;
  int64_t warmup = 0; // steps in which the rate grows linearly
  RateSchedule schedule = RateSchedule::Cosine;
  std::optional<double> maskDecay; // what the entry takes as `mask_decay`, if it does
  int64_t maskDecayRamp = 0;       // steps in which it grows linearly from 0
  bool projects = false;           // whether the entry `project` makes the parameters those of the model, at the end
  uint64_t seed = 0;
  int threads = 0;
  std::string log;        // .jsonl, or empty
  std::string checkpoint; // .safetensors, or empty
  int64_t checkpointEvery = 100;
  int64_t validEvery = 100; // steps from one measurement on the validation data to the next
  std::string run;          // what checkpoints have to agree in
  std::vector<std::string> profile; // what calls and kernels took, to .json files or, as a table, to "-"
};

/// The learning rate of step number `step`, from 0: (step + 1) / warmup of the whole, then constant or along half a cosine to 0.
double learningRateAt(const TuningOptions &options, int64_t step);

/// The mask decay of step number `step`, from 0 (AST: λ min(1, t / T)); `maskDecay` is there.
double maskDecayAt(const TuningOptions &options, int64_t step);

/// The order of windows: permutations of `count` numbers, one after the other. The same for every machine.
class WindowOrder {
public:
  WindowOrder(int64_t count, uint64_t seed);
  int64_t next();

private:
  void shuffle();
  uint64_t draw();

  std::vector<int64_t> order;
  size_t used = 0;
  uint64_t state;
};

struct TuningResult {
  double firstLoss = 0, lastLoss = 0; // nats a token, of the steps that were run
  double tokensPerSecond = 0;
  double validBefore = 0,
         validAfter = 0; // on the validation data, before the first step that was run and after the last one
};

/// Receives a parameter as it is after the last step: f32, row-major.
using ParameterReceiver = std::function<absl::Status(const std::string &name, std::span<const char> bytes)>;

/// Runs the steps, from where the checkpoint is. Fails where an id is outside the vocabulary, and, with the number of the step, where the loss or the norm of the gradients
/// is not finite; nothing is received then. With `valid`, the entry `evaluate` measures the loss on as many whole batches as that has, at
/// least one.
absl::StatusOr<TuningResult> runTuning(const std::string &artefact, const TuningData &data, const TuningData *valid,
                                       const TuningOptions &options, const ParameterReceiver &receive);

} // namespace hone::cli

#endif // HONE_CLI_TUNE_H
