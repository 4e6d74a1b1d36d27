// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-scale-channels: what norms and the first layers of feed-forward blocks compute is divided by a scale a channel, and
// the weights that read it are multiplied with it. The model means the same, and its weights are rounded with less loss.

#include "hone/Compress/ChannelScales.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/ParamBytes.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/MeasuredInputs.h"
#include "hone/Transforms/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace hone {
#define GEN_PASS_DEF_SCALECHANNELS
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {

/// Scales that take less than this share of the error away are not worth another model.
static constexpr double kLeastGain = 0.01;

namespace {
/// A tensor that may be divided by a scale a channel: what has to change for that.
struct Site {
  Operation *source;               // computes it
  SmallVector<ParamOp> divided;    // vectors, or matrices by their rows
  SmallVector<ParamOp> multiplied; // matrices that read it, by their columns
  std::string obstacle;            // why it cannot be, or empty
};

struct ScaleChannels : impl::ScaleChannelsBase<ScaleChannels> {
  using ScaleChannelsBase::ScaleChannelsBase;

  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  Site findSite(Operation *norm);
  Site findHidden(GatedMlpOp mlp);
  void addDivided(Site &site, Value value);
  void addMultiplied(Site &site, Value value);
  ParamOp getOwnParam(Site &site, Value value);
  LogicalResult scale(Site &site, MeasuredInputs &inputs);
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
                             /*isSigned=*/false, /*transposed=*/false, /*activations=*/0, /*atLeast=*/false);
  if (!encoding)
    return failure();
  format = encoding.getFormat();
  return success();
}

//===- What can take scales ---------------------------------------------------------------------------------------===//

/// The parameter that `value` is, if nothing else reads it; null, with the obstacle, otherwise.
ParamOp ScaleChannels::getOwnParam(Site &site, Value value) {
  auto get = value.getDefiningOp<GetParamOp>();
  if (!get) {
    site.obstacle = "a weight there is computed";
    return {};
  }
  auto param = symbols->lookup<ParamOp>(get.getName());
  RankedTensorType type = param.getTensorType();
  if (reads[get.getNameAttr().getAttr()] != 1 || !get->hasOneUse())
    site.obstacle = (param.getSymName() + " is also read elsewhere").str();
  else if (!type.getElementType().isF32() || (type.getEncoding() && !isa<StoredAttr>(type.getEncoding())))
    site.obstacle = (param.getSymName() + " is not of f32").str();
  return param;
}

void ScaleChannels::addDivided(Site &site, Value value) {
  if (ParamOp param = value ? getOwnParam(site, value) : ParamOp())
    site.divided.push_back(param);
}

void ScaleChannels::addMultiplied(Site &site, Value value) {
  ParamOp param = getOwnParam(site, value);
  if (!param)
    return;
  site.multiplied.push_back(param);
  if (param.getTensorType().getRank() != 2)
    site.obstacle = (param.getSymName() + " is no matrix").str();
}

/// Whether `user` reads no more than the sizes of what it takes.
static bool readsSizes(Operation *user) {
  return isa<tensor::DimOp>(user) || (onnxir::isOnnxOp(user) && onnxir::getOpType(user) == "Shape");
}

/// The result of a norm, and the weights that are multiplied with it.
Site ScaleChannels::findSite(Operation *norm) {
  Site site{norm, {}, {}, ""};
  for (OpOperand &use : norm->getResult(0).getUses()) {
    Operation *user = use.getOwner();
    if (readsSizes(user))
      continue;
    if (!isa<LinearOp, GatedMlpOp, MlpOp>(user) || use.getOperandNumber() != 0) {
      site.obstacle = "something other than products reads it";
      continue;
    }
    covered.insert(user);
    if (auto linear = dyn_cast<LinearOp>(user))
      addMultiplied(site, linear.getWeight());
    if (auto mlp = dyn_cast<MlpOp>(user))
      addMultiplied(site, mlp.getUp());
    if (auto mlp = dyn_cast<GatedMlpOp>(user)) {
      addMultiplied(site, mlp.getGate());
      addMultiplied(site, mlp.getUp());
    }
  }
  if (auto rms = dyn_cast<RmsNormOp>(norm)) {
    addDivided(site, rms.getWeight());
  } else {
    addDivided(site, cast<LayerNormOp>(norm).getWeight());
    addDivided(site, cast<LayerNormOp>(norm).getBias());
  }
  return site;
}

/// The hidden row of a gated block, which is a multiple of what `up` gives.
Site ScaleChannels::findHidden(GatedMlpOp mlp) {
  Site site{mlp, {}, {}, ""};
  addDivided(site, mlp.getUp());
  addDivided(site, mlp.getUpBias());
  addMultiplied(site, mlp.getDown());
  return site;
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
  FailureOr<compress::SecondMoment> moment = inputs.getMoment(site.multiplied.front());
  if (failed(moment))
    return failure();
  std::vector<float> squares(moment->size);
  for (auto [j, square] : llvm::enumerate(squares))
    square = std::max(moment->diagonal(j), 0.0f);
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

/// Multiplies the columns of a matrix with `scales`, and keeps what its input is divided by beside it.
static LogicalResult multiply(ParamOp param, ArrayRef<float> scales) {
  int64_t width = param.getTensorType().getDimSize(1);
  addChannelScales(param, scales);
  return changeElements(param, [&](int64_t i) { return scales[i % width]; });
}

LogicalResult ScaleChannels::scale(Site &site, MeasuredInputs &inputs) {
  std::string name = site.multiplied.empty() ? "" : ("the input of " + site.multiplied.front().getSymName()).str();
  auto options = remark::RemarkOpts::name("Scaled").category("hone-scale-channels");
  auto isMeasured = [&](ParamOp param) { return inputs.has(param); };
  if (site.multiplied.empty())
    return success();
  if (site.obstacle.empty() && !llvm::all_of(site.multiplied, isMeasured))
    site.obstacle = "nothing was measured of it";
  if (!site.obstacle.empty()) {
    remark::missed(site.source->getLoc(), options) << name + " stays as it is: " + site.obstacle;
    return success();
  }
  FailureOr<compress::ChannelScales> found = findScales(site, inputs);
  if (failed(found))
    return failure();
  if (found->error > 1 - kLeastGain) {
    remark::missed(site.source->getLoc(), options) << name + " stays as it is: no scales lose less";
    return success();
  }
  auto rms = dyn_cast<RmsNormOp>(site.source);
  bool hasOffset = rms && rms.getUnitOffset(); // 1 + w cannot be divided, but what it is can
  if (hasOffset)
    rms.setUnitOffset(false);
  for (ParamOp param : site.divided)
    if (failed(divide(param, found->scales, hasOffset ? 1 : 0)))
      return failure();
  for (ParamOp param : site.multiplied)
    if (failed(multiply(param, found->scales)))
      return failure();
  ++numScaled;
  remark::passed(site.source->getLoc(), options)
      << name + llvm::formatv(" is scaled by channels: rounding to nearest would leave {0:F4} of the error",
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
  SmallVector<Operation *> norms, mlps, linears;
  getOperation().walk([&](Operation *op) {
    if (auto get = dyn_cast<GetParamOp>(op))
      ++reads[get.getNameAttr().getAttr()];
    if (isa<RmsNormOp, LayerNormOp>(op))
      norms.push_back(op);
    if (isa<GatedMlpOp>(op))
      mlps.push_back(op);
    if (isa<LinearOp>(op))
      linears.push_back(op);
  });
  for (Operation *norm : norms)
    if (Site site = findSite(norm); failed(scale(site, *inputs)))
      return signalPassFailure();
  for (Operation *mlp : mlps)
    if (Site site = findHidden(cast<GatedMlpOp>(mlp)); failed(scale(site, *inputs)))
      return signalPassFailure();
  for (Operation *linear : linears) {
    if (covered.contains(linear))
      continue;
    Site site{linear, {}, {}, ""};
    addMultiplied(site, cast<LinearOp>(linear).getWeight());
    site.obstacle = "what computes it takes no scales";
    if (failed(scale(site, *inputs)))
      return signalPassFailure();
  }
}

} // namespace hone
