// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-scale-channels: what norms and the first layers of feed-forward blocks compute is divided by a scale a channel, and
// the weights that read it are multiplied with it. The model means the same, and its weights are rounded with less loss.

#include "hone/Compress/ChannelScales.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/InputRotation.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Hone/ParameterActions.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"
#include "hone/Transforms/Rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

namespace hone {
#define GEN_PASS_DEF_SCALECHANNELS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// Scales that take less than this share of the error away are not worth another model.
static constexpr double kLeastGain = 0.01;

namespace {
/// A tensor that may be divided by a scale a channel: what has to change for that. Functions that read the same parameters have it
/// each.
struct Site {
  SmallVector<Operation *> sources;   // compute it
  SmallVector<ParamOp> divided;       // vectors, or matrices by their rows
  SmallVector<OpOperand *> constants; // vectors that are divided too
  SmallVector<ParamOp> multiplied;    // matrices that read it, by their columns
  std::string blocker;                // why it cannot be, or empty
};

struct ScaleChannels : impl::ScaleChannelsBase<ScaleChannels> {
  using ScaleChannelsBase::ScaleChannelsBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  Site findSite(NormOpInterface norm);
  Site findHidden(WeightedOpInterface block);
  Site findOther(WeightedOpInterface product);
  void addDivided(Site &site, OpOperand &use);
  void addMultiplied(Site &site, const WeightUse &weight);
  ParamOp getOwnParam(Site &site, Value value);
  std::vector<Site> findSites();
  void checkReads(Site &site) const;
  LogicalResult scale(Site &site, size_t number, size_t count, MeasuredInputs &inputs);
  FailureOr<compress::ChannelScales> findScales(Site &site, MeasuredInputs &inputs);

