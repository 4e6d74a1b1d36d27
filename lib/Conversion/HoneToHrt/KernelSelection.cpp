// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which kernel an operation runs on: its namesake, or what a small function says, by the names of the kernel's row.

#include "KernelSelection.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hrt/HrtDialect.h"
#include "hone/kernels/limits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace hone {

static bool isPlainF32(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.getElementType().isF32() && !tensor.getEncoding();
}

static bool arePlainF32(ValueRange values) {
  return llvm::all_of(values, [](Value value) { return !value || isPlainF32(value); });
}

/// The encoding of a weight in panels, or null.
static hrt::PanelsAttr getPanels(Value weight) {
  return dyn_cast_or_null<hrt::PanelsAttr>(cast<RankedTensorType>(weight.getType()).getEncoding());
}

/// The integers that kernels of quantized weights in panels have beside their own.
static void addFormatIntegers(KernelCall &kernel, AffineAttr affine) {
  if (!affine)
    return;
  // The kernel multiplies integers alone; those of 16 bits err by a 65534th of the largest activation of their group.
  int64_t bits = affine.getActivations() ? affine.getActivations() : 16;
  kernel.ints.append({{"group", affine.getGroup()}, {"bits", bits}, {"atLeast", affine.getAtLeast()}});
}

/// `activation(x · weightᵀ + bias) · factor`; `activation` as the kernel numbers them.
static KernelCall selectPackedLinear(Value x, Value weight, Value bias, Value factor = {}, int64_t activation = 0) {
  hrt::PanelsAttr panels = getPanels(weight);
  if (!panels || !arePlainF32({x, bias, factor}))
    return {};
  StringRef name = panels.getNm() ? "hone.sparse_linear." : "hone.packed_linear.";
  KernelCall kernel{(name + panels.getKernelSuffix()).str(),
                    {{"x", x}, {"weight", weight}, {"bias", bias}, {"factor", factor}},
                    {{"activation", activation}},
                    {}};
  addFormatIntegers(kernel, panels.getAffine());
  return kernel;
}

static KernelCall select(LinearOp op) {
  if (getPanels(op.getWeight()))
    return selectPackedLinear(op.getX(), op.getWeight(), op.getBias());
  if (!isPlainF32(op.getWeight()))
    return {};
  return {op.getBf16Products() ? "hone.linear.bf16" : "hone.linear.f32",
          {{"x", op.getX()}, {"weight", op.getWeight()}, {"bias", op.getBias()}},
          {{"transposed", 1}},
          {}};
}

/// Kernels of attention read integers as i64.
static bool isRead(Value integers) {
  return !integers || cast<RankedTensorType>(integers.getType()).getElementType().isInteger(64);
}

template <typename Op> static bool readsIntegers(Op op) {
  return llvm::all_of(ArrayRef<Value>{op.getKeyBegin(), op.getKeyEnd(), op.getLags(), op.getKeyPositions()}, isRead) &&
         llvm::all_of(op.getPatternOperands(), isRead);
}

StringRef getFloatName(Type type) { return type.isF32() ? "f32" : type.isF16() ? "f16" : type.isBF16() ? "bf16" : ""; }

/// What a kernel of attention or its gradient is called with but for sinks and what only one of them has; nothing where the pattern or
/// integers are none that kernels know.
template <typename Op> static KernelCall callVisible(Op op, StringRef kernel, Value bias) {
  std::optional<kernels::PatternVisibility> visibility = op.getPattern().getVisibility();
  if (!visibility || !readsIntegers(op))
    return {};
  auto getOperand = [&](int number) { return number < 0 ? Value() : op.getPatternOperands()[number]; };
  double softcap = op.getSoftcap() ? op.getSoftcap()->convertToFloat() : 0.0;
  return {kernel.str(),
          {{"query", op.getQuery()},
           {"key", op.getKey()},
           {"value", op.getValue()},
           {"bias", bias},
           {"alibi", op.getAlibi()},
           {"keyBegin", op.getKeyBegin()},
           {"keyEnd", op.getKeyEnd()},
           {"lags", op.getLags()},
           {"prefix", getOperand(visibility->prefix)},
           {"keyPositions", op.getKeyPositions()},
           {"blocks", getOperand(visibility->blocks)},
           {"ancestors", getOperand(visibility->ancestors)}},
          {{"causal", visibility->isCausal},
           {"window", visibility->window},
           {"blockKeys", visibility->blockKeys},
           {"blockQueries", visibility->blockQueries}},
          {{"scale", op.getScale().convertToFloat()}, {"softcap", softcap}}};
}

KernelCall callAttention(AttentionOp op, StringRef kernel, Value bias) {
  KernelCall call = callVisible(op, kernel, bias);
  if (!call.name.empty())
    call.operands.push_back({"sinks", op.getSinks()});
  return call;
}

