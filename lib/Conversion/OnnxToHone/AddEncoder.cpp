// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// @encode(inputs of the encoder) -> what the decoder reads of it: the keys and values of cross-attention, computed once for a text.

#include "StateSignature.h"
#include "TakeModel.h"

#include "hone/Conversion/Encoder.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hone {
namespace {

using raising::getInputName;
using raising::getOutputName;

/// A cache's name without what says whether it is an input or an output: `past_key_values.0.encoder.key` and
/// `present.0.encoder.key` are the same.
StringRef getCacheName(StringRef name) {
  for (StringRef prefix : {"past_key_values", "present_key_values", "past", "present"})
    if (name.consume_front(prefix))
      break;
  return name;
}

/// Puts the models into one module.
class EncoderAdder {
public:
  EncoderAdder(ModuleOp module, ModuleOp encoder, ModuleOp cross)
      : module(module), encoder(encoder), cross(cross), main(raising::getMain(module)) {}
  LogicalResult run();

private:
  LogicalResult check();

  BlockArgument findMask();
  LogicalResult findHidden();
  Value makeToken(OpBuilder &b, Location loc, BlockArgument tokens);
  LogicalResult checkStandIns();
  LogicalResult inlineCross(func::FuncOp source);
  Value findContext(StringRef name);
  LogicalResult returnContext();

  ModuleOp module, encoder, cross;
  func::FuncOp main, encode;
  Value hidden;                // what the encoder gives
  llvm::StringMap<Value> keys; // outputs of the decoder that are cross-attention's, by their cache's names
};

} // namespace

/// Names the input of the decoder that an operation of @encode stands for.
static constexpr llvm::StringLiteral kStandInAttr = "hone.stand_in";

static bool isOfEncoder(StringRef name) { return name.contains("encoder") || name.contains("cross"); }

LogicalResult EncoderAdder::check() {
  for (ModuleOp model : {module, encoder, cross})
    if (model && failed(raising::checkGraph(model)))
      return failure();
  if (module.lookupSymbol(kEncode))
    return module.emitError() << "expected a decoder without a symbol @" << kEncode << " for --encoder";
  if (llvm::none_of(main.getArguments(), [](BlockArgument input) { return isOfEncoder(getInputName(input)); }))
    return module.emitError() << "expected a decoder that reads what an encoder gave, an input with 'encoder' or "
                                 "'cross' in its name, but there is none";
  return success();
}

/// The hidden states are the first floats of three dimensions.
LogicalResult EncoderAdder::findHidden() {
  for (Value value : encode.getBody().front().getTerminator()->getOperands())
    if (raising::isFloat(value) && raising::getRank(value) == 3) {
      hidden = value;
      return success();
    }
  return encode.emitError() << "expected an encoder with hidden states, floats of three dimensions, but there are none";
}

/// The encoder's mask, or null.
BlockArgument EncoderAdder::findMask() {
  for (BlockArgument input : encode.getArguments())
    if (getInputName(input).contains("attention_mask"))
      return input;
  return {};
}

/// Stands for the decoder's tokens, one for each sequence: keys and values of cross-attention may be shaped by their number.
Value EncoderAdder::makeToken(OpBuilder &b, Location loc, BlockArgument tokens) {
  raising::OnnxBuilder onnx(b, loc);
  Type i64 = b.getI64Type();
  Value sizes = onnx.create("Shape", hidden, RankedTensorType::get({3}, i64));
  Value batch = onnx.create("Gather", {sizes, onnx.integers(int64_t(0))}, RankedTensorType::get({1}, i64));
  Value shape =
      onnx.create("Concat", {batch, onnx.integers(1)}, RankedTensorType::get({2}, i64), onnx.integerAttr("axis", 0));
  Value zero = onnx.cast(onnx.integer(0), raising::getRankedType(tokens).getElementType());
  return onnx.create("Expand", {zero, shape}, tokens.getType());
}

/// Whether elements of `value` reach the end of its function, and not only its shape.
static bool areElementsRead(Value value) {
  SmallVector<Value> open{value};
  llvm::DenseSet<Value> seen{value};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (raising::isOp(user, "Shape"))
        continue;
      while (!isa<func::FuncOp>(user->getParentOp())) // what a region reads, the operator does
        user = user->getParentOp();
      if (user->hasTrait<OpTrait::IsTerminator>())
        return true;
      for (Value result : user->getResults())
        if (seen.insert(result).second)
          open.push_back(result);
    }
  return false;
}