  compress::AffineFormat format;
  SymbolTable *symbols = nullptr;
  llvm::DenseMap<Attribute, int64_t> reads; // of each parameter, by its name
  llvm::DenseSet<Operation *> covered;      // products whose inputs belong to a site
};
} // namespace

LogicalResult ScaleChannels::initialize(MLIRContext *context) {
  if (statistics.empty())
    return emitError(UnknownLoc::get(context)) << "expected a file of statistics to scale channels by";
  auto emit = [&] { return emitError(UnknownLoc::get(context)); };
  auto encoding =
      AffineAttr::getChecked(llvm::function_ref<InFlightDiagnostic()>(emit), context, bits.getValue(), group.getValue(),
                             FloatType(Float16Type::get(context)), asymmetric.getValue(),
                             /*isSigned=*/false, /*transposed=*/false, /*activations=*/int64_t(0), /*atLeast=*/false);
  if (!encoding)
    return failure();
  format = encoding.getFormat();
  return success();
}

//===- What can take scales ---------------------------------------------------------------------------------------===//

/// The parameter that `value` is, if nothing else of its function reads it; with the blocker, otherwise.
ParamOp ScaleChannels::getOwnParam(Site &site, Value value) {
  auto get = value.getDefiningOp<GetParamOp>();
  if (!get) {
    site.blocker = "a weight there is computed";
    return {};
  }
  auto param = symbols->lookup<ParamOp>(get.getName());
  RankedTensorType type = param.getTensorType();
  if (!get->hasOneUse())
    site.blocker = (param.getSymName() + " is also read elsewhere").str();
  else if (!type.getElementType().isF32() || (type.getEncoding() && !isa<StoredAttr>(type.getEncoding())))
    site.blocker = (param.getSymName() + " is not of f32").str();
  return param;
}

/// The elements of a constant of f32, or null.
static DenseFPElementsAttr getConstant(Value value) {
  Operation *op = value.getDefiningOp();
  bool isConstant = op && (isa<arith::ConstantOp>(op) || (onnxir::isOnnxOp(op) && onnxir::getOpType(op) == "Constant"));
  auto elements = isConstant ? op->getAttrOfType<DenseFPElementsAttr>("value") : DenseFPElementsAttr();
  return elements && elements.getElementType().isF32() ? elements : DenseFPElementsAttr();
}

void ScaleChannels::addDivided(Site &site, OpOperand &use) {
  if (getConstant(use.get()))
    site.constants.push_back(&use);
  else if (ParamOp param = getOwnParam(site, use.get()))
    site.divided.push_back(param);
}

void ScaleChannels::addMultiplied(Site &site, const WeightUse &weight) {
  ParamOp param = getOwnParam(site, weight.weight->get());
  if (!param)
    return;
  site.multiplied.push_back(param);
  if (getInputRotation(param))
    site.blocker = "its channels are rotated";
  if (param.getTensorType().getRank() != 2)
    site.blocker = (param.getSymName() + " is no matrix").str();
}

/// Each parameter is read once by each of the functions, and by nothing else.
void ScaleChannels::checkReads(Site &site) const {
  for (ArrayRef<ParamOp> params : {ArrayRef(site.divided), ArrayRef(site.multiplied)})
    for (ParamOp param : params)
      if (reads.lookup(param.getSymNameAttr()) != static_cast<int64_t>(site.sources.size()))
        site.blocker = (param.getSymName() + " is also read elsewhere").str();
}

/// The result of a norm, and the weights that are multiplied with it.
Site ScaleChannels::findSite(NormOpInterface norm) {
  Site site{{norm}, {}, {}, {}, ""};
  forEachReader(norm->getResult(0), /*looksThrough=*/false, [&](OpOperand &use, ArrayRef<WeightUse> weights) {
    if (weights.empty())
      site.blocker = "something other than products reads it";
    else
      covered.insert(use.getOwner());
    for (const WeightUse &weight : weights)
      addMultiplied(site, weight);
  });
  NormParts parts = norm.getNormParts();
  addDivided(site, *parts.gain);
  for (OpOperand &bias : parts.bias)
    addDivided(site, bias);
  return site;
}

/// The hidden row of a block, where it is a multiple of what a weight gives. That of experts takes no scales.
Site ScaleChannels::findHidden(WeightedOpInterface block) {
  Site site{{block}, {}, {}, {}, ""};
  bool isMultiple = false;
  for (const WeightUse &weight : block.listWeights()) {
    if (weight.experts > 0)
      continue;
    if (weight.outputs == WeightOutputs::Hidden) {
      isMultiple = true;
      addDivided(site, *weight.weight);
      for (OpOperand &bias : weight.bias)
        addDivided(site, bias);
    } else if (weight.inputs == WeightInputs::Hidden && isMultiple) {
      addMultiplied(site, weight);
    }
  }
  return site;
}

Site ScaleChannels::findOther(WeightedOpInterface product) {
  Site site{{product}, {}, {}, {}, ""};
  addMultiplied(site, *findProduct(product));
  site.blocker = "what computes it takes no scales";
  return site;
}

/// Norms first, then feed-forward blocks, then all other products.
std::vector<Site> ScaleChannels::findSites() {
  std::vector<Site> found;
  getOperation().walk([&](NormOpInterface norm) { found.push_back(findSite(norm)); });
  getOperation().walk([&](WeightedOpInterface op) { found.push_back(findHidden(op)); });
  getOperation().walk([&](WeightedOpInterface op) {
    if (findProduct(op) && !covered.contains(op))
      found.push_back(findOther(op));
  });
  llvm::MapVector<std::vector<Operation *>, Site, std::map<std::vector<Operation *>, unsigned>,
                  std::vector<std::pair<std::vector<Operation *>, Site>>>
      sites;
  for (Site &site : found) {
    std::vector<Operation *> key(site.multiplied.begin(), site.multiplied.end());
    key.insert(key.end(), site.divided.begin(), site.divided.end());
    if (site.multiplied.empty())
      continue;
    auto [known, isNew] = sites.try_emplace(key, site);
    if (isNew)
      continue;
    llvm::append_range(known->second.sources, site.sources);
    llvm::append_range(known->second.constants, site.constants);
    if (!site.blocker.empty())
      known->second.blocker = site.blocker;
  }
  std::vector<Site> merged;
  for (auto &[key, site] : sites) {
    if (site.blocker.empty())
      checkReads(site);
    merged.push_back(std::move(site));
  }
  return merged;
}

//===- The change -------------------------------------------------------------------------------------------------===//

FailureOr<compress::ChannelScales> ScaleChannels::findScales(Site &site, MeasuredInputs &inputs) {
  std::vector<std::vector<float>> elements;
  std::vector<compress::Weight> weights;
  for (ParamOp param : site.multiplied) {
    FailureOr<std::vector<float>> read = readElements(param);
    if (failed(read) || failed(checkFinite(param, *read)))
      return failure();
    elements.push_back(std::move(*read));
    weights.push_back(asWeight(param, elements.back()));
  }
  FailureOr<compress::Hessian> hessian = inputs.getHessian(site.multiplied.front());
  if (failed(hessian))
    return failure();
  std::vector<float> squares(hessian->size);
  for (auto [j, square] : llvm::enumerate(squares))
    square = std::max(hessian->diagonal(j), 0.0f);
  return compress::findChannelScales(weights, format, squares);
}

/// Multiplies element i with `factor(i)`.
static LogicalResult changeElements(ParamOp param, llvm::function_ref<float(int64_t)> factor, float offset = 0) {
  FailureOr<std::vector<float>> elements = readElements(param);
  if (failed(elements))
    return failure();
  for (auto [i, element] : llvm::enumerate(*elements))
    element = (element + offset) * factor(static_cast<int64_t>(i));
  writeElements(param, *elements);
  return success();
}

/// Divides a vector, or the rows of a matrix, by `scales`.
static LogicalResult divide(ParamOp param, ArrayRef<float> scales, float offset) {
  RankedTensorType type = param.getTensorType();
  int64_t width = type.getRank() == 2 ? type.getDimSize(1) : 1;
  return changeElements(param, [&](int64_t i) { return 1 / scales[i / width]; }, offset);
}

/// Divides a vector that is a constant.
static void divide(OpOperand &use, ArrayRef<float> scales, float offset) {
  DenseFPElementsAttr constant = getConstant(use.get());
  SmallVector<float> elements(constant.getValues<float>());
  for (auto [i, element] : llvm::enumerate(elements))
    element = (element + offset) / scales[i];
  OpBuilder b(use.getOwner());
  use.set(
      arith::ConstantOp::create(b, use.get().getLoc(), DenseElementsAttr::get(constant.getType(), ArrayRef(elements))));
}

/// Multiplies the columns of a matrix with `scales`, and keeps what its input is divided by beside it.
static LogicalResult multiply(ParamOp param, ArrayRef<float> scales) {
  int64_t width = param.getTensorType().getDimSize(1);
  addChannelScales(param, scales);
  return changeElements(param, [&](int64_t i) { return scales[i % width]; });
}

/// Changes a parameter of site `number` of `count` under the eyes of who watches.
static LogicalResult act(ParamOp param, size_t number, size_t count, llvm::function_ref<ParameterOutcome()> change) {
  static constexpr ParameterChange kChange{"hone-scale-channels", "Scaled", "stays as it is", {}, {},
                                           /*keepsMeaning=*/true};
  ParameterOutcome outcome;
  param.getContext()->executeAction<ChangeParameterAction>([&] { outcome = change(); }, {param.getOperation()}, param,
                                                           kChange, number, count, outcome);
  return success(outcome.kind != ParameterOutcome::Failed);
}

LogicalResult ScaleChannels::scale(Site &site, size_t number, size_t count, MeasuredInputs &inputs) {
  auto change = [&](ArrayRef<ParamOp> params, StringRef text, llvm::function_ref<LogicalResult(ParamOp)> body) {
    return success(llvm::all_of(params, [&](ParamOp param) {
      return succeeded(act(param, number, count, [&] {
        return failed(body(param)) ? ParameterOutcome() : ParameterOutcome{ParameterOutcome::Changed, text.str()};
      }));
    }));
  };
  auto leave = [&](StringRef reason) {
    for (ParamOp param : site.multiplied)
      (void)act(param, number, count, [&] { return ParameterOutcome{ParameterOutcome::Left, reason.str()}; });
  };
  std::string name = ("the input of " + site.multiplied.front().getSymName()).str();
  auto options = remark::RemarkOpts::name("Scaled").category("hone-scale-channels");
  Location loc = site.sources.front()->getLoc();
  auto isMeasured = [&](ParamOp param) { return inputs.has(param); };
  if (site.blocker.empty() && !llvm::all_of(site.multiplied, isMeasured))
    site.blocker = "nothing was measured of it";
  if (!site.blocker.empty()) {
    remark::missed(loc, options) << name + " stays as it is: " + site.blocker;
    leave(site.blocker);
    return success();
  }
  FailureOr<compress::ChannelScales> found = findScales(site, inputs);
  if (failed(found))
    return failure();
  if (found->error > 1 - kLeastGain) {
    remark::missed(loc, options) << name + " stays as it is: no scales lose less";
    leave("no scales of its inputs lose less");
    return success();
  }
  float offset = 0; // 1 + w cannot be divided, but what it is can
  for (Operation *source : site.sources)
    if (auto norm = dyn_cast<NormOpInterface>(source); norm && norm.getNormParts().hasUnitOffset) {
      norm.dropUnitOffset();
      offset = 1;
    }
  for (OpOperand *constant : site.constants)
    divide(*constant, found->scales, offset);
  auto divideBy = [&](ParamOp param) { return divide(param, found->scales, offset); };
  auto multiplyBy = [&](ParamOp param) { return multiply(param, found->scales); };
  if (failed(change(site.divided, "is divided by the scales of the channels after it", divideBy)) ||
      failed(change(site.multiplied, "has its inputs scaled by channels", multiplyBy)))
    return failure();
  ++numScaled;
  remark::passed(loc, options) << name + llvm::formatv(" is scaled by channels: rounding to nearest would leave "
                                                       "{0:F4} of the error",
                                                       std::sqrt(found->error))
                                             .str();
  return success();
}

void ScaleChannels::runOnOperation() {
  FailureOr<MeasuredInputs> inputs = MeasuredInputs::open(statistics, getOperation());
  if (failed(inputs) || failed(keepFingerprint(getOperation())))
    return signalPassFailure();
  SymbolTable table(getOperation());
  symbols = &table;
  reads.clear();
  covered.clear();
  getOperation().walk([&](GetParamOp get) { ++reads[get.getNameAttr().getAttr()]; });
  std::vector<Site> sites = findSites();
  for (auto [number, site] : llvm::enumerate(sites))
    if (failed(scale(site, number, sites.size(), *inputs)))
      return signalPassFailure();
}

} // namespace hone
