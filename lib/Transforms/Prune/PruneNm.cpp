// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-prune-nm: n of every m neighbouring inputs of a weight are kept, for products alone.

#include "hone/Compress/Pruning.h"
#include "hone/Compress/TransposableMask.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"
#include "hone/Transforms/ReturnedProducts.h"

namespace hone {
#define GEN_PASS_DEF_PRUNENM
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// Most inputs of a group.
static constexpr int64_t kMostInputs = 128;

namespace {
struct PruneNm : impl::PruneNmBase<PruneNm> {
  using PruneNmBase::PruneNmBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  bool needsStatistics() const { return method != "magnitude"; }
  std::string getBlocker(ParamOp param, ArrayRef<GetParamOp> reads, const MeasuredInputs &inputs) const;
  FailureOr<std::string> prune(ParamOp param, ArrayRef<GetParamOp> reads, MeasuredInputs &inputs) const;
  LogicalResult pruneBothWays(const MeasuredWeight &measured, const compress::Weight &weight,
                              MeasuredInputs &inputs) const;
  LogicalResult pruneWeight(const MeasuredWeight &measured, MutableArrayRef<float> elements,
                            MeasuredInputs &inputs) const;
  LogicalResult pruneElements(ParamOp param, MutableArrayRef<float> elements, MeasuredInputs &inputs) const;
};
} // namespace

LogicalResult PruneNm::initialize(MLIRContext *context) {
  auto error = [&] { return emitError(UnknownLoc::get(context)); };
  if (!llvm::is_contained({"magnitude", "wanda", "sparsegpt"}, method.getValue()))
    return error() << "unsupported method '" << method << "' to prune; supported: magnitude, wanda, sparsegpt";
  if (m < 2 || m > kMostInputs || n < 1 || n >= m)
    return error() << "expected n of m inputs to be 1 to m - 1 of 2 to " << kMostInputs << ", but got " << n.getValue()
                   << " of " << m.getValue();
  if (transposable && (n != 2 || m != 4 || method == "sparsegpt"))
    return error() << "expected transposable masks to be 2 of 4 by magnitude or wanda, but got " << n.getValue()
                   << " of " << m.getValue() << " by " << method.getValue();
  if (needsStatistics() && statistics.empty())
    return error() << "expected a file of statistics for method '" << method << "'";
  return success();
}

std::string PruneNm::getBlocker(ParamOp param, ArrayRef<GetParamOp> reads, const MeasuredInputs &inputs) const {
  if (std::string blocker = getEncodingBlocker(param, reads); !blocker.empty())
    return blocker;
  if (!outputs && isTable(reads))
    return "an embedding reads it";
  if (std::string blocker = getProductBlocker(reads); !blocker.empty())
    return blocker;
  if (!outputs && isReturnedProduct(reads))
    return "it makes what a function returns";
  int64_t columns = param.getTensorType().getDimSize(1);
  if (columns % m != 0)
    return ("its " + Twine(columns) + " inputs are no multiple of " + Twine(m)).str();
  int64_t experts = inputs.countExperts(param),
          rows = param.getTensorType().getDimSize(0) / std::max<int64_t>(experts, 1);
  if (transposable && rows % compress::kMaskBlock != 0)
    return ("its " + Twine(rows) + " outputs are no multiple of " + Twine(compress::kMaskBlock)).str();
  return needsStatistics() && !inputs.has(param) && experts == 0 ? "nothing was measured of its inputs" : "";
}

LogicalResult PruneNm::pruneBothWays(const MeasuredWeight &measured, const compress::Weight &weight,
                                     MeasuredInputs &inputs) const {
  std::vector<float> importance;
  if (method == "wanda" && inputs.has(measured)) {
    FailureOr<compress::Hessian> hessian = inputs.getHessian(measured);
    if (failed(hessian))
      return failure();
    for (int64_t j = 0; j < hessian->size; ++j)
      importance.push_back(hessian->diagonal(j));
  }
  compress::pruneTransposable(weight, importance);
  return success();
}

LogicalResult PruneNm::pruneElements(ParamOp param, MutableArrayRef<float> elements, MeasuredInputs &inputs) const {
  int64_t experts = inputs.countExperts(param);
  if (experts == 0)
    return pruneWeight(param, elements, inputs);
  size_t size = elements.size() / experts;
  for (int64_t expert = 0; expert < experts; ++expert)
    if (failed(pruneWeight({param, expert}, elements.slice(expert * size, size), inputs)))
      return failure();
  return success();
}

/// By magnitude where a method needs what was not measured: an expert that no row chose.
LogicalResult PruneNm::pruneWeight(const MeasuredWeight &measured, MutableArrayRef<float> elements,
                                   MeasuredInputs &inputs) const {
  compress::Weight weight = asWeight(measured.param, elements);
  compress::NmPattern pattern{n, m};
  if (transposable)
    return pruneBothWays(measured, weight, inputs);
  if (method == "magnitude" || !inputs.has(measured)) {
    compress::pruneByMagnitude(weight, pattern);
  } else if (method == "wanda") {
    FailureOr<compress::Hessian> hessian = inputs.getHessian(measured);
    if (failed(hessian))
      return failure();
    compress::pruneByWanda(weight, *hessian, pattern);
  } else {
    FailureOr<const compress::InverseFactor *> factor = inputs.getFactor(measured, /*isOrdered=*/false);
    if (failed(factor))
      return failure();
    compress::pruneBySparseGpt(weight, **factor, pattern);
  }
  return checkFinite(measured.param, elements);
}

/// Lets embeddings read a copy of what products read.
static void separateTable(ParamOp param, ArrayRef<GetParamOp> reads) {
  ParamOp table;
  for (GetParamOp read : reads) {
    if (!isTable(read))
      continue;
    OpBuilder b(read);
    if (!table) {
      table = param.clone();
      table.setSymName((param.getSymName() + ".embedding").str());
      SymbolTable(param->getParentOfType<ModuleOp>()).insert(table, std::next(param->getIterator()));
    }
    auto other = GetParamOp::create(b, read.getLoc(), table.getTensorType(), table.getSymName());
    read.getResult().replaceUsesWithIf(other, isLookedUp);
  }
}

FailureOr<std::string> PruneNm::prune(ParamOp param, ArrayRef<GetParamOp> reads, MeasuredInputs &inputs) const {
  FailureOr<std::vector<float>> before = readElements(param);
  if (failed(before) || failed(checkFinite(param, *before)))
    return failure();
  std::vector<float> elements = *before;
  if (failed(pruneElements(param, elements, inputs)))
    return failure();
  separateTable(param, reads);
  writeElements(param, elements);
  std::string what = ("is pruned to " + Twine(n) + " of " + Twine(m) + " by " + method.getValue()).str();
  if (transposable)
    what += ", in rows and columns";
  if (!inputs.has(param) && inputs.countExperts(param) == 0)
    return what;
  FailureOr<std::string> error = inputs.describeError(param, *before, elements);
  if (failed(error))
    return failure();
  return error->empty() ? what : what + ", " + *error;
}

void PruneNm::runOnOperation() {
  FailureOr<MeasuredInputs> inputs = MeasuredInputs::open(statistics, getOperation());
  if (failed(inputs) || failed(keepFingerprint(getOperation())))
    return signalPassFailure();
  auto blocker = [&](ParamOp param, ArrayRef<GetParamOp> reads) { return getBlocker(param, reads, *inputs); };
  auto change = [&](ParamOp param, ArrayRef<GetParamOp> reads) { return prune(param, reads, *inputs); };
  auto pruned = changeParameters(getOperation(), {"hone-prune-nm", "Pruned", "stays as it is", blocker, change});
  if (failed(pruned))
    return signalPassFailure();
  numPruned += *pruned;
}

} // namespace hone
