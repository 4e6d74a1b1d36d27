// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces an operator by the function that its schema defines: a model of that one node goes through libonnx's inliner
// and shape inference, and comes back as operations. Compiled with exceptions; none leaves this file.

#include "BoundedSchemas.h"
#include "GraphImporter.h"
#include "ImportTensor.h"

#include "hone/Dialect/Onnx/OnnxDialect.h"
#include "hone/Dialect/Onnx/UnsupportedForm.h"
#include "hone/Import/Import.h"

#include "onnx/defs/schema.h"
#include "onnx/inliner/inliner.h"
#include "onnx/shape_inference/implementation.h"

using namespace mlir;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::OpSchema;

namespace hone {

namespace {

/// Operators that stay as they are.
class ExpandedNames : public ::onnx::inliner::FunctionIdSet {
public:
  explicit ExpandedNames(llvm::function_ref<bool(StringRef)> isPrimitive) : isPrimitive(isPrimitive) {}
  bool Contains(const std::string &domain, const std::string &name) const override {
    return !isPrimitive(onnxir::getOperationName(domain == "ai.onnx" ? "" : domain, name));
  }

private:
  llvm::function_ref<bool(StringRef)> isPrimitive;
};

} // namespace

//===----------------------------------------------------------------------===//
// The operation as a model
//===----------------------------------------------------------------------===//

static int32_t exportElementType(Type element) {
  for (int32_t type = 1; ::onnx::TensorProto_DataType_IsValid(type); ++type)
    if (onnxir::getElementType(type, element.getContext()) == element)
      return type;
  return ::onnx::TensorProto::UNDEFINED;
}

static void exportType(Type type, ::onnx::TypeProto &proto) {
  auto tensor = dyn_cast<TensorType>(type);
  int32_t element = tensor ? exportElementType(tensor.getElementType()) : 0;
  if (!element)
    return;
  proto.mutable_tensor_type()->set_elem_type(element);
  if (!tensor.hasRank())
    return;
  auto *shape = proto.mutable_tensor_type()->mutable_shape();
  for (int64_t size : tensor.getShape()) {
    auto *dim = shape->add_dim();
    if (!ShapedType::isDynamic(size))
      dim->set_dim_value(size);
  }
}

static bool exportAttribute(StringRef name, Attribute attr, AttributeProto &proto) {
  proto.set_name(name.str());
  if (auto value = dyn_cast<FloatAttr>(attr)) {
    proto.set_type(AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(value.getValueAsDouble()));
  } else if (auto value = dyn_cast<IntegerAttr>(attr)) {
    proto.set_type(AttributeProto::INT);
    proto.set_i(value.getInt());
  } else if (auto value = dyn_cast<StringAttr>(attr)) {
    proto.set_type(AttributeProto::STRING);
    proto.set_s(value.getValue().str());
  } else if (auto values = dyn_cast<DenseF32ArrayAttr>(attr)) {
    proto.set_type(AttributeProto::FLOATS);
    for (float value : values.asArrayRef())
      proto.add_floats(value);
  } else if (auto values = dyn_cast<DenseI64ArrayAttr>(attr)) {
    proto.set_type(AttributeProto::INTS);
    for (int64_t value : values.asArrayRef())
      proto.add_ints(value);
  } else if (auto values = dyn_cast<ArrayAttr>(attr);
             values && llvm::all_of(values, [](Attribute value) { return isa<StringAttr>(value); })) {
    proto.set_type(AttributeProto::STRINGS);
    for (Attribute value : values)
      proto.add_strings(cast<StringAttr>(value).getValue().str());
  } else {
    return false;
  }
  return true;
}

/// The node with its attributes; a function that does not depend on its context reads defaults from the node.
static bool exportNode(Operation *op, const OpSchema &schema, NodeProto &node) {
  node.set_op_type(onnxir::getOpType(op).str());
  node.set_domain(onnxir::getDomain(op).str());
  for (NamedAttribute attr : op->getAttrs())
    if (!exportAttribute(attr.getName(), attr.getValue(), *node.add_attribute()))
      return false;
  if (!schema.HasFunction())
    return true;
  for (const auto &[name, attribute] : schema.attributes())
    if (!op->hasAttr(name) && attribute.default_value.type() != AttributeProto::UNDEFINED)
      *node.add_attribute() = attribute.default_value;
  return true;
}

static std::string exportValue(Value value, const char *prefix, unsigned index, ::onnx::ValueInfoProto *info) {
  info->set_name(prefix + std::to_string(index));
  exportType(value.getType(), *info->mutable_type());
  return info->name();
}

static std::shared_ptr<ModelProto> exportModel(Operation *op, const OpSchema &schema) {
  auto model = std::make_shared<ModelProto>();
  model->set_ir_version(::onnx::IR_VERSION);
  for (const auto &[domain, range] : ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map()) {
    int64_t version = onnxir::getOpsetVersion(op, domain);
    auto *opset = model->add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version > 0 ? version : range.second);
  }
  GraphProto &graph = *model->mutable_graph();
  graph.set_name("function");
  NodeProto &node = *graph.add_node();
  if (!exportNode(op, schema, node))
    return nullptr;
  // The inliner looks up the types of all inputs, also of those that are not given and have the empty name.
  graph.add_value_info()->mutable_type();
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    node.add_input(onnxir::isAbsent(operand) ? "" : exportValue(operand, "input", i, graph.add_input()));
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    node.add_output(onnxir::isAbsent(result) ? "" : exportValue(result, "output", i, graph.add_output()));
  return model;
}

