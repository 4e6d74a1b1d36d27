// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts that saturate: on the wire before the parser makes messages of bytes, and over the calls of functions before libonnx
// inlines them.

#include "ModelSize.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <map>

using namespace mlir;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using ::onnx::FunctionProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

namespace hone {

//===----------------------------------------------------------------------===//
// On the wire
//===----------------------------------------------------------------------===//

namespace {

/// Walks messages as the parser would, and makes nothing.
class MessageCount {
public:
  explicit MessageCount(const Limits &limits) : limits(limits) {}

  /// False at the end of what is a protobuf, or of what is allowed.
  bool visit(CodedInputStream &stream, const Descriptor *type, int depth = 0) {
    while (uint32_t tag = stream.ReadTag()) {
      bool isNested = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      const FieldDescriptor *field = type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (!isNested || !field || field->type() != FieldDescriptor::TYPE_MESSAGE) {
        messages += isNested && field && field->is_repeated() && field->type() != FieldDescriptor::TYPE_BYTES;
        if (!WireFormatLite::SkipField(&stream, tag) || isTooMuch())
          return false;
        continue;
      }
      ++messages;
      nodes += field->message_type() == NodeProto::descriptor();
      int size = 0;
      if (isTooMuch() || depth >= kMostDepth || !stream.ReadVarintSizeAsInt(&size))
        return false;
      auto limit = stream.PushLimit(size);
      if (!visit(stream, field->message_type(), depth + 1))
        return false;
      stream.PopLimit(limit);
    }
    return stream.ConsumedEntireMessage();
  }

  uint64_t mostMessages() const { return llvm::SaturatingMultiply<uint64_t>(limits.nodes, kMessagesPerNode); }
  bool hasTooManyNodes() const { return nodes > static_cast<uint64_t>(limits.nodes); }
  bool hasTooManyMessages() const { return messages > mostMessages(); }

private:
  /// More than the parser goes down.
  static constexpr int kMostDepth = 256;

  bool isTooMuch() const { return hasTooManyNodes() || hasTooManyMessages(); }

