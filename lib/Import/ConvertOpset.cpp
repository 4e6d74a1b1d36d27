// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversion of old opsets by libonnx, which reports by throwing: this file is compiled with exceptions, and none leaves it.

#include "ConvertOpset.h"

#include "mlir/IR/Diagnostics.h"
#include "onnx/defs/schema.h"
#include "onnx/version_converter/convert.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

namespace hone {

static ::onnx::OperatorSetIdProto *findDefaultOpset(ModelProto &model) {
  for (auto &opset : *model.mutable_opset_import())
    if (opset.domain().empty())
      return &opset;
  return nullptr;
}

/// A node of the default domain whose operator means something else in opset `version` than in opset `target`, or null.
static const NodeProto *findChanged(const GraphProto &graph, int64_t version, int64_t target) {
  for (const NodeProto &node : graph.node()) {
    auto getSchema = [&](int64_t opset) {
      return ::onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset), node.domain());
    };
    const ::onnx::OpSchema *then = getSchema(version), *now = getSchema(target);
    bool same = then && now && then->SinceVersion() == now->SinceVersion() && !now->Deprecated();
    if (node.domain().empty() && !same)
      return &node;
    for (const auto &attribute : node.attribute())
      if (attribute.has_g())
        if (const NodeProto *changed = findChanged(attribute.g(), version, target))
          return changed;
  }
  return nullptr;
}

static void setText(NodeProto &node, const char *name, const char *value) {
  auto *attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(::onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

/// Until opset 10 samples lay at multiples of the inverse scale. libonnx 1.23 leaves Resize without the attributes that say so from
/// opset 11 on, whose defaults are others.
static void placeSamples(GraphProto &graph) {
  for (NodeProto &node : *graph.mutable_node()) {
    if (node.domain().empty() && node.op_type() == "Resize") {
      setText(node, "coordinate_transformation_mode", "asymmetric");
      setText(node, "nearest_mode", "floor");
    }
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        placeSamples(*attribute.mutable_g());
  }
}

/// Whether the inputs have the sizes that they had: an adapter that drops a dimension of them makes another model.
static bool hasSameInputs(const GraphProto &a, const GraphProto &b) {
  auto isSameSize = [](const auto &x, const auto &y) {
    return x.dim_value() == y.dim_value() && x.dim_param() == y.dim_param();
  };
  auto isSame = [&](const auto &x, const auto &y) {
    const auto &from = x.type().tensor_type().shape().dim(), &to = y.type().tensor_type().shape().dim();
    return std::equal(from.begin(), from.end(), to.begin(), to.end(), isSameSize);
  };
  return std::equal(a.input().begin(), a.input().end(), b.input().begin(), b.input().end(), isSame);
}

/// What libonnx says without the place of its own code.
static StringRef shorten(StringRef message) {
  size_t begin = message.rfind("failed: ");
  return (begin == StringRef::npos ? message : message.drop_front(begin + StringRef("failed: ").size()))
      .take_until([](char c) { return c == '\n'; })
      .rtrim(". ");
}

LogicalResult convertOpset(ModelProto &model, int64_t target, llvm::function_ref<void(ModelProto &)> inferShapes,
                           Location loc) {
  ::onnx::OperatorSetIdProto *opset = findDefaultOpset(model);
  if (!opset || opset->version() >= target)
    return success();
  const NodeProto *changed = findChanged(model.graph(), opset->version(), target);
  if (!changed) {
    opset->set_version(target);
    return success();
  }
  std::string name = changed->op_type();
  try {
    ModelProto inferred = model;
    inferShapes(inferred);
    ModelProto converted = ::onnx::version_conversion::ConvertVersion(model, static_cast<int>(target));
    if (!hasSameInputs(model.graph(), converted.graph()))
      throw std::runtime_error("the inputs of the model would have other sizes");
    if (opset->version() < kOldestOpset)
      placeSamples(*converted.mutable_graph());
    *converted.mutable_metadata_props() = model.metadata_props();
    model = std::move(converted);
  } catch (const std::exception &error) {
    return emitError(loc) << "cannot convert operator '" << name << "' of opset " << opset->version() << " to opset "
                          << target << (target == kOldestOpset ? ", the oldest that is supported: " : ": ")
                          << shorten(error.what());
  }
  return success();
}

} // namespace hone
