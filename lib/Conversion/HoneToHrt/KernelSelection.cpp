// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One small function an operation: its kernel's name, operands and attributes in the order of the kernel's row.

#include "KernelSelection.h"

#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hrt/HrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace hone {

static bool isPlainF32(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.getElementType().isF32() && !tensor.getEncoding();
}

static bool arePlainF32(ValueRange values) {
  return llvm::all_of(values, [](Value value) { return !value || isPlainF32(value); });
}

static Choice choose(MatmulOp op) { return {"hone.matmul.f32", {op.getA(), op.getB()}, {}, {}}; }

/// The encoding of a weight in panels, or null.
static hrt::PanelsAttr getPanels(Value weight) {
  return dyn_cast_or_null<hrt::PanelsAttr>(cast<RankedTensorType>(weight.getType()).getEncoding());
}

/// `activation(x · weightᵀ + bias) · factor`; `activation` as the kernel numbers them.
static Choice choosePackedLinear(Value x, Value weight, Value bias, Value factor = {}, int64_t activation = 0) {
  hrt::PanelsAttr panels = getPanels(weight);
  if (!panels || !arePlainF32({x, bias, factor}))
    return {};
  Value absent;
  StringRef kernel = panels.getNm() ? "hone.sparse_linear." : "hone.packed_linear.";
  Choice choice{(kernel + panels.getKernelSuffix()).str(), {x, weight}, {activation}, {}};
  if (AffineAttr affine = panels.getAffine()) {
    // The kernel multiplies integers alone; those of 16 bits err by a 65534th of the largest activation of their group.
    int64_t bits = affine.getActivations() ? affine.getActivations() : 16;
    choice.ints.append({affine.getGroup(), bits, affine.getAtLeast()});
    if (!affine.getHasZeros())
      choice.inputs.push_back(absent);
  }
  choice.inputs.append({bias, factor, /*residual=*/absent});
  return choice;
}

static Choice choose(LinearOp op) {
  if (getPanels(op.getWeight()))
    return choosePackedLinear(op.getX(), op.getWeight(), op.getBias());
  if (!isPlainF32(op.getWeight()))
    return {};
  return {"hone.linear.f32", {op.getX(), op.getWeight(), op.getBias()}, {/*transposed=*/1}, {}};
}

static Choice choose(RmsNormOp op) {
  return {"hone.rms_norm.f32", {op.getX(), op.getWeight()}, {op.getUnitOffset()}, {op.getEpsilon().convertToFloat()}};
}

static Choice choose(LayerNormOp op) {
  return {"hone.layer_norm.f32", {op.getX(), op.getWeight(), op.getBias()}, {}, {op.getEpsilon().convertToFloat()}};
}

static Choice choose(RopeOp op) {
  return {"hone.rope.f32", {op.getX(), op.getCos(), op.getSin()}, {op.getInterleaved()}, {}};
}

std::optional<SmallVector<int64_t>> getPatternIntegers(Attribute pattern) {
  if (isa<FullAttr>(pattern))
    return SmallVector<int64_t>{0, -1};
  if (isa<CausalAttr, PrefixCausalAttr>(pattern))
    return SmallVector<int64_t>{1, -1};
  if (auto sliding = dyn_cast<SlidingAttr>(pattern))
    return SmallVector<int64_t>{1, sliding.getWindow()};
  return std::nullopt;
}

bool readsSequences(AttentionOp op) {
  return llvm::all_of(ArrayRef<Value>{op.getKeyBegin(), op.getKeyEnd(), op.getPrefix()}, [](Value value) {
    return !value || cast<RankedTensorType>(value.getType()).getElementType().isInteger(64);
  });
}

StringRef getFloatName(Type type) { return type.isF32() ? "f32" : type.isF16() ? "f16" : type.isBF16() ? "bf16" : ""; }

static Choice choose(AttentionOp op) {
  auto pattern = getPatternIntegers(op.getPattern());
  StringRef cache = getFloatName(op.getKey().getType().getElementType());
  if (!pattern || !readsSequences(op) || !isPlainF32(op.getQuery()) || cache.empty())
    return {};
  double softcap = op.getSoftcap() ? op.getSoftcap()->convertToFloat() : 0.0;
  auto layout = dyn_cast_or_null<StateLayoutInterface>(op.getKey().getType().getEncoding());
  if (layout && layout.getIntegerBits() != 0)
    cache = layout.getIntegerBits() == 8 ? "i8" : "u4";
  StringRef form = layout ? "blocks." : op.getBf16Products() && cache == "f32" ? "pairs." : "";
  return {("hone.attention." + form + cache).str(),
          {op.getQuery(), op.getKey(), op.getValue(), op.getBias(), op.getAlibi(), op.getSinks(), op.getKeyBegin(),
           op.getKeyEnd(), op.getPrefix()},
          *pattern,
          {op.getScale().convertToFloat(), softcap}};
}