  const Limits &limits;
  uint64_t nodes = 0, messages = 0;
};

} // namespace

static InFlightDiagnostic reportNodes(const Limits &limits, Location loc) {
  return emitError(loc) << "unsupported number of nodes; supported: " << limits.nodes
                        << ", or as many as --max-nodes says";
}

LogicalResult checkMessages(StringRef bytes, const Limits &limits, Location loc) {
  CodedInputStream stream(reinterpret_cast<const uint8_t *>(bytes.data()), static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  MessageCount count(limits);
  count.visit(stream, ModelProto::descriptor());
  if (count.hasTooManyNodes())
    return reportNodes(limits, loc);
  if (count.hasTooManyMessages())
    return emitError(loc) << "unsupported number of messages in the file; supported: " << count.mostMessages()
                          << ", which --max-nodes raises";
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {

using FunctionName = std::pair<StringRef, StringRef>; // domain and name

/// What is in the place of a call, or of a graph.
struct Size {
  uint64_t nodes = 0, bytes = 0;

  void add(const Size &other, uint64_t times = 1) {
    nodes = llvm::SaturatingMultiplyAdd(times, other.nodes, nodes);
    bytes = llvm::SaturatingMultiplyAdd(times, other.bytes, bytes);
  }
};

/// The sizes of functions with all that they call, callees first.
class InlinedSizes {
public:
  explicit InlinedSizes(const ModelProto &model) {
    for (const FunctionProto &function : model.functions())
      bodies[{function.domain(), function.name()}].function = &function;
    for (auto &[name, body] : bodies)
      collect(body.function->node(), body);
    SmallVector<Body *> ready;
    for (auto &[name, body] : bodies) {
      body.waiting = body.calls.size();
      for (auto &[callee, times] : body.calls)
        bodies.find(callee)->second.callers.push_back(&body);
      if (body.calls.empty())
        ready.push_back(&body);
    }
    // Functions in a cycle are never ready, and keep the size of their own nodes.
    while (!ready.empty()) {
      Body *body = ready.pop_back_val();
      addCallees(*body);
      for (Body *caller : body->callers)
        if (--caller->waiting == 0)
          ready.push_back(caller);
    }
  }

  Size measure(const GraphProto &graph) const {
    Body main;
    collect(graph.node(), main);
    addCallees(main);
    return main.size;
  }

private:
  struct Body {
    const FunctionProto *function = nullptr;
    Size size;
    std::map<FunctionName, uint64_t> calls;
    SmallVector<Body *> callers;
    size_t waiting = 0;
  };

  template <typename Nodes>
  void collect(const Nodes &nodes, Body &body) const {
    for (const NodeProto &node : nodes) {
      FunctionName name(node.domain(), node.op_type());
      bool isCall = bodies.count(name);
      if (isCall)
        ++body.calls[name];
      body.size.add({isCall ? 0u : 1u, isCall ? 0u : node.ByteSizeLong()});
      for (const auto &attribute : node.attribute()) {
        if (attribute.has_g())
          collect(attribute.g().node(), body);
        for (const GraphProto &graph : attribute.graphs())
          collect(graph.node(), body);
      }
    }
  }

  void addCallees(Body &body) const {
    for (auto &[callee, times] : body.calls)
      body.size.add(bodies.find(callee)->second.size, times);
  }

  std::map<FunctionName, Body> bodies;
};

} // namespace

LogicalResult checkInlinedSize(const ModelProto &model, const Limits &limits, Location loc) {
  Size size = InlinedSizes(model).measure(model.graph());
  if (size.nodes > static_cast<uint64_t>(limits.nodes))
    return reportNodes(limits, loc) << ", but with functions inlined the model has "
                                    << (size.nodes == UINT64_MAX ? std::string("2^64 or more")
                                                                 : std::to_string(size.nodes));
  constexpr uint64_t mostBytes = (uint64_t(1) << 31) - 1;
  if (size.bytes > mostBytes)
    return emitError(loc) << "expected the model to have at most " << mostBytes
                          << " bytes with functions inlined, but it has more";
  return success();
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

static LogicalResult checkRank(int64_t rank, StringRef name, Location loc) {
  if (rank <= kMaxRank)
    return success();
  return emitError(loc) << "unsupported rank " << rank << " of '" << name << "'; supported: up to " << kMaxRank;
}

template <typename Tensors>
static LogicalResult checkTensorRanks(const Tensors &tensors, Location loc) {
  return success(llvm::all_of(
      tensors, [&](const auto &tensor) { return succeeded(checkRank(tensor.dims_size(), tensor.name(), loc)); }));
}

template <typename Values>
static LogicalResult checkValueRanks(const Values &values, Location loc) {
  return success(llvm::all_of(values, [&](const ::onnx::ValueInfoProto &value) {
    return succeeded(checkRank(value.type().tensor_type().shape().dim_size(), value.name(), loc));
  }));
}

static LogicalResult checkRanks(const GraphProto &graph, Location loc) {
  if (failed(checkTensorRanks(graph.initializer(), loc)) || failed(checkValueRanks(graph.input(), loc)) ||
      failed(checkValueRanks(graph.output(), loc)) || failed(checkValueRanks(graph.value_info(), loc)))
    return failure();
  for (const auto &sparse : graph.sparse_initializer())
    if (failed(checkRank(sparse.dims_size(), sparse.values().name(), loc)))
      return failure();
  for (const NodeProto &node : graph.node())
    for (const auto &attribute : node.attribute())
      if ((attribute.has_t() && failed(checkRank(attribute.t().dims_size(), node.name(), loc))) ||
          (attribute.has_g() && failed(checkRanks(attribute.g(), loc))))
        return failure();
  return success();
}

LogicalResult checkRanks(const ModelProto &model, Location loc) { return checkRanks(model.graph(), loc); }

} // namespace hone