/// Of what the encoder does not give, nothing is read but the number of sequences.
LogicalResult EncoderAdder::checkStandIns() {
  for (Operation &op : encode.getBody().front()) {
    auto name = dyn_cast_or_null<StringAttr>(op.removeAttr(kStandInAttr));
    bool isRead = name && (isa<onnxir::NoValueOp>(op) ? !op.use_empty() : areElementsRead(op.getResult(0)));
    if (isRead)
      return encode.emitError()
             << "expected keys and values of cross-attention that follow from the encoder alone, but "
                "they read '"
             << name.getValue() << "'";
  }
  return success();
}

/// Lets @encode compute what a decoder without a past gives of cross-attention.
LogicalResult EncoderAdder::inlineCross(func::FuncOp source) {
  Block &body = encode.getBody().front();
  OpBuilder b(body.getTerminator());
  IRMapping mapping;
  for (BlockArgument input : source.getArguments()) {
    StringRef name = getInputName(input);
    Value given;
    if (name.contains("hidden_states"))
      given = hidden;
    else if (isOfEncoder(name) && name.contains("mask"))
      given = findMask();
    bool isToken = !given && raising::getRank(input) == 2 && name.contains("input_ids");
    if (isToken)
      given = makeToken(b, source.getLoc(), input);
    else if (!given)
      given = onnxir::NoValueOp::create(b, source.getLoc(), b.getNoneType());
    if (Operation *made = given.getDefiningOp(); made && given != hidden)
      made->setAttr(kStandInAttr, b.getStringAttr(name));
    mapping.map(input, given);
  }
  Block &from = source.getBody().front();
  for (Operation &op : from.without_terminator())
    b.clone(op, mapping);
  for (auto [i, value] : llvm::enumerate(from.getTerminator()->getOperands()))
    if (StringRef name = getOutputName(source, i); isOfEncoder(name))
      keys[getCacheName(name)] = mapping.lookupOrDefault(value);
  if (failed(returnContext()))
    return failure();
  raising::eraseDead(encode);
  return checkStandIns();
}

/// What the decoder's input `name` is given, or null.
Value EncoderAdder::findContext(StringRef name) {
  if (auto found = keys.find(getCacheName(name)); found != keys.end())
    return found->second;
  if (name.contains("mask"))
    return findMask();
  for (auto [i, value] : llvm::enumerate(encode.getBody().front().getTerminator()->getOperands()))
    if (getCacheName(getOutputName(encode, i)) == getCacheName(name))
      return value;
  return name.contains("hidden_states") ? hidden : Value();
}

LogicalResult EncoderAdder::returnContext() {
  OpBuilder b(module.getContext());
  SmallVector<Value> values;
  SmallVector<Attribute> attrs;
  for (BlockArgument input : main.getArguments()) {
    StringRef name = getInputName(input);
    bool isHidden = name.contains("hidden_states") && !keys.empty(); // which the keys and values are made of
    if (!isOfEncoder(name) || isHidden)
      continue;
    Value value = findContext(name);
    if (!value)
      return encode.emitError() << "expected an encoder that gives the decoder's '" << name
                                << "', but it does not; --cross-attention names the decoder without a past, which "
                                   "computes keys and values";
    values.push_back(value);
    attrs.push_back(main.getArgAttrDict(input.getArgNumber()));
  }
  encode.getBody().front().getTerminator()->setOperands(values);
  encode.setFunctionType(b.getFunctionType(encode.getArgumentTypes(), ValueRange(values).getTypes()));
  encode.setAllResultAttrs(attrs);
  return success();
}

LogicalResult EncoderAdder::run() {
  if (failed(check()))
    return failure();
  FailureOr<func::FuncOp> taken = raising::takeModel(module, encoder, "encoder.", kEncode);
  if (failed(taken))
    return failure();
  encode = *taken;
  if (failed(findHidden()))
    return failure();
  func::FuncOp source = main;
  if (cross) {
    FailureOr<func::FuncOp> other = raising::takeModel(module, cross, "cross.", "cross");
    if (failed(other))
      return failure();
    source = *other;
  }
  func::FuncOp branch = raising::specializeToNoPast(source);
  LogicalResult result = inlineCross(branch ? branch : source);
  if (branch)
    branch.erase();
  if (cross)
    source.erase();
  raising::eraseUnusedParams(module);
  return result;
}

LogicalResult addEncoder(ModuleOp decoder, ModuleOp encoder, ModuleOp cross) {
  return EncoderAdder(decoder, encoder, cross).run();
}

} // namespace hone
