// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the rewrite phase did to each weight: watched while passes change parameters, and kept as plain data.

#ifndef HONE_LIB_DRIVER_COMPRESSIONRECORD_H
#define HONE_LIB_DRIVER_COMPRESSIONRECORD_H

#include "hone/Dialect/Hone/ParameterActions.h"
#include "hone/cli/eval.h"
#include "hone/cli/progress.h"

#include <map>
#include <memory>

namespace mlir {
class OpPassManager;
}

namespace hone {

/// What one pass did with a weight, or why it left it.
struct WeightStep {
  std::string pass, text;
  bool isChanged = false;
  /// |W - W'| / |W|, where elements changed without error compensation.
  std::optional<double> weightError;
  /// sqrt(tr(D H Dᵀ) / tr(W H Wᵀ)), where the pass measured it.
  std::optional<double> outputError;
};

struct WeightRecord {
  std::string name;
  std::string reader; // node that reads it and is named by layer, or empty
  std::vector<int64_t> shapeBefore, shapeAfter;
  std::string formBefore, formAfter; // an encoding, or a type of elements; empty where there was or is no such weight
  int64_t elements = 0;              // before; after where there was none
  int64_t bytesBefore = 0, bytesAfter = 0;
  std::vector<WeightStep> steps; // in the order of the passes

  bool isChanged() const;
  /// Whether it is stored otherwise or is another one: not, where elements changed along with what reads them and no more.
  bool isCompressed() const;
  /// Of all steps: their squares add up, as if they were independent. Nothing where a step is not known, or there was none.
  std::optional<double> weightError() const;
  std::optional<double> outputError() const;
  double bitsPerWeight() const { return elements ? 8.0 * static_cast<double>(bytesAfter) / elements : 0; }
  /// What was done, or why nothing was.
  std::string describe() const;
};

struct CompressionRecord {
  std::string label, model, passes;  // name of the result, of the file, and the pipeline
  std::vector<WeightRecord> weights; // in the order in which the program first reads them
  std::optional<cli::Evaluation> before, after;

  int64_t bytesBefore() const;
  int64_t bytesAfter() const;
  /// Bits of what is left for each element that the model came with.
  double bitsPerWeight() const;
  int64_t countChanged() const;
  int64_t countCompressed() const;
};

/// The passes of `pm` as text.
std::string listPasses(mlir::OpPassManager &pm);

/// Watches the parameters of a module while passes change them.
class CompressionRecorder {
public:
  /// With `measures`, the change of each weight is measured.
  explicit CompressionRecorder(bool measures) : measures(measures) {}

  /// Runs `passes`, which change `module`. Fails, after an error, as they do, or where the bytes of a weight cannot be had.
  llvm::LogicalResult watch(mlir::ModuleOp module, llvm::function_ref<llvm::LogicalResult()> passes);

  CompressionRecord record;

private:
  void handle(llvm::function_ref<void()> transform, const mlir::tracing::Action &action);
  void handleChange(llvm::function_ref<void()> transform, const ChangeParameterAction &action);
  void showProgress(llvm::StringRef pass, ParamOp param, size_t number, size_t count);
  llvm::FailureOr<std::optional<double>> measure(ParamOp before, ParamOp after) const;
  WeightRecord &find(llvm::StringRef name);

  bool measures, hasFailed = false;
  std::map<std::string, size_t, std::less<>> places; // of weights in the record, by name
  WeightStep *current = nullptr;                     // whose action is under way
  std::string shownPass;                             // that shows its progress
  size_t shownNumber = 0;                            // of its parameters, the last
  std::unique_ptr<cli::Progress> progress;
};

} // namespace hone

#endif // HONE_LIB_DRIVER_COMPRESSIONRECORD_H
