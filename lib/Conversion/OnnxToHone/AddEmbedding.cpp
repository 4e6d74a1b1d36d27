// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Token ids in place of `inputs_embeds`. Features of an encoder take the place of embeddings by ids beyond those of any vocabulary, so that
// where a feature goes does not depend on how a text is cut into calls.

#include "StateSignature.h"
#include "TakeModel.h"

#include "hone/Conversion/Embedding.h"
#include "hone/Conversion/Encoder.h"
#include "hone/io/features.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hone {
namespace {

using raising::getInputName;
using raising::getOutputName;
using raising::OnnxBuilder;

constexpr llvm::StringLiteral kEmbeds = "inputs_embeds", kTokens = "input_ids";

class EmbeddingAdder {
public:
  EmbeddingAdder(ModuleOp module, ModuleOp embedding, ModuleOp encoder)
      : module(module), embedding(embedding), encoder(encoder), main(raising::getMain(module)) {}
  FailureOr<std::string> run();

private:
  LogicalResult check();
  LogicalResult takeEmbedding();
  BlockArgument addInput(unsigned at, StringRef name, RankedTensorType type, ArrayRef<StringRef> dims);
  BlockArgument addTokens();
  void embed(OpBuilder &b, Value tokens);
  LogicalResult takeEncoder();
  FailureOr<unsigned> chooseFeatures(func::FuncOp encode);
  Value isFeature(OnnxBuilder &onnx, Value tokens);
  Value insertFeatures(OnnxBuilder &onnx, Value tokens, Value stands, Value embedded);

  ModuleOp module, embedding, encoder;
  func::FuncOp main, lookup;
  BlockArgument embeds;                           // of @main
  BlockArgument features;                         // of @main, or null
  RankedTensorType rows;                          // of the features
  llvm::SmallDenseMap<unsigned, unsigned> inputs; // of @main, by the outputs of the embedding that they are
};

} // namespace

LogicalResult EmbeddingAdder::check() {
  for (ModuleOp model : {module, embedding, encoder})
    if (model && failed(raising::checkGraph(model)))
      return failure();
  for (BlockArgument input : main.getArguments())
    if (getInputName(input) == kEmbeds && raising::isFloat(input) && raising::getRank(input) == 3)
      embeds = input;
  if (!embeds)
    return module.emitError() << "expected a decoder that reads '" << kEmbeds
                              << "', floats of three dimensions, for --embedding, but there are none";
  return success();
}

LogicalResult EmbeddingAdder::takeEmbedding() {
  FailureOr<func::FuncOp> taken = raising::takeModel(module, embedding, "embedding.", "embedding");
  if (failed(taken))
    return failure();
  lookup = *taken;
  auto refuse = [&](const Twine &but) {
    return lookup.emitError()
           << "expected an embedding model that reads token ids, integers of two dimensions, and nothing "
              "else, but "
           << but;
  };
  if (lookup.getNumArguments() != 1)
    return refuse("it has " + Twine(lookup.getNumArguments()) + " inputs");
  auto tokens = raising::getRankedType(lookup.getArgument(0));
  if (!tokens || tokens.getRank() != 2 || !tokens.getElementType().isSignlessInteger())
    return refuse("it reads '" + getInputName(lookup.getArgument(0)) + "'");
  ValueRange outputs = lookup.getBody().front().getTerminator()->getOperands();
  for (BlockArgument input : main.getArguments())
    for (unsigned output = 0; output < outputs.size(); ++output)
      if (getOutputName(lookup, output) == getInputName(input))
        inputs[output] = input.getArgNumber();
  if (inputs.empty() && outputs.size() == 1)
    inputs[0] = embeds.getArgNumber();
  bool isEmbedded = false;
  for (auto [output, input] : inputs) {
    bool isSame = raising::isFloat(outputs[output]) &&
                  raising::getRank(outputs[output]) == raising::getRank(main.getArgument(input));
    if (!isSame)
      return lookup.emitError() << "expected '" << getInputName(main.getArgument(input))
                                << "' as the decoder reads it, but got " << outputs[output].getType();
    isEmbedded |= input == embeds.getArgNumber();
  }
  if (!isEmbedded)
    return lookup.emitError() << "expected an embedding model that gives '" << kEmbeds << "', but it does not";
  return success();
}

