// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-sparsify-weights: weights that are 0 where two of four inputs are not kept are stored without those zeros, where
// that is faster.

#include "SparseCosts.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/Transforms/Passes.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace hone {
#define GEN_PASS_DEF_SPARSIFYWEIGHTS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

static constexpr int64_t kKept = 2, kInputs = 4; // what kernels read
static constexpr int64_t kCudaInputs = 32;       // that rows are multiples of, for kernels of CUDA

/// What the elements of `type` are, for `#hone.nm`.
static Attribute getElements(RankedTensorType type) {
  Attribute encoding = type.getEncoding();
  if (auto stored = dyn_cast_or_null<StoredAttr>(encoding))
    return TypeAttr::get(stored.getType());
  return encoding ? encoding : TypeAttr::get(type.getElementType());
}

/// Whether a part of the elements of `type` may be kept.
static bool canKeep(RankedTensorType type) {
  return isWeightEncoding(type.getEncoding()) && NmAttr::canKeep(getElements(type));
}

static std::string getBlocker(ParamOp param, ArrayRef<GetParamOp> reads) {
  RankedTensorType type = param.getTensorType();
  if (type.getRank() != 2 || !type.getElementType().isF32())
    return "it is no matrix of f32";
  if (!canKeep(type) || !canKeep(param.getStorageType()))
    return "it is stored in another way already";
  if (std::string blocker = getProductBlocker(reads); !blocker.empty())
    return blocker;
  if (type.getDimSize(1) % kInputs != 0)
    return ("its " + Twine(type.getDimSize(1)) + " inputs are no multiple of " + Twine(kInputs)).str();
  if (!hrt::PanelsAttr::canPack(NmAttr::get(kKept, kInputs, getElements(type))))
    return "no kernel reads its elements without zeros";
  return "";
}

/// Says where `param` does not fit, or nothing if it does. Fails after an error, where its bytes cannot be read.
static FailureOr<std::string> findMisfit(ParamOp param) {
  FailureOr<SmallVector<StoredBytes>> stored = openPlanes(param);
  if (failed(stored))
    return failure();
  RankedTensorType type = param.getStorageType();
  auto planes = llvm::map_to_vector(*stored, [](const StoredBytes &plane) { return plane.get(); });
  NmAttr nm = NmAttr::get(kKept, kInputs, getElements(type));
  auto misfit = nm.findMisfit(type.getShape(), type.getEncoding(), planes);
  for (const StoredBytes &bytes : *stored)
    bytes.release(0, bytes.get().size());
  if (!misfit)
    return std::string();
  int64_t first = misfit->second * kInputs;
  return ("row " + Twine(misfit->first) + " has more than " + Twine(kKept) + " of the inputs " + Twine(first) + " to " +
          Twine(first + kInputs - 1))
      .str();
}

static bool isSparse(ParamOp param) { return isa_and_nonnull<NmAttr>(param.getTensorType().getEncoding()); }

namespace {
/// A layer, and with how many rows it is multiplied.
struct LayerProduct {
  LayerShape shape;
  int64_t rows;
};

/// What the form without zeros costs a weight, in words, and whether it is the faster one.
struct Verdict {
  bool isFaster;
  std::string text; // empty where nothing was asked
};

struct SparsifyWeights : impl::SparsifyWeightsBase<SparsifyWeights> {
  using SparsifyWeightsBase::SparsifyWeightsBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  std::string getBlocker(ParamOp param, ArrayRef<GetParamOp> reads, ArrayRef<int64_t> counts);
  Verdict judge(ParamOp param, ArrayRef<GetParamOp> reads, ArrayRef<int64_t> counts) const;
  std::optional<double> getCost(RankedTensorType type, const LayerProduct &product, StringRef format) const;

  bool isReadable = true; // every weight that was looked at
};
} // namespace

/// The layer whose product a kernel computes with `count` rows: of experts that of one, with the rows that choose it if all are
/// chosen alike.
static LayerProduct getProduct(RankedTensorType type, ArrayRef<GetParamOp> reads, int64_t count) {
  int64_t experts = std::max<int64_t>(countExperts(reads), 1), choices = 1;
  for (GetParamOp read : reads)
    for (OpOperand &use : read->getUses())
      if (std::optional<WeightUse> weight = findWeight(use))
        choices = std::max(choices, weight->choices);
  return {{type.getDimSize(0) / experts, type.getDimSize(1)}, std::max<int64_t>(count * choices / experts, 1)};
}

LogicalResult SparsifyWeights::initialize(MLIRContext *context) {
  if (!target.empty() && !llvm::is_contained(getCostIsas(), target.getValue()) && !isCostChip(target))
    return emitError(UnknownLoc::get(context))
           << "unsupported target '" << target
           << "' to choose kernels for; supported: " << llvm::join(getCostIsas(), ", ");
  if (llvm::any_of(rows, [](int64_t count) { return count < 1; }))
    return emitError(UnknownLoc::get(context)) << "expected numbers of rows to be at least 1";
  return success();
}