bool hasKernel(AttentionOp op) { return !choose(op).name.empty(); }

static Choice choose(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return choose(attention);
  if (auto linear = dyn_cast<LinearOp>(op); linear && arePlainF32({linear.getX(), linear.getBias()}))
    return choose(linear);
  if (!arePlainF32(op->getOperands()) || !arePlainF32(op->getResults()))
    return {};
  return llvm::TypeSwitch<Operation *, Choice>(op)
      .Case<LayerNormOp, MatmulOp, RmsNormOp, RopeOp>([](auto typed) { return choose(typed); })
      .Default([](Operation *) { return Choice(); });
}

/// What a kernel takes for an operand that is not given: a scalar, which it does not read.
static Value createAbsent(OpBuilder &b, Location loc) {
  return tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>(), b.getF32Type());
}

Value createKernel(OpBuilder &b, Location loc, Value call, const Choice &choice, Value destination) {
  SmallVector<Value> inputs;
  for (Value input : choice.inputs) {
    if (!input)
      inputs.push_back(createAbsent(b, loc));
    else if (isa_and_nonnull<EncodingInterface>(cast<RankedTensorType>(input.getType()).getEncoding()))
      llvm::append_range(inputs, PlanesOp::create(b, loc, input).getPlanes());
    else
      inputs.push_back(input);
  }
  auto kernel =
      hrt::KernelOp::create(b, loc, destination.getType(), call, b.getStringAttr(choice.name), inputs, destination,
                            b.getDenseI64ArrayAttr(choice.ints), b.getDenseF64ArrayAttr(choice.floats));
  return kernel.getResult(0);
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

/// Memory for a product of x and a weight.
static Value createRows(OpBuilder &b, Location loc, Value x, Value weight) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, x);
  sizes.back() = b.getIndexAttr(cast<RankedTensorType>(weight.getType()).getDimSize(0));
  return tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
}

Value createProduct(OpBuilder &b, Location loc, Value call, const Choice &choice) {
  return createKernel(b, loc, call, choice, createRows(b, loc, choice.inputs[0], choice.inputs[1]));
}

/// How many operands a weight in `panels` is, absent ones included.
static int64_t countPlanes(hrt::PanelsAttr panels) {
  int64_t ofElements = panels.getAffine() ? 3 : panels.getCodebook() ? 2 : 1;
  return ofElements + (panels.getSparse() ? DenseSparseAttr::kSparsePlanes : 0) + (panels.getNm() ? 1 : 0);
}

