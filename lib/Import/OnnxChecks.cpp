// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks before libonnx's, which stops at the first fault and names the place of its own code.

#include "OnnxChecks.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "onnx/defs/schema.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"

#include <set>

using namespace mlir;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

namespace hone {

static Location getLocation(StringRef node, Location file) {
  return node.empty() ? file : NameLoc::get(StringAttr::get(file.getContext(), node), file);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

namespace {

class OperatorCheck {
public:
  OperatorCheck(const ModelProto &model, Location file) : file(file) {
    for (const auto &function : model.functions())
      functions.emplace(function.domain(), function.name());
  }

  template <typename Opsets>
  void setOpsets(const Opsets &imports) {
    versions.clear();
    for (const auto &opset : imports)
      versions[opset.domain()] = opset.version();
  }

  template <typename Nodes>
  void visit(const Nodes &nodes) {
    for (const NodeProto &node : nodes) {
      if (!isKnown(node)) {
        Unknown &entry = unknown[{node.domain(), node.op_type()}];
        entry.first = entry.count++ == 0 ? &node : entry.first;
      }
      for (const auto &attribute : node.attribute())
        if (attribute.has_g())
          visit(attribute.g().node());
    }
  }

  LogicalResult report() {
    for (auto &[operation, entry] : unknown) {
      auto &[domain, name] = operation;
      InFlightDiagnostic diagnostic = emitError(getLocation(entry.first->name(), file))
                                      << "unsupported operator '" << name << "'";
      if (!domain.empty())
        diagnostic << " of domain '" << domain << "'";
      if (auto version = versions.find(domain); version != versions.end())
        diagnostic << " at opset " << version->second;
      diagnostic << " (" << entry.count << (entry.count == 1 ? " node)" : " nodes)");
    }
    return success(unknown.empty());
  }

private:
  struct Unknown {
    const NodeProto *first = nullptr;
    int64_t count = 0;
  };

  bool isKnown(const NodeProto &node) {
    if (functions.count({node.domain(), node.op_type()}))
      return true;
    auto version = versions.find(node.domain());
    return version != versions.end() &&
           ::onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(version->second), node.domain());
  }

  Location file;
  std::set<std::pair<std::string, std::string>> functions;
  std::map<std::string, int64_t> versions;
  llvm::MapVector<std::pair<std::string, std::string>, Unknown, std::map<std::pair<std::string, std::string>, unsigned>>
      unknown;
};

} // namespace

static LogicalResult checkOperators(const ModelProto &model, Location file) {
  OperatorCheck check(model, file);
  for (const auto &function : model.functions()) {
    check.setOpsets(function.opset_import());
    check.visit(function.node());
  }
  check.setOpsets(model.opset_import());
  check.visit(model.graph().node());
  return check.report();
}

//===----------------------------------------------------------------------===//
// Files and names
//===----------------------------------------------------------------------===//

/// libonnx looks at where the path leads, but says of a file that is not there that it is not regular.
static LogicalResult checkExternalFile(const TensorProto &tensor, StringRef path, Location file) {
  if (tensor.data_location() != TensorProto::EXTERNAL)
    return success();
  for (const auto &entry : tensor.external_data()) {
    SmallString<128> full(llvm::sys::path::parent_path(path));
    llvm::sys::path::append(full, entry.value());
    bool isRelative = entry.key() == "location" && !entry.value().empty() && !StringRef(entry.value()).contains("..") &&
                      !llvm::sys::path::is_absolute(entry.value());
    if (isRelative && !llvm::sys::fs::exists(full))
      return emitError(getLocation(tensor.name(), file)) << "cannot read external data '" << full << "' of tensor '"
                                                         << tensor.name() << "': No such file or directory";
  }
  return success();
}

static LogicalResult checkExternalFiles(const GraphProto &graph, StringRef path, Location file) {
  for (const TensorProto &tensor : graph.initializer())
    if (failed(checkExternalFile(tensor, path, file)))
      return failure();
  for (const NodeProto &node : graph.node())
    for (const auto &attribute : node.attribute())
      if ((attribute.has_t() && failed(checkExternalFile(attribute.t(), path, file))) ||
          (attribute.has_g() && failed(checkExternalFiles(attribute.g(), path, file))))
        return failure();
  return success();
}

LogicalResult checkModel(const ModelProto &model, StringRef path, Location file) {
  llvm::StringSet<> outputs;
  for (const auto &output : model.graph().output())
    if (!outputs.insert(output.name()).second)
      return emitError(file) << "expected outputs to have different names, but '" << output.name()
                             << "' is that of two";
  if (failed(checkOperators(model, file)))
    return failure();
  return checkExternalFiles(model.graph(), path, file);
}

//===----------------------------------------------------------------------===//
// What libonnx says
//===----------------------------------------------------------------------===//

/// One line of text: libonnx's messages span several, and begin with places in its sources.
static std::string flatten(StringRef message) {
  SmallVector<StringRef> lines, parts;
  message.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    line = line.trim();
    if (line.starts_with("[") && line.contains("] "))
      line = line.split("] ").second;
    if (!line.empty())
      parts.push_back(line);
  }
  return llvm::join(parts, " ");
}

/// Takes what matches `pattern` out of `text`, and gives its first group, the name of a node.
static std::string takeNode(std::string &text, StringRef pattern) {
  SmallVector<StringRef> groups;
  if (!llvm::Regex(pattern).match(text, &groups))
    return "";
  std::string node = groups[1].str();
  size_t begin = groups[0].begin() - text.data();
  text.erase(begin, groups[0].size());
  return node;
}

void reportLibraryError(StringRef message, StringRef doing, Location file) {
  std::string text = flatten(message), node;
  for (StringRef pattern :
       {" ==> Context: Bad node spec for node\\. Name: (.*) OpType: [^ ]*$", " of node: name: (.*) OpType: [^ ]*",
        "\\(op_type:[^,)]*, node name: ([^)]*)\\): ", "\\(op_type:([^,)]*)\\): ", "()Inference error\\(s\\): ",
        "()\\[(Shape|Type)InferenceError\\] "})
    if (std::string found = takeNode(text, pattern); node.empty())
      node = found;
  StringRef first = StringRef(text).split(' ').first;
  bool isWord = first.size() > 1 && llvm::all_of(first.drop_front(), [](char c) { return llvm::isLower(c); });
  if (isWord)
    text[0] = llvm::toLower(text[0]);
  emitError(getLocation(node, file)) << doing << ": " << StringRef(text).rtrim(". ");
}

} // namespace hone