/// Gives @main another input.
BlockArgument EmbeddingAdder::addInput(unsigned at, StringRef name, RankedTensorType type, ArrayRef<StringRef> dims) {
  OpBuilder b(module.getContext());
  auto attrs = b.getDictionaryAttr({b.getNamedAttr(onnxir::kNameAttr, b.getStringAttr(name)),
                                    b.getNamedAttr(onnxir::kDimsAttr, b.getStrArrayAttr(dims))});
  (void)main.insertArgument(at, type, attrs, main.getLoc()); // fails for functions without a body alone
  return main.getArgument(at);
}

/// The token ids of @main: an input that it has, or a new one with the sizes of the embeddings.
BlockArgument EmbeddingAdder::addTokens() {
  auto type = raising::getRankedType(lookup.getArgument(0));
  for (BlockArgument input : main.getArguments())
    if (getInputName(input) == kTokens && input.getType() == type)
      return input;
  SmallVector<StringRef> dims(2);
  if (auto names = main.getArgAttrOfType<ArrayAttr>(embeds.getArgNumber(), onnxir::kDimsAttr))
    for (auto [dim, name] : llvm::zip(dims, names.getAsValueRange<StringAttr>()))
      dim = name;
  auto sizes = raising::getRankedType(embeds).getShape().take_front(2);
  return addInput(0, kTokens, RankedTensorType::get(sizes, type.getElementType()), dims);
}

/// Which of the ids stand for features.
Value EmbeddingAdder::isFeature(OnnxBuilder &onnx, Value tokens) {
  auto type = cast<RankedTensorType>(tokens.getType());
  Value first = onnx.cast(onnx.integer(io::kFirstFeatureId), type.getElementType());
  Value isBelow = onnx.create("Less", {tokens, first}, RankedTensorType::get(type.getShape(), onnx.b.getI1Type()));
  return onnx.create("Not", isBelow, isBelow.getType());
}

/// `embedded` with rows of the features for the ids that stand for them, those where `stands` is true.
Value EmbeddingAdder::insertFeatures(OnnxBuilder &onnx, Value tokens, Value stands, Value embedded) {
  auto type = cast<RankedTensorType>(tokens.getType());
  auto embeddedType = cast<RankedTensorType>(embedded.getType());
  Value zero = onnx.cast(onnx.integer(0), type.getElementType());
  Value first = onnx.cast(onnx.integer(io::kFirstFeatureId), type.getElementType());
  Value row = onnx.create("Where", {stands, onnx.create("Sub", {tokens, first}, type), zero}, type);
  auto rowsType =
      RankedTensorType::get({type.getDimSize(0), type.getDimSize(1), rows.getDimSize(1)}, rows.getElementType());
  Value found = onnx.create("Gather", {features, row}, rowsType, onnx.integerAttr("axis", 0));
  return onnx.create("Where", {onnx.unsqueeze(stands, {2}), onnx.cast(found, embeddedType.getElementType()), embedded},
                     embeddedType);
}

/// Puts the embedding at the beginning of @main.
void EmbeddingAdder::embed(OpBuilder &b, Value tokens) {
  OnnxBuilder onnx(b, lookup.getLoc());
  Value known = tokens, stands; // stands: which ids stand for features
  if (features) {
    Value zero = onnx.cast(onnx.integer(0), raising::getRankedType(tokens).getElementType());
    stands = isFeature(onnx, tokens);
    known = onnx.create("Where", {stands, zero, tokens}, tokens.getType());
  }
  IRMapping mapping;
  mapping.map(lookup.getArgument(0), known);
  Block &body = lookup.getBody().front();
  for (Operation &op : body.without_terminator())
    b.clone(op, mapping);
  // Inputs are taken away from the last one to the first, which keeps the numbers of those before.
  SmallVector<std::pair<BlockArgument, Value>> given;
  for (auto [output, input] : inputs)
    given.push_back({main.getArgument(input), mapping.lookup(body.getTerminator()->getOperand(output))});
  llvm::sort(given, [](auto a, auto b) { return a.first.getArgNumber() > b.first.getArgNumber(); });
  for (auto [input, value] : given) {
    Type element = raising::getRankedType(input).getElementType();
    if (input == embeds && features)
      value = insertFeatures(onnx, tokens, stands, value);
    input.replaceAllUsesWith(onnx.cast(value, element));
    (void)main.eraseArgument(input.getArgNumber());
  }
}

