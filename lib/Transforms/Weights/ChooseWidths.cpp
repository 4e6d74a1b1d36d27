// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-choose-widths: how many bits each matrix gets, so that the model has so many bytes and loses little.

#include "OutlierShare.h"

#include "hone/Compress/Allocation.h"
#include "hone/Compress/Outliers.h"
#include "hone/Compress/RoundingLoss.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/ParameterActions.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace hone {
#define GEN_PASS_DEF_CHOOSEWIDTHS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// Shares of elements that forms may store as outliers.
static constexpr double kOutlierShares[] = {0.0025, 0.005, 0.01, 0.02};

namespace {
/// Forms that a weight may get, and what it costs in each.
struct Choices {
  std::vector<EncodingInterface> forms;
  std::vector<compress::Candidate> candidates;
};

/// Weights that take part, in groups that get the same form, and the bytes of what does not.
struct Budget {
  llvm::MapVector<Operation *, Choices> weights;
  std::vector<SmallVector<Operation *, 1>> groups;
  int64_t elements = 0, otherBytes = 0;
};

/// The outputs of the layers of a weight, or of one of its experts.
struct Outputs {
  std::vector<float> importance; // of errors of each column
  double energy = 0;             // their mean square
};

/// What forms change of the outputs, the mean square over all rows, and that of the outputs.
struct Losses {
  std::vector<double> ofForms;
  double energy = 0;
  int64_t mostRows = compress::kMostRowsLookedAt; // that stand for all of a part
};

struct ChooseWidths : impl::ChooseWidthsBase<ChooseWidths> {
  using ChooseWidthsBase::ChooseWidthsBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  FailureOr<Budget> measure(MeasuredInputs &inputs);
  FailureOr<Outputs> measureOutputs(const MeasuredWeight &measured, const compress::Weight &weight,
                                    bool compensatesErrors, MeasuredInputs &inputs) const;
  LogicalResult addLosses(const MeasuredWeight &measured, const compress::Weight &weight,
                          ArrayRef<EncodingInterface> forms, bool compensatesErrors, MeasuredInputs &inputs,
                          Losses &losses) const;
  std::vector<EncodingInterface> getForms(RankedTensorType type, int64_t experts) const;
  FailureOr<Choices> measureForms(ParamOp param, bool compensatesErrors, int64_t experts, MeasuredInputs &inputs) const;
  FailureOr<compress::Allocation> allocate(const Budget &budget);
  void mark(const Budget &budget, const compress::Allocation &allocation);

  SmallVector<AffineAttr> codes;
};
} // namespace

/// The encoding, or null where there is none of so many bits and such groups.
static AffineAttr getForm(MLIRContext *context, int64_t bits, int64_t group, bool isAsymmetric, int64_t activations) {
  ScopedDiagnosticHandler silent(context, [](Diagnostic &) { return success(); });
  auto emit = [&] { return emitError(UnknownLoc::get(context)); };
  return AffineAttr::getChecked(llvm::function_ref<InFlightDiagnostic()>(emit), context, bits, group,
                                FloatType(Float16Type::get(context)), isAsymmetric, /*isSigned=*/false,
                                /*transposed=*/false, activations, /*atLeast=*/activations != 0);
}

LogicalResult ChooseWidths::initialize(MLIRContext *context) {
  auto error = [&] { return emitError(UnknownLoc::get(context)); };
  if (!(bitsPerWeight > 0) || bitsPerWeight > 32)
    return error() << llvm::formatv("expected bits-per-weight to be more than 0 and at most 32, but got {0:F2}",
                                    bitsPerWeight.getValue())
                          .str();
  auto orElse = [](ArrayRef<int64_t> given, SmallVector<int64_t> otherwise) {
    return given.empty() ? otherwise : SmallVector<int64_t>(given);
  };
  codes.clear();
  for (int64_t width : orElse(bits, llvm::to_vector(ArrayRef(AffineAttr::kWidths)))) {
    SmallVector<int64_t> sizes = orElse(groups, {32, 64, 128});
    if (width == 8) // is fine enough for one scale a row
      sizes.insert(sizes.begin(), 0);
    for (int64_t group : sizes)
      if (AffineAttr form = getForm(context, width, group, asymmetric, activations))
        codes.push_back(form);
  }
  if (codes.empty())
    return error() << "expected bits and groups that an encoding has";
  return success();
}

/// Codes alone, and those of few bits beside shares of outliers, of which each expert has as many.
std::vector<EncodingInterface> ChooseWidths::getForms(RankedTensorType type, int64_t experts) const {
  std::vector<EncodingInterface> forms;
  for (AffineAttr affine : codes) {
    forms.push_back(affine);
    for (double share : kOutlierShares)
      if (EncodingInterface form = withOutliers(affine, type, share, std::max<int64_t>(experts, 1));
          affine.getBits() <= 4 && (expertOutliers || experts == 0) && form != forms.back())
        forms.push_back(form);
  }
  return forms;
}

