// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How commands train a model on (docs/training.md): their options, and the artefact that takes the steps.

#ifndef HONE_LIB_DRIVER_TRAINING_H
#define HONE_LIB_DRIVER_TRAINING_H

#include "Compiler.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/cli/tune.h"
#include "hone/io/temporary.h"

#include <map>

namespace hone {

struct TrainingOptions {
  std::vector<std::string> data, valid; // files of tokens or text
  std::string tokenizer;
  int64_t context = 512, batch = 8, accumulate = 1;
  std::string precision = "f32"; // of products: f32, or bf16
  std::string optimizer = "adamw", schedule = "cosine";
  std::optional<double> learningRate, weightDecay, clipNorm, momentum, beta1, beta2, epsilon;
  std::optional<int64_t> warmup, threads, seed;
  bool keepZeros = false;
  std::string sparseMode;          // empty, or of a pattern that may change: sr-ste, ast, cast or s-ste
  std::vector<std::string> sparse; // with a sparse mode, the weights of a pattern, and that
  int64_t kept = 2, width = 4;
  std::optional<double> maskDecay;
  std::optional<int64_t> maskDecayRamp;
  std::string teacher; // the file of a model to distill from, or empty
  std::optional<double> distillWeight, temperature, featureWeight;

  void declareData(OptionSet &set, llvm::StringRef validHelp);
  void declareWindows(OptionSet &set);
  void declareOptimizer(OptionSet &set);
  void declareDistillation(OptionSet &set);

  /// Finds the file of the teacher, which `dense` says is `model`. Fails after an error where there is none.
  llvm::LogicalResult findTeacher(llvm::StringRef model);

  /// The files that are read.
  std::vector<std::string> listFiles() const;
  int64_t tokensPerStep() const { return context * batch * accumulate; }

  /// Whether elements that are not kept decay towards 0.
  bool decaysMasked() const { return !sparseMode.empty() && sparseMode != "fixed" && sparseMode != "s-ste"; }
  /// Whether that grows during the training.
  bool rampsMaskDecay() const { return sparseMode == "ast" || sparseMode == "cast"; }
  /// --mask-decay, or what it is without.
  double getMaskDecay() const;

  /// Of so many steps, with nothing written beside.
  cli::TuningOptions getTuning(int64_t steps) const;
  AddOptimizerOptions getOptimizer() const;
  /// All that the bits of a training follow from, but for threads and the processor: `model` is a fingerprint, that of the teacher too.
  std::string describeRun(llvm::StringRef model, const cli::TuningData &tokens, int64_t steps,
                          const TargetOptions &target) const;
};

/// What the files of the options have.
struct TrainingData {
  cli::TuningData tokens;
  std::optional<cli::TuningData> valid;

  static absl::StatusOr<TrainingData> read(const TrainingOptions &options);
  const cli::TuningData *getValid() const { return valid ? &*valid : nullptr; }
};

/// Where the file of a model has the matrices that one parameter of f32 joins, one below the other.
struct JoinedMatrices {
  std::vector<std::string> names; // of the file's parameters: one for each matrix, or one for all of them
  int64_t rows, columns;          // of a matrix
  bool areTransposed;             // in the file
};

/// An artefact with the entry @train_step, and the model that it is of, with its teacher.
struct TrainingStep {
  std::string artefact, fingerprint;
  int64_t parameters = 0;                       // elements of listTrained()
  std::map<std::string, uint64_t> trained;      // bytes of each, by name
  std::map<std::string, JoinedMatrices> joined; // parameters that are not in the file as they are
};

/// The bytes of each parameter of the file, of those of all matrices `[N, K]` in order.
std::vector<std::string> splitJoined(const JoinedMatrices &joined, std::span<const char> bytes);

/// The floats that the functions of `module` read.
std::vector<ParamOp> listTrained(mlir::ModuleOp module);

/// Compiles the model of `compile`, with its rewrites, and the teacher of `options` into `folder`. `compile.rewrite` sees what becomes the step.
llvm::FailureOr<TrainingStep> compileTrainingStep(CompileOptions compile, const TrainingOptions &options,
                                                  const io::TemporaryPath &folder, mlir::MLIRContext *context);

/// Writes `module`, the model of `compile`, as its options prune it to `path`. Statistics are those of the model as `hone calibrate` knows it,
/// which the step of a training is not: it has the weights of the file. Gives the names of the weights that were pruned.
llvm::FailureOr<std::vector<std::string>> pruneModel(const CompileOptions &compile, mlir::ModuleOp module,
                                                     const std::string &path);

/// Takes so many steps, or none, for the losses alone: what they make of the model is left.
absl::StatusOr<cli::TuningResult> measureTraining(const TrainingStep &step, const TrainingOptions &options,
                                                  const TrainingData &data, int64_t steps);

} // namespace hone

#endif // HONE_LIB_DRIVER_TRAINING_H
