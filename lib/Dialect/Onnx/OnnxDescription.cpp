// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Descriptions are the metadata of a fused location below the location's name: loc("node"(fused<{node = "…"}>["file"])).

#include "hone/Dialect/Onnx/OnnxDescription.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

using namespace mlir;

namespace hone::onnxir {

namespace {

/// Keeps the first complaint of protobuf's parser, which would go to stderr otherwise.
class FirstError : public google::protobuf::io::ErrorCollector {
public:
  void AddError(int line, int column, const std::string &text) override {
    if (message.empty())
      message = text;
  }
  std::string message;
};

/// Deeper than any type that a file declares, and far from the end of the stack.
constexpr int kRecursionLimit = 200;

} // namespace

StringAttr printMessage(const google::protobuf::Message &message, MLIRContext *context) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.SetHideUnknownFields(true);
  std::string text;
  printer.PrintToString(message, &text);
  return StringAttr::get(context, StringRef(text).rtrim());
}

LogicalResult parseMessage(StringRef text, google::protobuf::Message &message, Location loc) {
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(kRecursionLimit);
  if (parser.MergeFromString(text.str(), &message))
    return success();
  return emitError(loc) << "expected the text of a " << message.GetDescriptor()->name() << ", but got '"
                        << text.take_front(60) << "': " << errors.message;
}

Location describe(StringAttr name, Location file, StringRef key, StringAttr text) {
  MLIRContext *context = name.getContext();
  auto description = DictionaryAttr::get(context, NamedAttribute(StringAttr::get(context, key), text));
  return NameLoc::get(name, FusedLoc::get({file}, description, context));
}

static FusedLocWith<DictionaryAttr> getDescribed(Location loc) {
  auto name = dyn_cast<NameLoc>(loc);
  return name ? dyn_cast<FusedLocWith<DictionaryAttr>>(name.getChildLoc()) : FusedLocWith<DictionaryAttr>();
}

StringAttr getDescription(Location loc, StringRef key) {
  auto described = getDescribed(loc);
  return described ? described.getMetadata().getAs<StringAttr>(key) : StringAttr();
}

static Location withoutDescription(Location loc) {
  auto described = getDescribed(loc);
  if (!described)
    return loc;
  return NameLoc::get(cast<NameLoc>(loc).getName(), described.getLocations().front());
}

Location redescribe(Location loc, StringRef key, StringAttr text) {
  Location bare = withoutDescription(loc);
  if (auto name = dyn_cast<NameLoc>(bare))
    return describe(name.getName(), name.getChildLoc(), key, text);
  return describe(StringAttr::get(loc.getContext(), ""), bare, key, text);
}

Location nameBeside(Location loc, StringRef ending) {
  auto name = dyn_cast<NameLoc>(withoutDescription(loc));
  return name ? NameLoc::get(StringAttr::get(loc.getContext(), name.getName().getValue() + ending), name.getChildLoc())
              : loc;
}

void dropDescriptions(ModuleOp module) {
  module->removeAttr(kModelAttr);
  module.walk([](Operation *op) {
    op->setLoc(withoutDescription(op->getLoc()));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.empty() ? Block::BlockArgListType() : region.getArguments())
        argument.setLoc(withoutDescription(argument.getLoc()));
  });
}

} // namespace hone::onnxir
