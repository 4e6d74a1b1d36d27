// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What errors of each weight cost a language model, measured by making them.

#ifndef HONE_CALIBRATE_MEASURECOSTS_H
#define HONE_CALIBRATE_MEASURECOSTS_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/LogicalResult.h"

#include <string>
#include <vector>

namespace mlir {
class MLIRContext;
}

namespace hone::calibration {
class Statistics;
struct Cost;
} // namespace hone::calibration

namespace hone::cli {
class Predictions;
}

namespace hone {

/// Rounds one of `weights` after the other to 3 bits in the file of the artefact `path`, which is a copy that nobody else uses, and lets
/// `predictions` of that artefact say how far it is then from what it was. Small errors cost in proportion to their squares, so
/// that one is enough. It is of the kind that hone-quantize-weights makes: with error compensation where `statistics` knows the weight's
/// input, and to nearest elsewhere. In the end the file is as it was.
llvm::FailureOr<std::vector<calibration::Cost>>
measureCosts(const std::string &path, llvm::ArrayRef<std::string> weights, const calibration::Statistics &statistics,
             const cli::Predictions &predictions, mlir::MLIRContext *context);

} // namespace hone

#endif // HONE_CALIBRATE_MEASURECOSTS_H