/// A model that keeps a state mostly takes one token at a time; others take all they get at once.
static SmallVector<int64_t> getUsualRows(ModuleOp module) {
  bool hasState = module.walk([](KvAppendOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return {hasState ? 1 : 512};
}

std::optional<double> SparsifyWeights::getCost(RankedTensorType type, const LayerProduct &product,
                                               StringRef format) const {
  if (!isCostChip(target))
    return getSparseCost(target, format, product.shape, product.rows);
  auto kept = type.cloneWithEncoding(NmAttr::get(kKept, kInputs, getElements(type)));
  LayerBytes bytes = {getStorageBytes(type).value_or(0), getStorageBytes(kept).value_or(0)};
  return estimateSparseCost(target, format, product.shape, product.rows, bytes);
}

/// Several numbers of rows count alike: the mean of their ratios is the geometric one.
Verdict SparsifyWeights::judge(ParamOp param, ArrayRef<GetParamOp> reads, ArrayRef<int64_t> counts) const {
  if (target.empty())
    return {true, ""};
  RankedTensorType type = param.getTensorType();
  auto panels = hrt::PanelsAttr::get(NmAttr::get(kKept, kInputs, getElements(type)));
  std::string format = panels.getKernelSuffix(), list;
  double sum = 0;
  for (int64_t count : counts) {
    std::optional<double> cost = getCost(type, getProduct(type, reads, count), format);
    if (!cost)
      return {true, ""};
    sum += std::log(*cost);
    list += (list.empty() ? "" : ", ") + std::to_string(count);
  }
  double mean = std::exp(sum / static_cast<double>(counts.size()));
  const char *text =
      isCostChip(target)
          ? "by bytes and operations the product takes {1:F2} times what it takes with zeros, for rows: {2} ({3})"
          : "hone.sparse_linear.{0} takes {1:F2} times what hone.packed_linear.{0} takes, "
            "for rows: {2} ({3})";
  return {mean < 1, llvm::formatv(text, format, mean, list, target.getValue()).str()};
}

static std::string sparsify(ParamOp param, ArrayRef<GetParamOp> reads) {
  RankedTensorType before = param.getTensorType();
  changeEncoding(param, reads, NmAttr::get(kKept, kInputs, getElements(before)));
  return ("is stored by " + Twine(kKept) + " of every " + Twine(kInputs) + " inputs, in " +
          Twine(getStorageBytes(param.getTensorType()).value_or(0)) + " bytes instead of " +
          Twine(getStorageBytes(before).value_or(0)))
      .str();
}

/// Why `param` alone stays as it is.
std::string SparsifyWeights::getBlocker(ParamOp param, ArrayRef<GetParamOp> reads, ArrayRef<int64_t> counts) {
  if (std::string found = hone::getBlocker(param, reads); !found.empty())
    return found;
  if (isCostChip(target) && countExperts(reads) > 0)
    return "experts have no kernel of CUDA that skips zeros";
  if (int64_t inputs = param.getTensorType().getDimSize(1); isCostChip(target) && inputs % kCudaInputs != 0)
    return ("its " + Twine(inputs) + " inputs are no multiple of " + Twine(kCudaInputs)).str();
  FailureOr<std::string> misfit = findMisfit(param);
  isReadable &= succeeded(misfit);
  if (failed(misfit))
    return "its bytes cannot be read";
  if (!misfit->empty())
    return *misfit;
  Verdict verdict = judge(param, reads, counts);
  return verdict.isFaster ? "" : verdict.text;
}

void SparsifyWeights::runOnOperation() {
  SmallVector<int64_t> counts(rows.begin(), rows.end());
  if (counts.empty())
    counts = getUsualRows(getOperation());
  SymbolTable symbols(getOperation());
  auto all = findReads(getOperation());
  auto blocker = [&](ParamOp param, ArrayRef<GetParamOp> reads) -> std::string {
    std::string found = getBlocker(param, reads, counts);
    for (ParamOp other : findPartners(reads, symbols)) {
      if (!found.empty() || isSparse(other))
        continue;
      if (std::string reason = getBlocker(other, all[other], counts); !reason.empty())
        found = ("kernels read it like " + other.getSymName() + ", which stays as it is: " + reason).str();
    }
    return found;
  };
  auto change = [&](ParamOp param, ArrayRef<GetParamOp> reads) -> FailureOr<std::string> {
    std::string cost = judge(param, reads, counts).text, what = sparsify(param, reads);
    return cost.empty() ? what : what + "; " + cost;
  };
  auto sparsified =
      changeParameters(getOperation(), {"hone-sparsify-weights", "Sparsified", "stays as it is", blocker, change});
  if (!isReadable)
    return signalPassFailure();
  numSparsified += *sparsified; // no change fails
}

} // namespace hone
