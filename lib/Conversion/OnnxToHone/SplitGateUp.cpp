// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-split-gate-up: a fused gate_up projection becomes two products. A weight is split for all that read it or for
// nobody: its bytes are never kept twice.

#include "Activation.h"
#include "Mlp.h"
#include "Rounding.h"

#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/Shards.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

#include <array>
#include <numeric>

namespace hone {
#define GEN_PASS_DEF_SPLITGATEUP
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-split-gate-up";

namespace {

/// A product and the halves of its result, of which one is the gate and the other up.
struct FusedGateUp {
  LinearOp linear;
  std::array<Value, 2> halves;
  Operation *gated; // what the next product reads
};

class GateUpSplitter {
public:
  GateUpSplitter(ModuleOp module, bool describes) : module(module), symbols(module), describes(describes) {}
  /// Splits what it can; fails after an error.
  LogicalResult run();
  unsigned split = 0, mlps = 0;

private:
  std::optional<SmallVector<FusedGateUp>> findProducts(ArrayRef<GetParamOp> reads, bool &isGate);
  std::string findBlocker(ParamOp param, ArrayRef<FusedGateUp> products);
  FailureOr<std::array<ParamOp, 2>> getHalves(ParamOp param);
  LogicalResult splitProduct(const FusedGateUp &product, ArrayRef<ParamOp> weights);
  FailureOr<Value> getBias(OpBuilder &b, Value bias, unsigned half);
  SymbolicAnalysis &getAnalysis(func::FuncOp function);
  void finish();

  ModuleOp module;
  SymbolTable symbols;
  bool describes;
  llvm::DenseMap<Operation *, std::unique_ptr<SymbolicAnalysis>> analyses;
  llvm::SetVector<func::FuncOp> changed;
  llvm::MapVector<ParamOp, std::array<ParamOp, 2>> halves; // of what was split
};

} // namespace

//===----------------------------------------------------------------------===//
// Which products are fused
//===----------------------------------------------------------------------===//

/// Which half of the last dimension of `rows`, of `size`, the slice is, or nothing.
static std::optional<unsigned> matchHalf(Operation *slice, Value rows, int64_t size, SymbolicAnalysis &analysis) {
  if (!isOp(slice, "Slice") || slice->getOperand(0) != rows)
    return std::nullopt;
  SmallVector<int64_t> bounds; // start, end, axis, step
  for (unsigned i : {1u, 2u, 3u, 4u}) {
    Value operand = getOperand(slice, i);
    auto known = operand ? analysis.getConstants(operand) : std::optional(SmallVector<int64_t>{1});
    if (!known || known->size() != 1 || (i == 3 && !operand))
      return std::nullopt;
    bounds.push_back(known->front());
  }
  auto wrap = [&](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size); };
  int64_t begin = wrap(bounds[0]), end = wrap(bounds[1]);
  bool isLast = bounds[2] == -1 || bounds[2] == getRank(rows) - 1;
  if (!isLast || bounds[3] != 1 || end - begin != size / 2 || (begin != 0 && end != size))
    return std::nullopt;
  return begin == 0 ? 0 : 1;
}

/// Whether nothing is computed of `op` but where slices of `rows` begin and end.
static bool bounds(Operation *op, Value rows) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    return onnxir::isOnnxOp(user) && ((isOp(user, "Slice") && user->getOperand(0) == rows) || bounds(user, rows));
  });
}

/// The halves of the last dimension of `rows`, where no other elements of them are read.
static std::optional<std::array<Value, 2>> matchHalves(Value rows, SymbolicAnalysis &analysis) {
  int64_t size = getLastSize(rows);
  std::array<Value, 2> halves;
  if (ShapedType::isDynamic(size) || size % 2 != 0)
    return std::nullopt;
  for (Operation *user : rows.getUsers()) {
    if (isOp(user, "Split") && rows.hasOneUse()) {
      int64_t axis = getInteger(user, "axis", 0);
      bool isHalved = user->getNumResults() == 2 && (axis == -1 || axis == getRank(rows) - 1) &&
                      getLastSize(user->getResult(0)) == size / 2;
      return isHalved ? std::optional(std::array<Value, 2>{user->getResult(0), user->getResult(1)}) : std::nullopt;
    }
    if (isOp(user, "Shape") && bounds(user, rows))
      continue;
    auto half = matchHalf(user, rows, size, analysis);
    if (!half || halves[*half])
      return std::nullopt;
    halves[*half] = user->getResult(0);
  }
  return halves[0] && halves[1] ? std::optional(halves) : std::nullopt;
}

