// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// @embed: the model and its pooling, in ONNX's operators.

#include "StateSignature.h"

#include "hone/Conversion/Pooling.h"

using namespace mlir;

namespace hone {
namespace {

using raising::OnnxBuilder;

/// Vectors of tokens to one of the text.
class PoolingBuilder {
public:
  PoolingBuilder(OpBuilder &b, Location loc, Value tokens, Value mask)
      : b(b), onnx(b, loc), tokens(onnx.cast(tokens, b.getF32Type())), mask(onnx.cast(mask, b.getF32Type())) {}

  Value pool(StringRef pooling) {
    Value kept = mask; // the weight of each token, [batch, sequence]
    if (pooling == "cls")
      return onnx.create("Gather", {tokens, onnx.integer(0)}, getTextType(), onnx.integerAttr("axis", 1));
    if (pooling == "max")
      return poolMax();
    if (pooling == "weightedmean")
      kept = numberTokens();
    if (pooling == "lasttoken") {
      Value last = reduce("ReduceMax", numberTokens(), /*keep=*/true);
      Value isLast = onnx.create("Equal", {numberTokens(), last}, getMaskType(b.getI1Type()));
      return sumWeighted(onnx.cast(isLast, b.getF32Type()));
    }
    Value total = reduce("ReduceSum", kept, /*keep=*/true);
    if (pooling == "mean_sqrt_len_tokens")
      total = onnx.create("Sqrt", total, total.getType());
    Value least = onnx.real(1e-9f);
    return onnx.create("Div", {sumWeighted(kept), onnx.create("Max", {total, least}, total.getType())}, getTextType());
  }

  Value normalize(Value text) {
    Value squares = reduce("ReduceSum", onnx.create("Mul", {text, text}, text.getType()), /*keep=*/true);
    Value norm = onnx.create("Sqrt", squares, squares.getType());
    return onnx.create("Div", {text, onnx.create("Max", {norm, onnx.real(1e-12f)}, norm.getType())}, text.getType());
  }

private:
  RankedTensorType getTextType() {
    auto type = cast<RankedTensorType>(tokens.getType());
    return RankedTensorType::get({type.getDimSize(0), type.getDimSize(2)}, b.getF32Type());
  }
  RankedTensorType getMaskType(Type element) {
    return RankedTensorType::get(cast<RankedTensorType>(mask.getType()).getShape(), element);
  }

  /// Over axis 1. The axes are an operand from opset 13 on of ReduceSum, 18 of ReduceMax.
  Value reduce(StringRef op, Value value, bool keep) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    if (keep)
      shape[1] = 1;
    else
      shape.erase(shape.begin() + 1);
    auto result = RankedTensorType::get(shape, type.getElementType());
    NamedAttribute keepDims = onnx.integerAttr("keepdims", keep);
    int64_t opset = onnxir::getOpsetVersion(b.getInsertionBlock()->getParentOp(), "");
    if (opset != 0 && opset < (op == "ReduceSum" ? 13 : 18))
      return onnx.create(op, value, result, {b.getNamedAttr("axes", b.getDenseI64ArrayAttr(1)), keepDims});
    return onnx.create(op, {value, onnx.integers(1)}, result, keepDims);
  }

  /// The number of each token from 1 on, 0 where it is masked.
  Value numberTokens() {
    Value ones =
        onnx.create("Add", {onnx.create("Mul", {mask, onnx.real(0)}, mask.getType()), onnx.real(1)}, mask.getType());
    Value numbers = onnx.create("CumSum", {ones, onnx.integer(1)}, mask.getType());
    return onnx.create("Mul", {numbers, mask}, mask.getType());
  }

  Value sumWeighted(Value weights) {
    Value products = onnx.create("Mul", {tokens, onnx.unsqueeze(weights, {2})}, tokens.getType());
    return reduce("ReduceSum", products, /*keep=*/false);
  }

  Value poolMax() {
    Value isMasked = onnx.create("Equal", {mask, onnx.real(0)}, getMaskType(b.getI1Type()));
    Value kept = onnx.create("Where", {onnx.unsqueeze(isMasked, {2}), onnx.real(-1e9f), tokens}, tokens.getType());
    return reduce("ReduceMax", kept, /*keep=*/false);
  }

  OpBuilder &b;
  OnnxBuilder onnx;
  Value tokens, mask; // f32 [batch, sequence, size] and [batch, sequence]
};

} // namespace

ArrayRef<StringRef> listPoolings() {
  static constexpr StringRef names[] = {"cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"};
  return names;
}

LogicalResult addPooling(ModuleOp module, StringRef pooling, bool normalizes) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || module.lookupSymbol(kEmbed))
    return module.emitError() << "expected a model with a graph and without a symbol @" << kEmbed << " for --pooling";
  OpBuilder b(main);
  b.setInsertionPointAfter(main);
  auto embed = cast<func::FuncOp>(b.clone(*main));
  embed.setSymName(kEmbed);
  Operation *terminator = embed.getBody().front().getTerminator();
  auto isTokens = [](Value value) { return raising::isFloat(value) && raising::getRank(value) == 3; };
  auto isMask = [](BlockArgument input) {
    return raising::getRank(input) == 2 && raising::getInputName(input).contains("attention_mask");
  };
  auto tokens = llvm::find_if(terminator->getOperands(), isTokens);
  auto mask = llvm::find_if(embed.getArguments(), isMask);
  if (tokens == terminator->getOperands().end() || mask == embed.getArguments().end()) {
    embed.erase();
    return main.emitError() << "expected an encoder with an 'attention_mask' and vectors of tokens, floats [batch, "
                               "sequence, size], for --pooling, but there is none";
  }
  b.setInsertionPoint(terminator);
  PoolingBuilder builder(b, main.getLoc(), *tokens, *mask);
  Value text = builder.pool(pooling);
  if (normalizes)
    text = builder.normalize(text);
  terminator->setOperands(text);
  embed.setFunctionType(b.getFunctionType(embed.getArgumentTypes(), text.getType()));
  NamedAttribute name = b.getNamedAttr(onnxir::kNameAttr, b.getStringAttr("sentence_embedding"));
  embed.setAllResultAttrs(ArrayRef(b.getDictionaryAttr(name)));
  raising::eraseDead(embed);
  return success();
}

} // namespace hone
