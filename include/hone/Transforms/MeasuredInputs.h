// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `hone calibrate` measured of a model, for passes that change its weights.

#ifndef HONE_TRANSFORMS_MEASUREDINPUTS_H
#define HONE_TRANSFORMS_MEASUREDINPUTS_H

#include "hone/Compress/InverseFactor.h"
#include "hone/Compress/Statistics.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Transforms/Observation.h"

namespace hone {

/// A weight, [N, K], or the matrix of one of the experts that lie in it one below the other.
struct MeasuredWeight {
  MeasuredWeight(ParamOp param) : param(param) {} // NOLINT(google-explicit-constructor): a parameter is a weight
  MeasuredWeight(ParamOp param, int64_t expert) : param(param), expert(expert) {}

  ParamOp param;
  std::optional<int64_t> expert = std::nullopt;

  /// What statistics call it: the parameter's symbol, and of an expert its number.
  std::string getName() const {
    llvm::StringRef symbol = ParamOp(param).getSymName();
    return expert ? getExpertName(symbol, *expert) : symbol.str();
  }
};

/// The inputs that weights are multiplied with. What was computed last is kept, since neighbouring weights often read the same
/// input. Every failure comes after an error.
class MeasuredInputs {
public:
  /// Knows of no input where `path` is empty. Fails where the file is no file of statistics, or of another model than `module`.
  static llvm::FailureOr<MeasuredInputs> open(llvm::StringRef path, mlir::ModuleOp module);

  /// Whether the input of `weight` was measured: an expert's, where a row chose it.
  bool has(const MeasuredWeight &weight) const;

  /// How many experts lie in `weight` whose inputs were looked at, each for itself; 0 where it is no weight of experts.
  int64_t countExperts(ParamOp weight) const;

  /// Whether it was measured what errors of weights cost.
  bool hasCosts() const { return file && file->hasCosts(); }

  /// What an error of `weight` costs the model, as Statistics::readCost says; 1 where that was measured of no weight.
  llvm::FailureOr<double> getCost(ParamOp weight) const;

  /// How many rows of the input of `weight`, which it has, were measured.
  double countRows(const MeasuredWeight &weight) const;

  // Of weights that it has; valid until the next call for another one.

  /// Of the input as it is now, by getChannelScales and getInputRotation. Fails where the file does not hold what it says.
  llvm::FailureOr<compress::Hessian> getHessian(const MeasuredWeight &weight);

  /// For columns as they come, or by the descending diagonal of the Hessian. Fails as getHessian does, or where the Hessian cannot be factored.
  llvm::FailureOr<const compress::InverseFactor *> getFactor(const MeasuredWeight &weight, bool isOrdered);

  /// "with a relative error of 0.0123 of its outputs", once `weight`, which was `before`, is `after`. Of a parameter that holds
  /// experts, the error is the mean of those that rows chose; the text is empty where none did.
  llvm::FailureOr<std::string> describeError(ParamOp weight, llvm::ArrayRef<float> before, llvm::ArrayRef<float> after);

private:
  bool isKept(const MeasuredWeight &weight) const;
  void changeHessian(ParamOp weight);
  llvm::FailureOr<double> measureError(const MeasuredWeight &weight, llvm::ArrayRef<float> before,
                                       llvm::ArrayRef<float> after);

  std::optional<compress::Statistics> file;
  std::optional<int64_t> input; // of what is kept
  std::vector<float> scales;    // that it is divided by; empty where it is as measured
  std::vector<float> gain;      // and then, where it is rotated
  std::optional<int64_t> seed;  // of its rotation
  int64_t block = 0;            // that it is of, or 0
  std::vector<float> hessian;
  std::optional<compress::InverseFactor> factor;
  bool isFactorOrdered = false;
};

/// Rows of K elements of `weight`, [N, K], for a method of compression: all of them, or those of an expert.
compress::Weight asWeight(ParamOp weight, llvm::MutableArrayRef<float> elements);

/// Fails after an error that names the first of the elements of `weight` that is not finite.
llvm::LogicalResult checkFinite(ParamOp weight, llvm::ArrayRef<float> elements);

} // namespace hone

#endif // HONE_TRANSFORMS_MEASUREDINPUTS_H