/// What a product multiplies with: `up`, scaled by an activation of `gate`; null where there is none.
static Operation *findGated(Value up, Value gate, SymbolicAnalysis &analysis) {
  for (Operation *user : up.getUsers()) {
    if (!isOp(user, "Mul"))
      continue;
    auto activation = matchActivation(user->getOperand(user->getOperand(0) == up ? 1 : 0), analysis);
    if (activation && activation->source == gate &&
        llvm::any_of(user->getUsers(), [](Operation *down) { return isa<LinearOp>(down); }))
      return user;
  }
  return nullptr;
}

static std::optional<FusedGateUp> matchFusedGateUp(LinearOp linear, SymbolicAnalysis &analysis) {
  auto halves = matchHalves(linear.getResult(), analysis);
  if (!halves)
    return std::nullopt;
  Operation *gated = findGated((*halves)[0], (*halves)[1], analysis);
  gated = gated ? gated : findGated((*halves)[1], (*halves)[0], analysis);
  return gated ? std::optional(FusedGateUp{linear, *halves, gated}) : std::nullopt;
}

void dropGateUpRoundings(func::FuncOp function) {
  SymbolicAnalysis analysis(function);
  function.walk([&](LinearOp linear) {
    auto product = matchFusedGateUp(linear, analysis);
    SmallVector<Value> work;
    if (product)
      work.push_back(product->gated->getResult(0));
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op || !isFloat(value))
        continue;
      setRounding(value, {});
      if (value != linear.getResult() && onnxir::isOnnxOp(op))
        llvm::append_range(work, op->getOperands());
    }
  });
}

SymbolicAnalysis &GateUpSplitter::getAnalysis(func::FuncOp function) {
  auto &analysis = analyses[function];
  if (!analysis)
    analysis = std::make_unique<SymbolicAnalysis>(function);
  return *analysis;
}

/// The products with the weight that `reads` read, or nothing where something else reads it; whether any has a gate in it.
std::optional<SmallVector<FusedGateUp>> GateUpSplitter::findProducts(ArrayRef<GetParamOp> reads, bool &isGate) {
  SmallVector<FusedGateUp> products;
  bool isWhole = false;
  for (GetParamOp read : reads)
    for (OpOperand &use : read->getUses()) {
      auto linear = dyn_cast<LinearOp>(use.getOwner());
      auto product = linear && findWeight(use)
                         ? matchFusedGateUp(linear, getAnalysis(read->getParentOfType<func::FuncOp>()))
                         : std::nullopt;
      isGate |= product.has_value();
      isWhole |= !product;
      if (product)
        products.push_back(*product);
    }
  return isWhole ? std::nullopt : std::optional(std::move(products));
}

static SmallVector<int64_t, 0> listHalf(int64_t outputs, unsigned half) {
  SmallVector<int64_t, 0> indices(outputs / 2);
  std::iota(indices.begin(), indices.end(), half * outputs / 2);
  return indices;
}

/// Whether the bias of `linear` can be split: it is absent, a constant or a parameter.
static bool hasPlainBias(LinearOp linear, const SymbolTable &symbols) {
  Value bias = linear.getBias();
  if (!bias)
    return true;
  if (Operation *constant = getDefiningOp(bias, "Constant"))
    return isa<DenseElementsAttr>(constant->getAttr("value"));
  auto read = bias.getDefiningOp<GetParamOp>();
  auto param = read ? symbols.lookup<ParamOp>(read.getName()) : ParamOp();
  return param && !param.getTensorType().getEncoding() && !param->hasAttr(kShardsAttrName);
}

/// Why `param` cannot be split for `products`, or an empty string.
std::string GateUpSplitter::findBlocker(ParamOp param, ArrayRef<FusedGateUp> products) {
  if (!llvm::all_of(products, [&](const FusedGateUp &product) { return hasPlainBias(product.linear, symbols); }))
    return "its bias is no parameter";
  if (param->hasAttr(kShardsAttrName))
    return "each rank has another part of it";
  int64_t outputs = param.getTensorType().getDimSize(0);
  for (unsigned half : {0u, 1u})
    if (std::string blocker = ParamSlices(param, 0, outputs / 2).getBlocker(listHalf(outputs, half)); !blocker.empty())
      return blocker;
  return "";
}

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