/// What an error of each column costs of the outputs, and the mean square of those. Of an input that was not measured all
/// columns are alike.
FailureOr<Outputs> ChooseWidths::measureOutputs(const MeasuredWeight &measured, const compress::Weight &weight,
                                                bool compensatesErrors, MeasuredInputs &inputs) const {
  Outputs outputs{std::vector<float>(weight.columns, 1)};
  if (!inputs.has(measured)) {
    for (float element : weight.elements)
      outputs.energy += static_cast<double>(element) * static_cast<double>(element);
    return outputs;
  }
  if (compensatesErrors) {
    FailureOr<const compress::InverseFactor *> factor = inputs.getFactor(measured, /*isOrdered=*/true);
    if (failed(factor))
      return failure();
    for (int64_t i = 0; i < weight.columns; ++i)
      outputs.importance[(*factor)->column(i)] =
          static_cast<float>(1 / ((*factor)->diagonal(i) * (*factor)->diagonal(i)));
  }
  FailureOr<compress::Hessian> hessian = inputs.getHessian(measured);
  if (failed(hessian))
    return failure();
  for (int64_t i = 0; i < weight.columns && !compensatesErrors; ++i)
    outputs.importance[i] = hessian->diagonal(i);
  outputs.energy = compress::outputEnergy(weight, *hessian);
  return outputs;
}

static double getSlotsOfPanel(DenseSparseAttr sparse, RankedTensorType type) {
  return static_cast<double>(sparse.getOutliers() / compress::kSparseRows) /
         static_cast<double>(compress::countSparsePanels(type.getDimSize(0)));
}

/// Adds what the forms change of the outputs of `weight`, by the rows that it multiplied.
LogicalResult ChooseWidths::addLosses(const MeasuredWeight &measured, const compress::Weight &weight,
                                      ArrayRef<EncodingInterface> forms, bool compensatesErrors, MeasuredInputs &inputs,
                                      Losses &losses) const {
  FailureOr<Outputs> outputs = measureOutputs(measured, weight, compensatesErrors, inputs);
  if (failed(outputs))
    return failure();
  ParamOp param = measured.param;
  double rows = inputs.has(measured) ? inputs.countRows(measured) : 1;
  losses.energy += rows * outputs->energy;
  for (auto [form, sum] : llvm::zip_equal(forms, losses.ofForms)) {
    auto sparse = dyn_cast<DenseSparseAttr>(form);
    AffineAttr affine = sparse ? sparse.getAffine() : cast<AffineAttr>(form);
    auto loss = compress::roundingLoss(weight, affine.getFormat(), outputs->importance,
                                       sparse ? getSlotsOfPanel(sparse, param.getTensorType()) : 0.0, losses.mostRows);
    if (!loss.ok())
      return param.emitError() << std::string(loss.status().message());
    sum += rows * *loss;
  }
  return success();
}

/// The experts that rows chose, if there are any, each by what was measured of it and by how many rows those were.
static SmallVector<MeasuredWeight> listParts(ParamOp param, const MeasuredInputs &inputs) {
  SmallVector<MeasuredWeight> parts;
  for (int64_t expert = 0, count = inputs.countExperts(param); expert < count; ++expert)
    if (inputs.has({param, expert}))
      parts.emplace_back(param, expert);
  return parts.empty() ? SmallVector<MeasuredWeight>{param} : parts;
}

FailureOr<Choices> ChooseWidths::measureForms(ParamOp param, bool compensatesErrors, int64_t experts,
                                              MeasuredInputs &inputs) const {
  FailureOr<std::vector<float>> elements = readElements(param);
  if (failed(elements) || failed(checkFinite(param, *elements)))
    return failure();
  FailureOr<double> cost = inputs.getCost(param);
  if (failed(cost))
    return failure();
  RankedTensorType type = param.getTensorType();
  Choices choices{getForms(type, experts), {}};
  SmallVector<MeasuredWeight> parts = listParts(param, inputs);
  auto rowsOfPart =
      std::max<int64_t>(compress::kMostRowsLookedAt / static_cast<int64_t>(parts.size()), compress::kSparseRows);
  Losses losses{std::vector<double>(choices.forms.size()), 0, rowsOfPart};
  for (const MeasuredWeight &part : parts) {
    size_t size = part.expert ? elements->size() / inputs.countExperts(param) : elements->size();
    compress::Weight weight = asWeight(param, {elements->data() + part.expert.value_or(0) * size, size});
    if (failed(addLosses(part, weight, choices.forms, compensatesErrors, inputs, losses)))
      return failure();
  }
  for (auto [form, loss] : llvm::zip_equal(choices.forms, losses.ofForms)) {
    auto stored = RankedTensorType::get(type.getShape(), type.getElementType(), form);
    double error = losses.energy > 0 ? loss / losses.energy : 0;
    choices.candidates.push_back({getStorageBytes(stored).value_or(0), *cost * error});
  }
  return choices;
}