//===----------------------------------------------------------------------===//
// The model's nodes in the operation's place
//===----------------------------------------------------------------------===//

/// Puts the function's nodes in the place of the node; false if the schema has no function for these types and opset, failure after a
/// diagnostic if its function says why not.
static FailureOr<bool> inlineFunction(ModelProto &model, llvm::function_ref<bool(StringRef)> isPrimitive,
                                      Operation *op) {
  const NodeProto node = model.graph().node(0);
  try {
    ::onnx::inliner::InlineSelectedFunctions(model, ExpandedNames(isPrimitive), ::onnx::OpSchemaRegistry::Instance());
  } catch (const onnxir::UnsupportedForm &reason) {
    return op->emitOpError() << reason.what();
  } catch (const std::exception &) {
    return false;
  }
  bool same = model.graph().node_size() == 1 && model.graph().node(0).op_type() == node.op_type();
  if (same)
    return false;
  model.mutable_graph()->clear_value_info();
  try {
    BoundedSchemas schemas;
    ::onnx::shape_inference::InferShapes(model, &schemas);
  } catch (const std::exception &) {
    // Types that are not inferred stay open; lowerings work from the types that operands really have.
    model.mutable_graph()->clear_value_info();
  }
  return true;
}

/// A value with the declared type of the result it replaces: uses may depend on that.
static Value withType(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  OperationState state(loc, onnxir::getOperationName("", "Identity"), value, type);
  return builder.create(state)->getResult(0);
}

bool hasFunction(Operation *op) {
  const OpSchema *schema = onnxir::getSchema(op);
  return schema && (schema->HasFunction() || schema->HasContextDependentFunction());
}

FailureOr<bool> expandFunction(Operation *op, llvm::function_ref<bool(StringRef)> isPrimitive) {
  if (!hasFunction(op) || op->getNumRegions() > 0)
    return false;
  std::shared_ptr<ModelProto> model = exportModel(op, *onnxir::getSchema(op));
  if (!model)
    return false;
  FailureOr<bool> inlined = inlineFunction(*model, isPrimitive, op);
  if (failed(inlined) || !*inlined)
    return inlined;
  SmallVector<Value> inputs, outputs;
  llvm::copy_if(op->getOperands(), std::back_inserter(inputs), [](Value value) { return !onnxir::isAbsent(value); });
  llvm::copy_if(op->getResults(), std::back_inserter(outputs), [](Value value) { return !onnxir::isAbsent(value); });
  OpBuilder builder(op);
  GraphImporter importer(model, "", op->getParentOfType<ModuleOp>());
  auto values = importer.importAt(builder, op->getLoc(), inputs);
  if (failed(values))
    return failure();
  for (auto [output, value] : llvm::zip(outputs, *values))
    output.replaceAllUsesWith(withType(builder, op->getLoc(), value, output.getType()));
  op->erase();
  return true;
}

} // namespace hone
