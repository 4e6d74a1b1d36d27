// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `hone inspect`: what a model holds, collected as JSON and printed as it is or as a page of text.

#include "Command.h"
#include "Compiler.h"
#include "Masks.h"
#include "ModelFolder.h"
#include "hone/Conversion/Passes.h"
#include "hone/Dialect/Hone/HoneDialect.h"
#include "hone/Dialect/Hone/HoneOps.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/io/printable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
namespace json = llvm::json;

namespace hone {

namespace {
struct InspectOptions {
  explicit InspectOptions(OptionSet &set) {
    set.addInput(input, "MODEL.onnx|.mlir|.mlirbc|.hone|FOLDER");
    set.add("json", json, "Print JSON");
    masks.declare(set);
    reading.declare(set);
  }

  std::string input;
  bool json = false;
  MaskOptions masks;
  ReadOptions reading;
};
} // namespace

static std::string getText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string getText(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  return text;
}

/// Number, bytes and element types of the parameters.
static json::Object describeParameters(ModuleOp module) {
  int64_t count = 0, elements = 0, bytes = 0;
  std::map<std::string, int64_t> byType;
  for (auto param : module.getOps<ParamOp>()) {
    RankedTensorType type = param.getTensorType();
    ++count;
    elements += type.getNumElements();
    bytes += getStorageBytes(type).value_or(0);
    std::string stored = type.getEncoding() ? getText(type.getEncoding()) : getText(type.getElementType());
    byType[stored] += getStorageBytes(type).value_or(0);
  }
  json::Object encodings;
  for (const auto &[name, size] : byType)
    encodings[name] = size;
  return json::Object{{"count", count}, {"elements", elements}, {"bytes", bytes}, {"encodings", std::move(encodings)}};
}

static json::Array describeValues(TypeRange types, llvm::function_ref<DictionaryAttr(unsigned)> getAttrs) {
  json::Array values;
  for (auto [i, type] : llvm::enumerate(types)) {
    DictionaryAttr attrs = getAttrs(i);
    auto name = attrs ? attrs.getAs<StringAttr>(onnxir::kNameAttr) : StringAttr();
    values.push_back(json::Object{{"name", name ? name.getValue() : ""}, {"type", getText(type)}});
  }
  return values;
}

/// A size, or null where calls decide it.
static json::Value describeSize(Value tensor, int64_t dim) {
  int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
  return ShapedType::isDynamic(size) ? json::Value(nullptr) : json::Value(size);
}

static json::Object describeAttention(AttentionOp op) {
  return json::Object{{"pattern", getText(op.getPattern())},
                      {"heads", describeSize(op.getQuery(), 1)},
                      {"kv_heads", describeSize(op.getKey(), 1)},
                      {"head_size", describeSize(op.getQuery(), 3)},
                      {"bias", bool(op.getBias())},
                      {"alibi", bool(op.getAlibi())},
                      {"sinks", bool(op.getSinks())}};
}

static json::Object describeFunction(func::FuncOp function) {
  llvm::MapVector<StringRef, int64_t> raised, left;
  json::Array attention;
  function.walk([&](Operation *op) {
    if (onnxir::isOnnxOp(op) && !isa<onnxir::YieldOp, onnxir::NoValueOp>(op))
      ++left[op->getName().getStringRef()];
    else if (isa<HoneDialect>(op->getDialect()) && !isa<GetParamOp>(op))
      ++raised[op->getName().getStringRef()];
    if (auto layer = dyn_cast<AttentionOp>(op))
      attention.push_back(describeAttention(layer));
  });
  auto count = [](const llvm::MapVector<StringRef, int64_t> &ops) {
    json::Object object;
    for (const auto &[name, number] : ops)
      object[name] = number;
    return object;
  };
  return json::Object{
      {"name", function.getName()},
      {"inputs", describeValues(function.getArgumentTypes(), [&](unsigned i) { return function.getArgAttrDict(i); })},
      {"outputs", describeValues(function.getResultTypes(), [&](unsigned i) { return function.getResultAttrDict(i); })},
      {"raised", count(raised)},
      {"not_raised", count(left)},
      {"attention", std::move(attention)}};
}

static json::Object describe(ModuleOp module) {
  json::Array functions, slots;
  for (auto function : module.getOps<func::FuncOp>())
    functions.push_back(describeFunction(function));
  for (auto state : module.getOps<StateOp>())
    for (Attribute slot : state.getSlots())
      slots.push_back(getText(slot));
  return json::Object{
      {"parameters", describeParameters(module)}, {"functions", std::move(functions)}, {"state", std::move(slots)}};
}

//===----------------------------------------------------------------------===//
// As text
//===----------------------------------------------------------------------===//

static void printCounts(llvm::raw_ostream &os, StringRef title, const json::Object &counts) {
  if (counts.empty())
    return;
  std::vector<std::pair<int64_t, std::string>> rows;
  for (const auto &[name, count] : counts)
    rows.emplace_back(-*count.getAsInteger(), name.str());
  llvm::sort(rows);
  os << "  " << title << '\n';
  for (const auto &[count, name] : rows)
    os << llvm::formatv("    {0,6} {1}\n", -count, io::printable(name));
}

static void printValues(llvm::raw_ostream &os, StringRef title, const json::Array &values) {
  os << "  " << title << '\n';
  for (const json::Value &value : values)
    os << "    " << io::printable(*value.getAsObject()->getString("name")) << " : "
       << *value.getAsObject()->getString("type") << '\n';
}

static void printFunction(llvm::raw_ostream &os, const json::Object &function) {
  os << '@' << io::printable(*function.getString("name")) << '\n';
  printValues(os, "inputs", *function.getArray("inputs"));
  printValues(os, "outputs", *function.getArray("outputs"));
  printCounts(os, "recognised", *function.getObject("raised"));
  const json::Array &attention = *function.getArray("attention");
  if (!attention.empty())
    os << "  attention layers\n";
  for (auto [i, layer] : llvm::enumerate(attention)) {
    const json::Object &row = *layer.getAsObject();
    auto size = [&](StringRef key) {
      auto known = row.getInteger(key);
      return known ? std::to_string(*known) : "?";
    };
    os << llvm::formatv("    {0,6} {1}, {2} heads over {3}, size {4}{5}{6}{7}\n", i, *row.getString("pattern"),
                        size("heads"), size("kv_heads"), size("head_size"),
                        *row.getBoolean("bias") ? ", with a bias" : "", *row.getBoolean("alibi") ? ", with ALiBi" : "",
                        *row.getBoolean("sinks") ? ", with sinks" : "");
  }
  printCounts(os, "left to generated code", *function.getObject("not_raised"));
}

static void print(llvm::raw_ostream &os, const json::Object &model) {
  const json::Object &params = *model.getObject("parameters");
  os << llvm::formatv("parameters: {0}, {1} elements, {2} bytes\n", *params.getInteger("count"),
                      *params.getInteger("elements"), *params.getInteger("bytes"));
  for (const auto &[name, bytes] : *params.getObject("encodings"))
    os << llvm::formatv("  {0}: {1} bytes\n", name.str(), *bytes.getAsInteger());
  for (const json::Value &function : *model.getArray("functions"))
    printFunction(os, *function.getAsObject());
  const json::Array &state = *model.getArray("state");
  if (!state.empty())
    os << "state: " << state.size() << " slots\n";
  for (const json::Value &slot : state)
    os << "  " << io::printable(*slot.getAsString()) << '\n';
}

/// Blocks with a fused gate_up weight are recognised when that is split.
static LogicalResult splitGateUp(ModuleOp module) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.addPass(createSplitGateUp({.describes = true}));
  return pm.run(module);
}

