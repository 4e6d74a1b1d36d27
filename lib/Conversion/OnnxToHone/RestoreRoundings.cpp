// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roundings that were set aside, after the operations whose results are still there.

#include "Rounding.h"

#include "hone/Conversion/Passes.h"

namespace hone {
#define GEN_PASS_DEF_RESTOREROUNDINGS
#include "hone/Conversion/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone::raising {

static constexpr llvm::StringLiteral kPass = "hone-restore-roundings";

namespace {
class RoundingRestorer {
public:
  explicit RoundingRestorer(func::FuncOp function) : function(function) {}
  void run();
  unsigned restored = 0, repeated = 0;

private:
  void restore(OpResult result, DictionaryAttr rounding);
  bool isRounded(Operation *op, DictionaryAttr rounding);
  Value buildOperand(OnnxBuilder &onnx, Attribute described);

  func::FuncOp function;
  llvm::DenseMap<Value, DictionaryAttr> rounded;
};
} // namespace

Value RoundingRestorer::buildOperand(OnnxBuilder &onnx, Attribute described) {
  if (auto value = dyn_cast<DenseElementsAttr>(described))
    return onnx.constant(value);
  auto read = cast<ArrayAttr>(described);
  return GetParamOp::create(onnx.b, onnx.loc, cast<TypeAttr>(read[1]).getValue(),
                            cast<FlatSymbolRefAttr>(read[0]).getValue());
}

/// Whether what `op` gives are elements that have the rounding already: with the same scale, rounding them again changes none.
bool RoundingRestorer::isRounded(Operation *op, DictionaryAttr rounding) {
  if (!movesElements(op))
    return false;
  // f32 holds each code times the scale closely enough to find the code again.
  constexpr unsigned kMostBits = 16;
  auto codes = rounding.getAs<TypeAttr>("codes").getValue();
  for (Attribute operand : rounding.getAs<ArrayAttr>("operands")) {
    auto elements = dyn_cast<DenseElementsAttr>(operand);
    if (!elements || elements.getNumElements() != 1)
      return false;
  }
  unsigned moved = isOp(op, "Concat") ? op->getNumOperands() : 1;
  return getElementTypeOrSelf(op->getResult(0)).isF32() && codes.isInteger() &&
         codes.getIntOrFloatBitWidth() <= kMostBits &&
         llvm::all_of(op->getOperands().take_front(moved),
                      [&](Value operand) { return rounded.lookup(operand) == rounding; });
}

void RoundingRestorer::restore(OpResult result, DictionaryAttr rounding) {
  Operation *op = result.getOwner();
  setRounding(result, {});
  if (isRounded(op, rounding)) {
    rounded[result] = rounding;
    ++repeated;
    return;
  }
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  OnnxBuilder onnx(b, result.getLoc());
  SmallVector<Value> operands{result};
  for (Attribute described : rounding.getAs<ArrayAttr>("operands"))
    operands.push_back(buildOperand(onnx, described));
  auto type = cast<TensorType>(result.getType());
  Value codes = onnx.create("QuantizeLinear", operands, type.clone(rounding.getAs<TypeAttr>("codes").getValue()),
                            rounding.getAs<DictionaryAttr>("quantize").getValue());
  Operation *quantize = codes.getDefiningOp();
  operands[0] = codes;
  Value floats =
      onnx.create("DequantizeLinear", operands, type, rounding.getAs<DictionaryAttr>("dequantize").getValue());
  result.replaceAllUsesExcept(floats, quantize);
  rounded[floats] = rounding;
  ++restored;
}

void RoundingRestorer::run() {
  SmallVector<OpResult> results;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (OpResult result : op->getResults())
      if (getRounding(result))
        results.push_back(result);
  });
  for (OpResult result : results)
    restore(result, getRounding(result));
}

/// Those that were set aside, and are neither restored nor repeated, were of values that no operation gives any more.
static int64_t reportDropped(func::FuncOp function, int64_t kept) {
  auto deferred = function->getAttrOfType<IntegerAttr>(kRoundings);
  if (!deferred)
    return 0;
  function->removeAttr(kRoundings);
  int64_t dropped = std::max<int64_t>(0, deferred.getInt() - kept);
  if (dropped)
    remarkRaised(function.getLoc(), kPass, "Roundings")
        << "left out " << std::to_string(dropped) << " of " << std::to_string(deferred.getInt())
        << " roundings of activations: what they round is inside of operations that compute it in floats";
  return dropped;
}

namespace {
struct RestoreRoundings : impl::RestoreRoundingsBase<RestoreRoundings> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      RoundingRestorer restorer(function);
      restorer.run();
      numRestored += restorer.restored;
      numRepeated += restorer.repeated;
      numDropped += reportDropped(function, restorer.restored + restorer.repeated);
    }
  }
};
} // namespace

} // namespace hone::raising
