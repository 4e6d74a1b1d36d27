// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-prune-layers: whole layers go, with what they keep in the state.

#include "ResidualBranches.h"

#include "hone/Compress/InverseFactor.h"
#include "hone/Compress/Structured.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Transforms/GroupAnalysis.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

namespace hone {
#define GEN_PASS_DEF_PRUNELAYERS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::prune {

using namespace prunable;

namespace {
struct PruneLayers : impl::PruneLayersBase<PruneLayers> {
  using PruneLayersBase::PruneLayersBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  remark::RemarkOpts options() const { return remark::RemarkOpts::name("Pruned").category("hone-prune-layers"); }
  FailureOr<int64_t> chooseNumber(ArrayRef<ResidualLayer> layers);
  FailureOr<std::vector<double>> score(ArrayRef<ResidualLayer> layers, MeasuredInputs &inputs);
  void remove(ArrayRef<ResidualLayer> layers, ArrayRef<int64_t> gone, ArrayRef<double> scores);
};
} // namespace

LogicalResult PruneLayers::initialize(MLIRContext *context) {
  auto error = [&] { return emitError(UnknownLoc::get(context)); };
  if (!(sparsity >= 0 && sparsity < 1))
    return error() << "expected the sparsity to be at least 0 and less than 1, but got "
                   << llvm::formatv("{0:F4}", sparsity.getValue()).str();
  if (statistics.empty())
    return error() << "expected a file of statistics to choose layers by";
  return success();
}

FailureOr<int64_t> PruneLayers::chooseNumber(ArrayRef<ResidualLayer> layers) {
  SharedUses shared(getOperation());
  int64_t all = countElements(shared), inLayers = 0, removable = 0;
  for (const ResidualLayer &layer : layers) {
    inLayers += layer.elements;
    removable += layer.blocker.empty();
  }
  double wanted = sparsity * static_cast<double>(all),
         each = static_cast<double>(inLayers) / std::max<double>(layers.size(), 1);
  int64_t number = wanted > 0 ? std::llround(wanted / std::max(each, 1.0)) : 0;
  if (number > 0 && (layers.empty() || number > removable || number >= static_cast<int64_t>(layers.size())))
    return emitError(getOperation().getLoc())
           << llvm::formatv("cannot remove {0:F1} % of the parameters: of {1} layers {2} can go, with {3:F1} % each",
                            100 * sparsity, layers.size(), removable, 100 * each / static_cast<double>(all))
                  .str();
  remark::analysis(getOperation().getLoc(), options())
      << llvm::formatv("{0} of {1} layers go, {2:F1} % of the elements of parameters", number, layers.size(),
                       100 * static_cast<double>(number) * each / static_cast<double>(std::max<int64_t>(all, 1)))
             .str();
  return number;
}

/// What each layer adds, relative to what it is added to: the mean square of the outputs of its branches, over the sum of those before
/// it and of the rows of the tables. Where branches are not correlated with what they are added to, that is 1 / cos² - 1 for the angle
/// between what goes into a layer and what comes out (Men et al., "ShortGPT", 2024, section 2.3).
FailureOr<std::vector<double>> PruneLayers::score(ArrayRef<ResidualLayer> layers, MeasuredInputs &inputs) {
  SymbolTable symbols(getOperation());
  FailureOr<double> stream = measureTables(getOperation());
  if (failed(stream))
    return failure();
  std::vector<double> scores;
  for (const ResidualLayer &layer : layers) {
    double added = 0;
    for (StringAttr name : layer.weights) {
      auto weight = name ? symbols.lookup<ParamOp>(name) : ParamOp();
      if (!weight || !inputs.has(weight) || !getCutBlocker(weight).empty())
        continue; // of a layer that stays
      FailureOr<std::vector<float>> elements = readElements(weight);
      FailureOr<compress::Hessian> hessian = inputs.getHessian(weight);
      if (failed(elements) || failed(hessian) || failed(checkFinite(weight, *elements)))
        return failure();
      added += compress::outputEnergy(asWeight(weight, *elements), *hessian);
    }
    scores.push_back(layer.blocker.empty() ? added / std::max(*stream, 1e-30)
                                           : std::numeric_limits<double>::infinity());
    *stream += added;
  }
  return scores;
}

void PruneLayers::remove(ArrayRef<ResidualLayer> layers, ArrayRef<int64_t> gone, ArrayRef<double> scores) {
  SmallVector<const ResidualLayer *> chosen;
  for (auto [number, layer] : llvm::enumerate(layers)) {
    bool isGone = llvm::is_contained(gone, static_cast<int64_t>(number));
    if (isGone)
      chosen.push_back(&layer);
    auto report = [&](auto remark) {
      remark << llvm::formatv("layer {0} {1}, with a relative influence of {2:F4}", number, isGone ? "goes" : "stays",
                              scores[number])
                    .str();
    };
    if (!layer.blocker.empty())
      remark::missed(layer.loc, options()) << llvm::formatv("layer {0} stays: {1}", number, layer.blocker).str();
    else if (isGone)
      report(remark::passed(layer.loc, options()));
    else
      report(remark::analysis(layer.loc, options()));
  }
  removeLayers(chosen, getOperation());
}

void PruneLayers::runOnOperation() {
  FailureOr<MeasuredInputs> inputs = MeasuredInputs::open(statistics, getOperation());
  if (failed(inputs) || failed(keepFingerprint(getOperation())))
    return signalPassFailure();
  SmallVector<ResidualLayer> layers = findLayers(getOperation(), *inputs);
  FailureOr<int64_t> number = chooseNumber(layers);
  if (failed(number))
    return signalPassFailure();
  if (*number == 0)
    return;
  FailureOr<std::vector<double>> scores = score(layers, *inputs);
  if (failed(scores))
    return signalPassFailure();
  remove(layers, compress::chooseLowest(*scores, *number), *scores);
  numLayers += *number;
}

} // namespace hone::prune