/// The halves of a matrix or row as parameters of their own.
FailureOr<std::array<ParamOp, 2>> GateUpSplitter::getHalves(ParamOp param) {
  if (auto *it = halves.find(param); it != halves.end())
    return it->second;
  int64_t outputs = param.getTensorType().getDimSize(0);
  std::array<ParamOp, 2> made;
  for (unsigned half : {0u, 1u}) {
    auto one = ParamSlices(param, 0, outputs / 2)
                   .create(symbols, param.getSymName() + "." + Twine(half), listHalf(outputs, half), !describes);
    if (failed(one))
      return failure();
    made[half] = *one;
  }
  return halves[param] = made;
}

FailureOr<Value> GateUpSplitter::getBias(OpBuilder &b, Value bias, unsigned half) {
  if (!bias)
    return Value();
  if (Operation *constant = getDefiningOp(bias, "Constant")) {
    auto elements = cast<DenseElementsAttr>(constant->getAttr("value"));
    SmallVector<Attribute> values(elements.getValues<Attribute>());
    auto taken = ArrayRef(values).slice(half * values.size() / 2, values.size() / 2);
    auto type = elements.getType().clone({static_cast<int64_t>(taken.size())});
    return OnnxBuilder(b, bias.getLoc()).constant(DenseElementsAttr::get(type, taken));
  }
  auto made = getHalves(symbols.lookup<ParamOp>(bias.getDefiningOp<GetParamOp>().getName()));
  if (failed(made))
    return failure();
  return GetParamOp::create(b, bias.getLoc(), (*made)[half].getTensorType(), (*made)[half].getSymName()).getResult();
}

LogicalResult GateUpSplitter::splitProduct(const FusedGateUp &product, ArrayRef<ParamOp> weights) {
  LinearOp linear = product.linear;
  OpBuilder b(linear);
  for (unsigned half : {0u, 1u}) {
    ParamOp weight = weights[half];
    FailureOr<Value> bias = getBias(b, linear.getBias(), half);
    if (failed(bias))
      return failure();
    Value rows = GetParamOp::create(b, linear.getLoc(), weight.getTensorType(), weight.getSymName());
    SmallVector<int64_t> shape(linear.getType().getShape());
    shape.back() = weight.getTensorType().getDimSize(0);
    replace(product.halves[half],
            LinearOp::create(b, linear.getLoc(), linear.getType().clone(shape), linear.getX(), rows, *bias));
  }
  remarkRaised(linear.getLoc(), kPass, "Gate") << "is a product of its own";
  changed.insert(linear->getParentOfType<func::FuncOp>());
  return success();
}

LogicalResult GateUpSplitter::run() {
  for (auto &[op, reads] : findReads(module)) {
    auto param = cast<ParamOp>(op);
    bool isGate = false;
    auto products = findProducts(reads, isGate);
    if (!isGate)
      continue;
    std::string blocker = products ? findBlocker(param, *products) : "something reads both halves as one";
    if (!blocker.empty()) {
      remarkMissed(reads.front().getLoc(), kPass, "Gate") << ("stays in one product: " + blocker);
      continue;
    }
    auto weights = getHalves(param);
    if (failed(weights))
      return failure();
    for (const FusedGateUp &product : *products)
      if (failed(splitProduct(product, *weights)))
        return failure();
    ++split;
  }
  finish();
  return success();
}

void GateUpSplitter::finish() {
  analyses.clear();
  for (func::FuncOp function : changed) {
    eraseDead(function);
    mlps += raiseMlps(function);
  }
  for (auto &[param, made] : halves)
    if (SymbolTable::symbolKnownUseEmpty(param, module))
      symbols.erase(param);
}

namespace {
struct SplitGateUp : impl::SplitGateUpBase<SplitGateUp> {
  using SplitGateUpBase::SplitGateUpBase;

  void runOnOperation() override {
    GateUpSplitter splitter(getOperation(), describes);
    if (failed(splitter.run()))
      return signalPassFailure();
    numSplit += splitter.split;
    numMlps += splitter.mlps;
  }
};
} // namespace

} // namespace hone::raising