/// The output that has rows as long as embeddings: the first one, but rather one with 'features' or 'embeds' in its name.
FailureOr<unsigned> EmbeddingAdder::chooseFeatures(func::FuncOp encode) {
  int64_t size = raising::getLastSize(embeds);
  std::optional<unsigned> chosen;
  bool isNamed = false;
  for (auto [i, value] : llvm::enumerate(encode.getBody().front().getTerminator()->getOperands())) {
    int64_t rank = raising::getRank(value), last = raising::getLastSize(value);
    bool fits = raising::isFloat(value) && (rank == 2 || rank == 3) &&
                (last == size || ShapedType::isDynamic(last) || ShapedType::isDynamic(size));
    StringRef name = getOutputName(encode, i);
    bool saysSo = name.contains("features") || name.contains("embeds");
    if (fits && (!chosen || (saysSo && !isNamed))) {
      chosen = i;
      isNamed = saysSo;
    }
  }
  if (!chosen)
    return encode.emitError()
           << "expected an encoder with features for the decoder, floats of two or three dimensions of which "
              "the last is "
           << size << ", but there are none";
  return *chosen;
}

/// @encode, and the input of @main for what it gives.
LogicalResult EmbeddingAdder::takeEncoder() {
  if (module.lookupSymbol(kEncode))
    return module.emitError() << "expected a decoder without a symbol @" << kEncode << " for --encoder";
  FailureOr<func::FuncOp> encode = raising::takeModel(module, encoder, "encoder.", kEncode);
  if (failed(encode))
    return failure();
  FailureOr<unsigned> chosen = chooseFeatures(*encode);
  if (failed(chosen))
    return failure();
  std::string name = getOutputName(*encode, *chosen).str();
  if (llvm::any_of(main.getArguments(), [&](BlockArgument input) { return getInputName(input) == name; }))
    return encode->emitError() << "expected features with a name that no input of the decoder has, but got '" << name
                               << "'";
  Operation *end = encode->getBody().front().getTerminator();
  OpBuilder b(end);
  OnnxBuilder onnx(b, end->getLoc());
  Value value = end->getOperand(*chosen);
  int64_t size = raising::getLastSize(embeds);
  if (ShapedType::isDynamic(size))
    size = raising::getLastSize(value);
  if (ShapedType::isDynamic(size))
    return encode->emitError() << "expected features, or embeddings, of a size that is known";
  rows = RankedTensorType::get({ShapedType::kDynamic, size}, raising::getRankedType(value).getElementType());
  end->setOperands(onnx.reshape(value, {-1, size}, rows.getShape()));
  features = addInput(main.getNumArguments(), name, rows, {"features", ""});
  encode->setFunctionType(b.getFunctionType(encode->getArgumentTypes(), ValueRange(end->getOperands()).getTypes()));
  encode->setAllResultAttrs(ArrayRef<DictionaryAttr>(main.getArgAttrDict(features.getArgNumber())));
  raising::eraseDead(*encode);
  return success();
}

FailureOr<std::string> EmbeddingAdder::run() {
  if (failed(check()) || failed(takeEmbedding()) || (encoder && failed(takeEncoder())))
    return failure();
  std::string name = features ? getInputName(features).str() : "";
  unsigned before = main.getNumArguments();
  BlockArgument tokens = addTokens();
  if (main.getNumArguments() != before) // the new one is the first
    for (auto &[output, input] : inputs)
      ++input;
  OpBuilder b = OpBuilder::atBlockBegin(&main.getBody().front());
  embed(b, tokens);
  lookup.erase();
  raising::eraseUnusedParams(module);
  return name;
}

FailureOr<std::string> addEmbedding(ModuleOp decoder, ModuleOp embedding, ModuleOp encoder) {
  return EmbeddingAdder(decoder, embedding, encoder).run();
}

} // namespace hone