static KernelCall select(AttentionGradientOp op) {
  StringRef kernel = op.getBf16Products() ? "hone.attention_gradient.bf16" : "hone.attention_gradient.f32";
  KernelCall call = callVisible(op, kernel, op.getBias());
  if (!call.name.empty())
    call.operands.append({{"lse", op.getLse()}, {"subtracted", op.getSubtracted()}, {"gradient", op.getGradient()}});
  return call;
}

/// "f32", "i8" and others as names of kernels have it, for what keys are kept as; empty for other types.
static StringRef getCacheName(RankedTensorType keys) {
  auto layout = dyn_cast_or_null<StateLayoutInterface>(keys.getEncoding());
  if (layout && layout.getIntegerBits() != 0)
    return layout.getIntegerBits() == 8 ? "i8" : "u4";
  return getFloatName(keys.getElementType());
}

static KernelCall select(AttentionOp op) {
  StringRef cache = getCacheName(op.getKey().getType());
  if (!isPlainF32(op.getQuery()) || cache.empty())
    return {};
  auto layout = dyn_cast_or_null<StateLayoutInterface>(op.getKey().getType().getEncoding());
  StringRef form = layout ? "blocks." : op.getBf16Products() && cache == "f32" ? "pairs." : "";
  KernelCall call = callAttention(op, ("hone.attention." + form + cache).str(), op.getBias());
  if (!call.name.empty())
    call.floats.push_back({"skip", op.getSkip() ? op.getSkip()->convertToFloat() : 0.0});
  return call;
}

bool hasKernel(AttentionOp op) { return !select(op).name.empty(); }

bool hasKernel(AttentionGradientOp op) { return !select(op).name.empty(); }

//===----------------------------------------------------------------------===//
// Blocks of keys
//===----------------------------------------------------------------------===//

bool hasKernel(PoolKeysOp op) { return isRead(op.getKeyBegin()); }

/// Keys that are kept as rows are pooled by generated code.
static KernelCall select(PoolKeysOp op) {
  if (!isa_and_nonnull<StateLayoutInterface>(op.getKeys().getType().getEncoding()) || !hasKernel(op))
    return {};
  StringRef form = op.getBounds() ? "bounds.blocks." : "blocks.";
  return {("hone.pool_keys." + form + getCacheName(op.getKeys().getType())).str(),
          {{"keys", op.getKeys()}, {"keyBegin", op.getKeyBegin()}},
          {{"size", op.getSize()}},
          {}};
}

/// Whether kernels read the operands of an operation that lists blocks of keys for blocks of queries, with its keys in blocks.
template <typename Op> static bool hasListKernel(Op op) {
  return isPlainF32(op.getQuery()) && !getCacheName(op.getKeys().getType()).empty() && isRead(op.getKeyBegin());
}

bool hasKernel(SelectAntidiagonalsOp op) { return hasListKernel(op); }

bool hasKernel(SelectMeansOp op) { return hasListKernel(op); }

/// The kernel `name` for the keys of `op`, without attributes; of keys in rows, for those of f32.
template <typename Op> static KernelCall callListKernel(Op op, StringRef name) {
  RankedTensorType keys = op.getKeys().getType();
  bool isBlocked = isa_and_nonnull<StateLayoutInterface>(keys.getEncoding());
  if (!hasKernel(op) || (!isBlocked && !isPlainF32(op.getKeys())))
    return {};
  return {(name + (isBlocked ? ".blocks." : ".") + getCacheName(keys)).str(),
          {{"query", op.getQuery()},
           {"keys", op.getKeys()},
           {"begin", op.getBegin()},
           {"end", op.getEnd()},
           {"keyBegin", op.getKeyBegin()}},
          {{"size", op.getSize()}, {"queries", op.getQueries()}},
          {{"scale", op.getScale().convertToFloat()}}};
}

static KernelCall select(SelectAntidiagonalsOp op) {
  KernelCall call = callListKernel(op, "hone.select_antidiagonals");
  call.ints.push_back({"stride", op.getStride()});
  call.floats.push_back({"share", op.getShare().convertToFloat()});
  return call;
}

