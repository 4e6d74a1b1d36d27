// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hone-measure-selection: entries that say how far attention over selected blocks is from attention over all keys.

#include "BlockLists.h"

#include "hone/Dialect/Hone/AttentionThresholds.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Transforms/DecomposedParts.h"
#include "hone/Transforms/ScoredLayers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace hone {
#define GEN_PASS_DEF_MEASURESELECTION
#include "hone/Transforms/Passes.h.inc"
} // namespace hone

using namespace mlir;

namespace hone {
namespace {

struct MeasureSelection : impl::MeasureSelectionBase<MeasureSelection> {
  using MeasureSelectionBase::MeasureSelectionBase;

  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    SmallVector<ScoredLayer> layers;
    if (forward && !forward.getArgumentTypes().empty() && isa<KvType>(forward.getArgumentTypes().back()))
      layers = findScoredLayers(forward);
    if (layers.empty()) {
      getOperation().emitError() << "nothing to measure: no attention of the model is causal and over all keys";
      return signalPassFailure();
    }
    addOutputs(forward, layers);
    addErrors(forward, layers);
  }

private:
  static void addOutputs(func::FuncOp forward, ArrayRef<ScoredLayer> layers);
  void addErrors(func::FuncOp forward, ArrayRef<ScoredLayer> layers);
  SmallVector<Value> buildErrors(LocBuilder &b, const ScoredLayer &layer, Value state, Value thresholds, Value dense);
};

} // namespace

/// What @selection_errors gives of each layer.
static constexpr llvm::StringLiteral kResults[] = {"difference", "magnitude", "blocks", "lists"};

static StringAttr nameOf(const ScoredLayer &layer, StringRef what) {
  return StringAttr::get(layer.attention->getContext(), what + "." + layer.getName());
}

/// What attention gives over all keys.
void MeasureSelection::addOutputs(func::FuncOp forward, ArrayRef<ScoredLayer> layers) {
  func::FuncOp function = addStateEntry(forward, kAttentionOutputs, {}, [&](LocBuilder &b, auto arguments) {
    SmallVector<Value> outputs;
    for (const ScoredLayer &layer : layers)
      outputs.push_back(AttentionOp::create(b, layer.getParts(b, arguments.back())).getResult());
    return outputs;
  });
  for (auto [i, layer] : llvm::enumerate(layers))
    function.setResultAttr(i, onnxir::kNameAttr, nameOf(layer, "output"));
}

/// Sums for each KV head, and the lists.
SmallVector<Value> MeasureSelection::buildErrors(LocBuilder &b, const ScoredLayer &layer, Value state, Value thresholds,
                                                 Value dense) {
  auto op = AttentionOp::create(b, layer.getParts(b, state));
  SparsifyAttentionOptions options;
  options.sinks = sinks, options.window = window, options.block = block, options.means = true;
  BlockLists blocks(op, options);
  Value lists = blocks.buildMeans(thresholds);
  setLists(op, lists, block, blocks.getQueries());
  enum : int64_t { Head, Batch, Group, Query, Element }; // loops
  OpFoldResult heads = getSize(b, op.getKey(), 1);
  Sizes sizes{heads};
  SmallVector<int64_t> all{Batch, Head, Group, Query, Element};
  Operand of[] = {{expandHeads(b, op.getResult(), 1, heads), all}, {expandHeads(b, dense, 1, heads), all}};
  Value difference = buildReduce(b, Reduction::Sum, sizes, of, [](LocBuilder &at, ValueRange args) -> Value {
    return math::AbsFOp::create(at, arith::SubFOp::create(at, args[0], args[1]));
  });
  Value magnitude = buildReduce(b, Reduction::Sum, sizes, of[1], [](LocBuilder &at, ValueRange args) -> Value {
    return math::AbsFOp::create(at, args[0]);
  });
  Value count =
      buildReduce(b, Reduction::Sum, sizes, {{lists, {1, 0, 2, 3}}}, [](LocBuilder &at, ValueRange args) -> Value {
        Value zero = arith::ConstantOp::create(at, at.getI64IntegerAttr(0));
        Value isListed = arith::CmpIOp::create(at, arith::CmpIPredicate::sge, args[0], zero);
        return arith::SelectOp::create(at, isListed, constantF32(at, 1), constantF32(at, 0));
      });
  return {difference, magnitude, count, lists};
}

/// Thresholds are `[1, Hk, 3]`, since a leading size of inputs is the number of sequences.
void MeasureSelection::addErrors(func::FuncOp forward, ArrayRef<ScoredLayer> layers) {
  SmallVector<Type> inputs;
  for (ScoredLayer layer : layers) {
    int64_t heads = layer.attention.getKey().getType().getDimSize(1);
    auto output = cast<RankedTensorType>(layer.attention.getResult().getType());
    SmallVector<int64_t> shape(output.getShape());
    shape[0] = shape[2] = ShapedType::kDynamic;
    Type f32 = Float32Type::get(&getContext());
    inputs.push_back(RankedTensorType::get({ShapedType::kDynamic, heads, SelectMeansOp::kThresholds}, f32));
    inputs.push_back(RankedTensorType::get(shape, output.getElementType()));
  }
  func::FuncOp function = addStateEntry(forward, kSelectionErrors, inputs, [&](LocBuilder &b, auto arguments) {
    SmallVector<Value> results;
    for (auto [i, layer] : llvm::enumerate(layers)) {
      auto type = cast<RankedTensorType>(inputs[2 * i]);
      SmallVector<OpFoldResult> offsets(3, b.getIndexAttr(0)), strides(3, b.getIndexAttr(1));
      SmallVector<OpFoldResult> sizes{b.getIndexAttr(1), b.getIndexAttr(type.getDimSize(1)),
                                      b.getIndexAttr(type.getDimSize(2))};
      Value thresholds =
          tensor::ExtractSliceOp::create(b, RankedTensorType::get(type.getShape().drop_front(), type.getElementType()),
                                         arguments[2 * i], offsets, sizes, strides);
      llvm::append_range(results, buildErrors(b, layer, arguments.back(), thresholds, arguments[2 * i + 1]));
    }
    return results;
  });
  auto given = forward.getArgAttrOfType<ArrayAttr>(0, onnxir::kDimsAttr);
  auto batch = given && !given.empty() ? dyn_cast<StringAttr>(given[0]) : StringAttr();
  if (!batch || batch.empty())
    batch = StringAttr::get(&getContext(), "batch");
  for (auto [i, layer] : llvm::enumerate(layers)) {
    function.setArgAttr(2 * i, onnxir::kNameAttr, nameOf(layer, "thresholds"));
    function.setArgAttr(2 * i + 1, onnxir::kNameAttr, nameOf(layer, "output"));
    for (size_t number : {2 * i, 2 * i + 1}) {
      SmallVector<Attribute> dims(cast<RankedTensorType>(inputs[number]).getRank(), StringAttr::get(&getContext(), ""));
      dims[0] = batch;
      function.setArgAttr(number, onnxir::kDimsAttr, ArrayAttr::get(&getContext(), dims));
    }
    for (auto [number, what] : llvm::enumerate(kResults))
      function.setResultAttr(std::size(kResults) * i + number, onnxir::kNameAttr, nameOf(layer, what));
  }
}

} // namespace hone
