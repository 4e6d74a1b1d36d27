// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Classifiers of scikit-learn end in ai.onnx.ml.ZipMap, which makes a map from label to probability of each row. Outputs of an artefact
// are tensors.

#include "ZipMaps.h"
#include "SortNodes.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::ValueInfoProto;

namespace hone {

static bool isZipMap(const NodeProto &node) {
  return node.domain() == "ai.onnx.ml" && node.op_type() == "ZipMap" && node.output_size() == 1;
}

/// The labels of the columns, as text.
static SmallVector<std::string> getLabels(const NodeProto &node) {
  SmallVector<std::string> labels;
  for (const AttributeProto &attribute : node.attribute()) {
    if (attribute.name() == "classlabels_int64s")
      llvm::append_range(labels,
                         llvm::map_range(attribute.ints(), [](int64_t label) { return std::to_string(label); }));
    if (attribute.name() == "classlabels_strings")
      llvm::append_range(labels, attribute.strings());
  }
  return labels;
}

void replaceZipMaps(GraphProto &graph, Location loc) {
  if (llvm::none_of(graph.node(), isZipMap))
    return;
  llvm::StringSet<> reads;
  for (const NodeProto &node : graph.node())
    addNamesRead(node, reads);
  for (NodeProto &node : *graph.mutable_node()) {
    if (!isZipMap(node) || reads.contains(node.output(0)))
      continue;
    auto output = llvm::find_if(*graph.mutable_output(),
                                [&](const ValueInfoProto &value) { return value.name() == node.output(0); });
    if (output == graph.mutable_output()->end())
      continue;
    SmallVector<std::string> labels = getLabels(node);
    emitWarning(loc) << "ZipMap: output '" << node.output(0)
                     << "' becomes a tensor with a column for each label: " << llvm::join(labels, ", ");
    auto &type = *output->mutable_type()->mutable_tensor_type(); // in place of that of a sequence
    type.set_elem_type(TensorProto::FLOAT);
    type.mutable_shape()->add_dim();
    type.mutable_shape()->add_dim()->set_dim_value(static_cast<int64_t>(labels.size()));
    node.set_op_type("Identity");
    node.clear_domain();
    node.clear_attribute();
  }
}

} // namespace hone