/// Prints what is in the model at `path`, after raising, to standard output.
static LogicalResult inspectModel(StringRef path, bool asJson, const ReadOptions &options, MLIRContext *context) {
  OwningOpRef<ModuleOp> module = readModel(path, context, options);
  if (!module || failed(runPhases(*module, "raise")) || failed(splitGateUp(*module)))
    return failure();
  json::Object model = describe(*module);
  if (asJson)
    llvm::outs() << llvm::formatv("{0:2}\n", json::Value(std::move(model)));
  else
    print(llvm::outs(), model);
  return success();
}

static int runInspect(InspectOptions &options) {
  if (failed(findModel(options.input)))
    return 1;
  options.reading.limitProcess();
  return withContext(options.input, [&](MLIRContext &context) {
    return options.masks.masks ? inspectMasks(options.input, options.masks, options.reading, &context)
                               : inspectModel(options.input, options.json, options.reading, &context);
  });
}

/// The runtime inspects artefacts, but for masks, which need encodings.
static bool isForRuntime(ArrayRef<std::string> words) {
  auto isArtefact = [](const std::string &word) {
    return (llvm::sys::fs::is_directory(word) && !isModelFolder(word)) || StringRef(word).ends_with(".hone");
  };
  auto asksForMasks = [](StringRef word) { return word == "--masks" || word == "-masks"; };
  return llvm::any_of(words, isArtefact) && llvm::none_of(words, asksForMasks);
}

extern const Command kInspectCommand =
    makeCommand<InspectOptions, runInspect>("inspect", "what is in a model or an artefact", isForRuntime);

} // namespace hone