static KernelCall select(SelectMeansOp op) {
  KernelCall call = callListKernel(op, "hone.select_means");
  call.operands.push_back({"thresholds", op.getThresholds()});
  return call;
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Spatial axes that kernels take.
static constexpr int64_t kSpatialAxes = 3;

/// The numbers of windows for three axes; those that x lacks come first.
template <typename Op> static void addWindows(KernelCall &kernel, Op op) {
  auto add = [&](std::array<StringRef, kSpatialAxes> names, ArrayRef<int64_t> numbers, int64_t absent) {
    int64_t first = kSpatialAxes - static_cast<int64_t>(numbers.size());
    for (int64_t axis = 0; axis < kSpatialAxes; ++axis)
      kernel.ints.push_back({names[axis], axis < first ? absent : numbers[axis - first]});
  };
  add({"kernel0", "kernel1", "kernel2"}, op.getKernel(), 1);
  add({"stride0", "stride1", "stride2"}, op.getStrides(), 1);
  add({"dilation0", "dilation1", "dilation2"}, op.getDilations(), 1);
  add({"low0", "low1", "low2"}, op.getLow(), 0);
}

static KernelCall select(ConvolutionOp op) {
  hrt::PanelsAttr panels = getPanels(op.getWeight());
  if (op.getKernel().size() > kSpatialAxes || (!panels && !isPlainF32(op.getWeight())))
    return {};
  KernelCall kernel{panels ? "hone.packed_convolution.f32" : "hone.convolution.f32",
                    {{"x", op.getX()}, {"weight", op.getWeight()}, {"bias", op.getBias()}},
                    {{"groups", op.getGroups()},
                     {"activation", 0}, // hone-fold-clamps says what becomes of the sums
                     {"isExact", op.getExact()}},
                    {{"scale", 1.0}, {"shift", 0.0}, {"least", -kernels::kNoLimit}, {"most", kernels::kNoLimit}}};
  addWindows(kernel, op);
  return kernel;
}

static KernelCall select(PoolOp op) {
  if (op.getKernel().size() > kSpatialAxes)
    return {};
  KernelCall kernel{"hone.pool.f32", {{"x", op.getX()}}, {{"isSum", op.getKind() == PoolKind::Sum}}, {}};
  addWindows(kernel, op);
  return kernel;
}

static KernelCall select(Operation *op) {
  if (auto convolution = dyn_cast<ConvolutionOp>(op))
    return select(convolution);
  if (auto pool = dyn_cast<PoolOp>(op))
    return select(pool);
  if (auto pool = dyn_cast<PoolKeysOp>(op))
    return select(pool);
  if (auto gradient = dyn_cast<AttentionGradientOp>(op))
    return select(gradient);
  if (auto blocks = dyn_cast<SelectMeansOp>(op))
    return select(blocks);
  if (auto blocks = dyn_cast<SelectAntidiagonalsOp>(op))
    return select(blocks);
  if (auto blocks = dyn_cast<SelectBlocksOp>(op); blocks && isPlainF32(blocks.getQuery())) {
    KernelCall kernel = selectNamesake(op, "hone.");
    if (blocks.getBounds())
      kernel.name = "hone.select_blocks.bounds.f32";
    return kernel;
  }
  if (auto linear = dyn_cast<LinearOp>(op); linear && arePlainF32({linear.getX(), linear.getBias()}))
    return select(linear);
  if (!arePlainF32(op->getOperands()) || !arePlainF32(op->getResults()))
    return {};
  if (auto product = dyn_cast<MatmulOp>(op))
    return selectMatmul(product, product.getBf16Products() ? "hone.matmul.bf16" : "hone.matmul.f32");
  return selectNamesake(op, "hone.");
}

//===----------------------------------------------------------------------===//
// Feed-forward blocks: one call, or several
//===----------------------------------------------------------------------===//

int64_t getNumber(Activation activation) {
  switch (activation) {
  case Activation::Relu:
    return 1;
  case Activation::Silu:
    return 2;
  case Activation::Gelu:
    return 3;
  case Activation::GeluTanh:
    return 4;
  }
  llvm_unreachable("an activation that the enum does not have");
}

namespace {
/// A feed-forward block, with a gate or without.
struct Block {
  struct Layer {
    Value weight, bias;
  };
  Value x;
  Layer gate, up, down; // without a gate it has no weight
  int64_t activation;
};
} // namespace

/// Whether one kernel reads weights in both: they are alike but for the number of outliers.
static bool haveSameKernel(hrt::PanelsAttr a, hrt::PanelsAttr b) {
  if (!a || !b || !a.getSparse() || !b.getSparse())
    return a == b;
  return a.getSparse().getBase() == b.getSparse().getBase();
}

/// All products at once, where one kernel reads all weights, and those are no integers that are to be multiplied as such.
static KernelCall selectPackedMlp(const Block &block) {
  hrt::PanelsAttr panels = getPanels(block.up.weight);
  AffineAttr affine = panels.getAffine();
  bool isAlike = haveSameKernel(panels, getPanels(block.down.weight)) &&
                 (!block.gate.weight || haveSameKernel(panels, getPanels(block.gate.weight)));
  if (!isAlike || (affine && !affine.getAtLeast()) ||
      !arePlainF32({block.x, block.gate.bias, block.up.bias, block.down.bias}))
    return {};
  int64_t width = cast<RankedTensorType>(block.up.weight.getType()).getDimSize(0);
  StringRef name = panels.getNm() ? "hone.sparse_mlp." : "hone.packed_mlp.";
  KernelCall kernel{(name + panels.getKernelSuffix()).str(),
                    {{"x", block.x},
                     {"gate", block.gate.weight},
                     {"gateBias", block.gate.bias},
                     {"up", block.up.weight},
                     {"upBias", block.up.bias},
                     {"down", block.down.weight},
                     {"downBias", block.down.bias}},
                    {{"activation", block.activation}, {"width", width}},
                    {}};
  addFormatIntegers(kernel, affine);
  return kernel;
}

/// The block, if its weights are in panels, else null.
static Value createMlp(OpBuilder &b, Operation *op, Value call) {
  Location loc = op->getLoc();
  Block block = {};
  if (auto mlp = dyn_cast<MlpOp>(op))
    block = {mlp.getX(),
             {},
             {mlp.getUp(), mlp.getUpBias()},
             {mlp.getDown(), mlp.getDownBias()},
             getNumber(mlp.getActivation())};
  else if (auto gated = dyn_cast<GatedMlpOp>(op))
    block = {gated.getX(),
             {gated.getGate(), gated.getGateBias()},
             {gated.getUp(), gated.getUpBias()},
             {gated.getDown(), gated.getDownBias()},
             getNumber(gated.getActivation())};
  if (!block.x)
    return {};
  bool isGated = static_cast<bool>(block.gate.weight);
  if ((isGated && !getPanels(block.gate.weight)) || !getPanels(block.up.weight) || !getPanels(block.down.weight))
    return {};
  if (KernelCall whole = selectPackedMlp(block); !whole.name.empty())
    return createKernel(b, loc, call, whole, createRows(b, loc, block.x, block.down.weight));
  auto create = [&](Value x, const Block::Layer &layer, Value factor, int64_t activation) {
    return createProduct(b, loc, call, selectPackedLinear(x, layer.weight, layer.bias, factor, activation));
  };
  Value gate = isGated ? create(block.x, block.gate, {}, block.activation) : Value();
  Value hidden = create(block.x, block.up, gate, isGated ? 0 : block.activation);
  return create(hidden, block.down, {}, 0);
}

//===----------------------------------------------------------------------===//
// Experts: two calls
//===----------------------------------------------------------------------===//

/// The name of the kernel `layer` of experts for weights in `panels`.
static std::string getExpertKernel(StringRef layer, hrt::PanelsAttr panels) {
  return ((panels.getNm() ? "hone.sparse_" : "hone.") + layer + "." + panels.getKernelSuffix()).str();
}

/// The block, if its weights are in panels, else null.
static Value createMoe(OpBuilder &b, MoeOp op, Value call) {
  hrt::PanelsAttr up = getPanels(op.getUp()), down = getPanels(op.getDown());
  if (!up || !down || op.getHiddenSize() == 0 || (op.getGate() && !haveSameKernel(getPanels(op.getGate()), up)) ||
      !arePlainF32({op.getX(), op.getExpertWeights(), op.getUpBias(), op.getDownBias(), op.getGateBias()}))
    return {};
  Location loc = op.getLoc();
  int64_t experts = op.getExpertCount();
  Value hidden = createExpertHidden(b, op, [&](const ExpertSums &sums, Value destination) {
    KernelCall first{getExpertKernel("expert_hidden", up),
                     {{"x", op.getX()},
                      {"ids", op.getExpertIds()},
                      {"up", sums.up},
                      {"upBias", sums.upBias},
                      {"gate", sums.gate},
                      {"gateBias", sums.gateBias}},
                     {{"activation", sums.activation}, {"fused", sums.fused}, {"experts", experts}},
                     {}};
    addFormatIntegers(first, up.getAffine());
    return createKernel(b, loc, call, first, destination);
  });
  KernelCall second{getExpertKernel("expert_sum", down),
                    {{"hidden", hidden},
                     {"ids", op.getExpertIds()},
                     {"expertWeights", op.getExpertWeights()},
                     {"down", op.getDown()},
                     {"downBias", op.getDownBias()}},
                    {{"experts", experts}},
                    {}};
  addFormatIntegers(second, down.getAffine());
  return createKernel(b, loc, call, second,
                      tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, op.getX()), b.getF32Type()));
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

/// What `op` is as calls of kernels; nothing if it has none.
static SmallVector<Value> createCalls(OpBuilder &b, Operation *op, Value call) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return createAttention(b, attention, call, select(attention));
  if (auto moe = dyn_cast<MoeOp>(op))
    return asResults(createMoe(b, moe, call));
  if (Value mlp = createMlp(b, op, call))
    return {mlp};
  return createCall(b, op, call, select(op));
}

int64_t selectKernels(func::FuncOp entry) { return replaceByKernels(entry, createCalls); }

} // namespace hone
