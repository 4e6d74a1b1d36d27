// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Feed-forward blocks: two products with an activation between them, or three with a gate. Those of experts are RaiseMoe's.

#include "Activation.h"
#include "Mlp.h"
#include "Moe.h"

#include "hone/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_RAISEMLP
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-raise-mlp";

namespace {

class MlpRaiser {
public:
  explicit MlpRaiser(func::FuncOp function) : function(function), analysis(function) {}
  unsigned run();

private:
  bool raiseGated(LinearOp down);
  bool raisePlain(LinearOp down);

  func::FuncOp function;
  SymbolicAnalysis analysis;
};

} // namespace

/// Whether the rows that a product makes are read only on the way to `hidden`: else the block would compute them twice.
static bool isOnlyUsedFor(Value rows, Value hidden) {
  llvm::SmallPtrSet<Operation *, 16> inside;
  SmallVector<Value> work{hidden};
  constexpr size_t kMaxOperators = 32;
  while (!work.empty() && inside.size() < kMaxOperators) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (value == rows || !op || !onnxir::isOnnxOp(op) || !inside.insert(op).second)
      continue;
    work.append(op->operand_begin(), op->operand_end());
  }
  return llvm::all_of(rows.getUsers(), [&](Operation *user) { return inside.contains(user); });
}

bool MlpRaiser::raiseGated(LinearOp down) {
  Value hidden = skipCasts(down.getX());
  Operation *product = getDefiningOp(hidden, "Mul");
  if (!product || !hidden.hasOneUse())
    return false;
  for (unsigned side : {0u, 1u}) {
    auto up = skipCasts(product->getOperand(1 - side)).getDefiningOp<LinearOp>();
    auto activation = up ? matchActivation(product->getOperand(side), analysis) : std::nullopt;
    auto gate = activation ? activation->source.getDefiningOp<LinearOp>() : LinearOp();
    if (!gate || gate == up || gate.getX() != up.getX() || (activation->bias && gate.getBias()))
      continue;
    if (gate.getWeight().getType().getShape() != up.getWeight().getType().getShape())
      continue;
    if (!isOnlyUsedFor(gate.getResult(), hidden) || !isOnlyUsedFor(up.getResult(), hidden)) {
      remarkMissed(down.getLoc(), kPass, "GatedMlp") << "its gate is used outside of it";
      return false;
    }
    OpBuilder b(down);
    Value bias = activation->bias ? activation->bias : gate.getBias();
    Value block = GatedMlpOp::create(b, down.getLoc(), down.getResult().getType(), gate.getX(), gate.getWeight(),
                                     up.getWeight(), down.getWeight(), bias, up.getBias(), down.getBias(),
                                     ActivationAttr::get(b.getContext(), activation->kind));
    remarkRaised(down.getLoc(), kPass, "GatedMlp") << stringifyActivation(activation->kind);
    replace(down.getResult(), block);
    return true;
  }
  return false;
}

bool MlpRaiser::raisePlain(LinearOp down) {
  Value hidden = skipCasts(down.getX());
  if (!hidden.hasOneUse() || hidden.getDefiningOp<LinearOp>())
    return false;
  auto activation = matchActivation(hidden, analysis);
  auto up = activation ? activation->source.getDefiningOp<LinearOp>() : LinearOp();
  if (!up || (activation->bias && up.getBias()))
    return false;
  if (!isOnlyUsedFor(up.getResult(), hidden)) {
    remarkMissed(down.getLoc(), kPass, "Mlp") << "its hidden rows are used outside of it";
    return false;
  }
  OpBuilder b(down);
  Value bias = activation->bias ? activation->bias : up.getBias();
  Value block = MlpOp::create(b, down.getLoc(), down.getResult().getType(), up.getX(), up.getWeight(), down.getWeight(),
                              bias, down.getBias(), ActivationAttr::get(b.getContext(), activation->kind));
  remarkRaised(down.getLoc(), kPass, "Mlp") << stringifyActivation(activation->kind);
  replace(down.getResult(), block);
  return true;
}

unsigned MlpRaiser::run() {
  SmallVector<LinearOp> products;
  unsigned raised = 0;
  function.walk([&](LinearOp op) { products.push_back(op); });
  for (LinearOp down : products)
    raised += raiseGated(down) || raisePlain(down);
  eraseDead(function);
  return raised;
}

unsigned raiseMlps(func::FuncOp function) { return MlpRaiser(function).run(); }

namespace {
struct RaiseMlp : impl::RaiseMlpBase<RaiseMlp> {
  void runOnOperation() override {
    ExpertWeights experts(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      numMlps += raiseMlps(function) + raiseMoes(function, experts);
      dropGateUpRoundings(function);
    }
    experts.finish();
  }
};
} // namespace

} // namespace hone::raising