FailureOr<Budget> ChooseWidths::measure(MeasuredInputs &inputs) {
  Budget budget;
  SymbolTable symbols(getOperation());
  auto all = findReads(getOperation());
  for (auto [number, entry] : llvm::enumerate(all)) {
    auto &[op, reads] = entry;
    auto param = cast<ParamOp>(op);
    RankedTensorType type = param.getTensorType();
    budget.elements += type.getNumElements();
    if (!getEncodingBlocker(param, reads).empty()) {
      budget.otherBytes += getStorageBytes(type).value_or(0);
      continue;
    }
    FailureOr<Choices> choices;
    auto measure = [&, &reads = reads] {
      // Tables are rounded to nearest by every method.
      choices = measureForms(param, errorCompensation && !isTable(reads), countExperts(reads), inputs);
      return LogicalResult(choices);
    };
    if (failed(visitParameter(param, "hone-choose-widths", number, all.size(), measure)))
      return failure();
    SmallVector<ParamOp> partners = findPartners(reads, symbols);
    auto group = llvm::find_if(budget.groups, [&](ArrayRef<Operation *> of) {
      return llvm::any_of(partners, [&](ParamOp partner) { return partner.getOperation() == of.front(); });
    });
    if (group == budget.groups.end())
      budget.groups.push_back({op});
    else
      group->push_back(op);
    budget.weights[op] = std::move(*choices);
  }
  return budget;
}

FailureOr<compress::Allocation> ChooseWidths::allocate(const Budget &budget) {
  auto wanted = static_cast<int64_t>(bitsPerWeight * static_cast<double>(budget.elements) / 8);
  std::vector<std::vector<compress::Candidate>> candidates;
  int64_t least = budget.otherBytes;
  for (ArrayRef<Operation *> group : budget.groups) {
    std::vector<compress::Candidate> &sums = candidates.emplace_back(budget.weights.lookup(group.front()).candidates);
    for (Operation *other : group.drop_front())
      for (auto [sum, candidate] : llvm::zip_equal(sums, budget.weights.lookup(other).candidates)) {
        sum.bytes += candidate.bytes;
        sum.loss += candidate.loss;
      }
    least += std::ranges::min(sums, {}, &compress::Candidate::bytes).bytes;
  }
  if (wanted < least)
    return emitError(getOperation().getLoc())
           << llvm::formatv(
                  "expected a target of at least {0:F3} bits a weight, which this model takes in the smallest "
                  "forms, but got {1:F2}",
                  8.0 * static_cast<double>(least) / static_cast<double>(budget.elements), bitsPerWeight.getValue())
                  .str();
  auto allocation = compress::allocate(candidates, wanted - budget.otherBytes);
  if (!allocation.ok())
    return emitError(getOperation().getLoc()) << std::string(allocation.status().message());
  return *allocation;
}

static std::string describe(EncodingInterface form) {
  auto sparse = dyn_cast<DenseSparseAttr>(form);
  AffineAttr affine = sparse ? sparse.getAffine() : cast<AffineAttr>(form);
  std::string text = llvm::formatv("{0} bits", affine.getBits()).str();
  if (affine.getGroup())
    text += llvm::formatv(" in groups of {0}", affine.getGroup()).str();
  if (sparse)
    text += llvm::formatv(" and {0} outliers", sparse.getOutliers()).str();
  return text;
}

void ChooseWidths::mark(const Budget &budget, const compress::Allocation &allocation) {
  llvm::DenseMap<Operation *, size_t> chosen;
  for (auto [group, choice] : llvm::zip_equal(budget.groups, allocation.chosen))
    for (Operation *weight : group)
      chosen[weight] = choice;
  auto change = [&](ParamOp param, ArrayRef<GetParamOp>) {
    size_t choice = chosen.lookup(param);
    const Choices &choices = budget.weights.find(param)->second;
    EncodingInterface form = choices.forms[choice];
    param->setAttr(kEncodingAttr, form);
    return llvm::formatv("gets {0}, for a loss of {1:E3}", describe(form), choices.candidates[choice].loss).str();
  };
  ParameterChange marking{"hone-choose-widths", "Chosen", "takes no part", getEncodingBlocker, change};
  marking.keepsMeaning = true;
  numChosen += *changeParameters(getOperation(), marking); // no change fails
}

void ChooseWidths::runOnOperation() {
  FailureOr<MeasuredInputs> inputs = MeasuredInputs::open(statistics, getOperation());
  if (failed(inputs))
    return signalPassFailure();
  if (!inputs->hasCosts())
    remark::missed(getOperation().getLoc(), remark::RemarkOpts::name("Chosen").category("hone-choose-widths"))
        << "errors of all weights count the same: nobody measured what they cost, as hone calibrate --cost-tokens does";
  FailureOr<Budget> budget = measure(*inputs);
  if (failed(budget))
    return signalPassFailure();
  FailureOr<compress::Allocation> allocation = allocate(*budget);
  if (failed(allocation))
    return signalPassFailure();
  mark(*budget, *allocation);
}

} // namespace hone