/// Adds a weight in `panels`, or the absence of one, and its bias.
static void addWeight(Choice &choice, hrt::PanelsAttr panels, Value weight, Value bias) {
  AffineAttr affine = panels.getAffine();
  if (!weight)
    choice.inputs.append(countPlanes(panels), Value());
  else
    choice.inputs.push_back(weight);
  if (weight && affine && !affine.getHasZeros())
    choice.inputs.push_back(/*zeros=*/Value());
  choice.inputs.push_back(bias);
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
static Choice choosePackedMlp(const Block &block) {
  hrt::PanelsAttr panels = getPanels(block.up.weight);
  AffineAttr affine = panels.getAffine();
  bool isAlike = haveSameKernel(panels, getPanels(block.down.weight)) &&
                 (!block.gate.weight || haveSameKernel(panels, getPanels(block.gate.weight)));
  if (!isAlike || (affine && !affine.getAtLeast()) ||
      !arePlainF32({block.x, block.gate.bias, block.up.bias, block.down.bias}))
    return {};
  int64_t width = cast<RankedTensorType>(block.up.weight.getType()).getDimSize(0);
  StringRef kernel = panels.getNm() ? "hone.sparse_mlp." : "hone.packed_mlp.";
  Choice choice{(kernel + panels.getKernelSuffix()).str(), {block.x}, {block.activation, width}, {}};
  for (const Block::Layer &layer : {block.gate, block.up, block.down})
    addWeight(choice, panels, layer.weight, layer.bias);
  choice.inputs.push_back(/*residual=*/Value());
  if (affine)
    choice.ints.append({affine.getGroup(), affine.getActivations(), /*at_least=*/1});
  return choice;
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
  if (Choice whole = choosePackedMlp(block); !whole.name.empty())
    return createKernel(b, loc, call, whole, createRows(b, loc, block.x, block.down.weight));
  auto create = [&](Value x, const Block::Layer &layer, Value factor, int64_t activation) {
    return createProduct(b, loc, call, choosePackedLinear(x, layer.weight, layer.bias, factor, activation));
  };
  Value gate = isGated ? create(block.x, block.gate, {}, block.activation) : Value();
  Value hidden = create(block.x, block.up, gate, isGated ? 0 : block.activation);
  return create(hidden, block.down, {}, 0);
}

//===----------------------------------------------------------------------===//
// Experts: two calls
//===----------------------------------------------------------------------===//

/// A call of the kernel `layer` of experts for weights in `panels`, with the kernel's own attributes.
static Choice makeExpertChoice(StringRef layer, hrt::PanelsAttr panels, ArrayRef<Value> inputs,
                               ArrayRef<int64_t> ints) {
  StringRef kernel = panels.getNm() ? "hone.sparse_" : "hone.";
  Choice choice{(kernel + layer + "." + panels.getKernelSuffix()).str(),
                SmallVector<Value>(inputs),
                SmallVector<int64_t>(ints),
                {}};
  if (AffineAttr affine = panels.getAffine())
    choice.ints.append(
        {affine.getGroup(), affine.getActivations() ? affine.getActivations() : 16, affine.getAtLeast()});
  return choice;
}

/// The block, if its weights are in panels, else null.
static Value createMoe(OpBuilder &b, MoeOp op, Value call) {
  hrt::PanelsAttr up = getPanels(op.getUp()), down = getPanels(op.getDown());
  if (!up || !down || op.getHiddenSize() == 0 || (op.getGate() && !haveSameKernel(getPanels(op.getGate()), up)) ||
      !arePlainF32({op.getX(), op.getExpertWeights(), op.getUpBias(), op.getDownBias(), op.getGateBias()}))
    return {};
  Location loc = op.getLoc();
  int64_t fused = op.getFused() ? static_cast<int64_t>(*op.getFused()) + 1 : 0, experts = op.getExpertCount();
  Choice first = makeExpertChoice("expert_hidden", up, {op.getX(), op.getExpertIds()},
                                  {getNumber(op.getActivation()), fused, experts});
  addWeight(first, up, op.getUp(), op.getUpBias());
  addWeight(first, up, op.getGate(), op.getGateBias());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, op.getExpertIds());
  sizes.push_back(b.getIndexAttr(op.getHiddenSize()));
  Value hidden = createKernel(b, loc, call, first, tensor::EmptyOp::create(b, loc, sizes, b.getF32Type()));
  Choice second = makeExpertChoice("expert_sum", down, {hidden, op.getExpertIds(), op.getExpertWeights()}, experts);
  addWeight(second, down, op.getDown(), op.getDownBias());
  return createKernel(b, loc, call, second,
                      tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, op.getX()), b.getF32Type()));
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

static FailureOr<Value> createDestination(OpBuilder &b, Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto reify = dyn_cast<ReifyRankedShapedTypeOpInterface>(op);
  ReifiedRankedShapedTypeDims shapes;
  if (!reify || failed(reify.reifyResultShapes(b, shapes)))
    return failure();
  Value init = tensor::EmptyOp::create(b, op->getLoc(), shapes[0], type.getElementType());
  if (init.getType() != type)
    init = tensor::CastOp::create(b, op->getLoc(), type, init);
  return init;
}

/// What `op` is as calls of kernels, or null if it has none.
static Value createCalls(OpBuilder &b, Operation *op, Value call) {
  if (auto moe = dyn_cast<MoeOp>(op))
    return createMoe(b, moe, call);
  if (Value mlp = createMlp(b, op, call))
    return mlp;
  return createCall(b, op, call, choose(op));
}

int64_t selectKernels(func::FuncOp entry) { return replaceByKernels(entry, createCalls); }

Value createCall(OpBuilder &b, Operation *op, Value call, const Choice &choice) {
  if (choice.name.empty())
    return {};
  FailureOr<Value> destination = createDestination(b, op);
  return succeeded(destination) ? createKernel(b, op->getLoc(), call, choice, *destination) : Value();
}

int64_t replaceByKernels(func::FuncOp entry, CallBuilder build) {
  int64_t count = 0;
  Value call = entry.getArgument(0);
  entry.walk([&](Operation *op) {
    if (op->getNumResults() != 1)
      return;
    OpBuilder b(op);
    Value result = build(b, op, call);
    if (!result)
      return;
    if (result.getType() != op->getResult(0).getType())
      result = tensor::CastOp::create(b, op->getLoc(), op->getResult(0).getType(), result);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
    ++count;
  });
  return count;
}

} // namespace hone
