// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads an ONNX file and lets libonnx check it, inline its functions and infer its shapes. libonnx reports by throwing:
// this file is compiled with exceptions, and none leaves it.

#include "OnnxFile.h"
#include "BoundedSchemas.h"
#include "ConvertOpset.h"
#include "ImportTensor.h"
#include "ModelSize.h"
#include "OnnxChecks.h"
#include "SortNodes.h"
#include "ZipMaps.h"

#include "hone/Dialect/Hone/Report.h"
#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/io/file.h"

#include "mlir/IR/Diagnostics.h"
#include "onnx/checker.h"
#include "onnx/inliner/inliner.h"
#include "onnx/shape_inference/implementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

using namespace mlir;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

namespace hone {

namespace {

/// Protocol buffers cannot hold more (developers.google.com/protocol-buffers, encoding limits).
constexpr uint64_t kProtobufLimit = (uint64_t(1) << 31) - 1;
/// Nesting of subgraphs costs a few levels each; real models stay under twenty.
constexpr int kRecursionLimit = 200;

template <typename Function>
bool guarded(Location loc, StringRef doing, Function &&function) {
  try {
    function();
    return true;
  } catch (const std::exception &error) {
    reportLibraryError(error.what(), doing, loc);
  }
  return false;
}

} // namespace

static std::shared_ptr<ModelProto> parse(StringRef path, const Limits &limits, Location loc) {
  auto file = io::MappedFile::open(path.str());
  if (failed(report(loc, file.status())))
    return nullptr;
  uint64_t size = file->size();
  if (size > kProtobufLimit) {
    emitError(loc) << "cannot read '" << path << "': expected at most " << kProtobufLimit << " bytes, but got " << size
                   << "; a protobuf ends at 2 GiB: save the weights as external data";
    return nullptr;
  }
  if (failed(checkMessages(file->text(), limits, loc)))
    return nullptr;
  // Protobuf's own log repeats on stderr what the diagnostic below says.
  google::protobuf::LogSilencer silencer;
  google::protobuf::io::ArrayInputStream stream(file->data(), static_cast<int>(size));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(std::numeric_limits<int>::max());
  coded.SetRecursionLimit(kRecursionLimit);
  auto model = std::make_shared<ModelProto>();
  if (size == 0 || !model->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage() || !model->has_graph()) {
    emitError(loc) << "cannot read '" << path << "': expected an ONNX model, but the " << size
                   << " bytes are not one, or are cut short";
    return nullptr;
  }
  return model;
}

/// onnxruntime's builders write these com.microsoft operators without their domain.
static void giveDomains(GraphProto &graph) {
  static const llvm::StringSet<> kNames = {"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization",
                                           "SkipLayerNormalization"};
  for (NodeProto &node : *graph.mutable_node()) {
    if (node.domain() == "ai.onnx")
      node.clear_domain();
    if (node.domain().empty() && kNames.contains(node.op_type()))
      node.set_domain("com.microsoft");
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        giveDomains(*attribute.mutable_g());
  }
}

/// libonnx infers the shapes of the operator's function without the default of its attribute, and fails.
static void giveAxes(GraphProto &graph) {
  for (NodeProto &node : *graph.mutable_node()) {
    auto isAxes = [](const auto &attribute) { return attribute.name() == "axes"; };
    if (node.domain().empty() && node.op_type() == "MeanVarianceNormalization" &&
        llvm::none_of(node.attribute(), isAxes)) {
      auto &axes = *node.add_attribute();
      axes.set_name("axes");
      axes.set_type(::onnx::AttributeProto::INTS);
      for (int64_t axis : {0, 2, 3})
        axes.add_ints(axis);
    }
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        giveAxes(*attribute.mutable_g());
  }
}

static bool isMicrosoft(const ::onnx::OperatorSetIdProto &opset) { return opset.domain() == "com.microsoft"; }

/// Whether a node of the graph is of the default domain.
static bool usesDefaultDomain(const GraphProto &graph) {
  return llvm::any_of(graph.node(), [](const NodeProto &node) {
    auto isUsing = [](const auto &attribute) { return attribute.has_g() && usesDefaultDomain(attribute.g()); };
    return node.domain().empty() || llvm::any_of(node.attribute(), isUsing);
  });
}

/// Sees to it that operators have schemas: refuses opsets that have none, and adds com.microsoft, and the default domain where nothing
/// is of it.
static LogicalResult normalizeOpsets(ModelProto &model, Location loc) {
  bool microsoft = false;
  int64_t version = 0;
  for (const auto &opset : model.opset_import()) {
    if (opset.domain().empty())
      version = opset.version();
    microsoft |= isMicrosoft(opset);
  }
  int64_t newest = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second;
  int64_t oldest = model.functions_size() == 0 ? 1 : kOldestOpset;
  if (version == 0 && model.functions_size() == 0 && model.graph().node_size() > 0 &&
      !usesDefaultDomain(model.graph())) {
    auto *opset = model.add_opset_import();
    opset->set_domain("");
    opset->set_version(version = newest);
  }
  if (version < oldest || version > newest)
    return emitError(loc) << "unsupported opset " << version << (version ? "" : " (none is imported)")
                          << " of the default domain; supported: " << kOldestOpset << " to " << newest;
  if (!microsoft) {
    auto *opset = model.add_opset_import();
    opset->set_domain("com.microsoft");
    opset->set_version(1);
  }
  return success();
}

static void check(const ModelProto &model, StringRef path) {
  ::onnx::checker::CheckerContext context;
  context.set_ir_version(static_cast<int>(model.ir_version()));
  std::unordered_map<std::string, int> opsets;
  for (const auto &opset : model.opset_import())
    opsets[opset.domain()] = static_cast<int>(opset.version());
  context.set_opset_imports(opsets);
  StringRef folder = llvm::sys::path::parent_path(path);
  context.set_model_dir(folder.empty() ? "." : folder.str());
  ::onnx::checker::LexicalScopeContext scope;
  ::onnx::checker::check_graph(model.graph(), context, scope);
  if (model.functions_size() > 0)
    ::onnx::checker::check_model_local_functions(model, context, scope);
}

/// Every field of `graph` but its nodes and tensors.
static GraphProto describeGraph(const GraphProto &graph) {
  GraphProto description;
  if (graph.has_name())
    description.set_name(graph.name());
  if (graph.has_doc_string())
    description.set_doc_string(graph.doc_string());
  *description.mutable_input() = graph.input();
  *description.mutable_output() = graph.output();
  *description.mutable_value_info() = graph.value_info();
  *description.mutable_quantization_annotation() = graph.quantization_annotation();
  *description.mutable_metadata_props() = graph.metadata_props();
  return description;
}

static void describeGraphs(const GraphProto &graph, llvm::DenseMap<const GraphProto *, GraphProto> &descriptions) {
  descriptions[&graph] = describeGraph(graph);
  for (const NodeProto &node : graph.node())
    for (const auto &attribute : node.attribute())
      if (attribute.has_g())
        describeGraphs(attribute.g(), descriptions);
}

/// A file's own value_info may contradict what inference finds; inference is right, so the file's is dropped.
static void dropIntermediateTypes(GraphProto &graph) {
  graph.clear_value_info();
  for (NodeProto &node : *graph.mutable_node())
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        dropIntermediateTypes(*attribute.mutable_g());
}

static bool hasSubgraph(const GraphProto &graph) {
  return llvm::any_of(graph.node(), [](const NodeProto &node) {
    return llvm::any_of(node.attribute(), [](const auto &attribute) { return attribute.has_g(); });
  });
}

static void inferShapes(ModelProto &model) {
  dropIntermediateTypes(*model.mutable_graph());
  // libonnx 1.23 keeps propagated data by name only, and stops at the first name that two subgraphs share.
  bool propagate = !hasSubgraph(model.graph());
  ::onnx::ShapeInferenceOptions options(/*check_type=*/true, /*strict_mode=*/1, propagate);
  BoundedSchemas schemas;
  ::onnx::shape_inference::InferShapes(model, &schemas, options);
}

static void spellDefaultDomain(ModelProto &model) {
  giveDomains(*model.mutable_graph());
  for (auto &function : *model.mutable_functions())
    for (NodeProto &node : *function.mutable_node())
      if (node.domain() == "ai.onnx")
        node.clear_domain();
  for (auto &opset : *model.mutable_opset_import())
    if (opset.domain() == "ai.onnx")
      opset.set_domain("");
}

OnnxFile readOnnxFile(StringRef path, const Limits &limits, int64_t leastOpset, Location loc) {
  OnnxFile file;
  std::shared_ptr<ModelProto> model;
  guarded(loc, ("cannot read '" + path + "'").str(), [&] { model = parse(path, limits, loc); });
  if (!model)
    return file;
  spellDefaultDomain(*model);
  sortNodes(*model->mutable_graph());
  bool importsMicrosoft = llvm::any_of(model->opset_import(), isMicrosoft);
  if (failed(normalizeOpsets(*model, loc)))
    return file;
  if (failed(checkRanks(*model, loc)) || failed(checkInlinedSize(*model, limits, loc)))
    return file;
  if (failed(checkModel(*model, path, loc)) || !guarded(loc, "invalid model", [&] { check(*model, path); }))
    return file;
  if (failed(expandSparseInitializers(*model->mutable_graph(), limits, loc)))
    return file;
  bool converted = false;
  int64_t target = std::max(kOldestOpset, leastOpset);
  guarded(loc, "cannot convert the opset",
          [&] { converted = succeeded(convertOpset(*model, target, inferShapes, loc)); });
  if (!converted)
    return file;
  llvm::copy_if(model->opset_import(), google::protobuf::RepeatedFieldBackInserter(&file.opsets),
                [&](const auto &opset) { return importsMicrosoft || !isMicrosoft(opset); });
  bool prepared = guarded(loc, "cannot infer shapes", [&] {
    if (model->functions_size() > 0)
      ::onnx::inliner::InlineLocalFunctions(*model);
    replaceZipMaps(*model->mutable_graph(), loc);
    describeGraphs(model->graph(), file.descriptions);
    giveAxes(*model->mutable_graph());
    inferShapes(*model);
  });
  if (prepared && succeeded(checkRanks(*model, loc))) // of what was inferred
    file.model = std::move(model);
  return file;
}

} // namespace hone
