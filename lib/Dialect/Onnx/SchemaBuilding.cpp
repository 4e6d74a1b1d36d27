// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schemas and functions of com.microsoft. Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

#include "hone/Dialect/Onnx/UnsupportedForm.h"

#include "onnx/shape_inference/implementation.h"

using ::onnx::AttributeProto;
using ::onnx::FunctionBodyBuildContext;
using ::onnx::FunctionProto;
using ::onnx::InferenceContext;
using ::onnx::OpSchema;
using ::onnx::TensorProto;
using ::onnx::TypeProto;

namespace hone::onnxir {

//===----------------------------------------------------------------------===//
// Schemas
//===----------------------------------------------------------------------===//

OpSchema makeSchema(const char *name, const Signature &signature) {
  static const std::vector<std::string> kAllTensors = OpSchema::all_tensor_types_ir4();
  OpSchema schema;
  schema.SetName(name).SetDomain(kMicrosoft).SinceVersion(1).SetLocation(__FILE__, __LINE__);
  auto formal = [&](const std::string &spelled, int index, bool input) {
    char last = spelled.back();
    std::string bare = last == '?' || last == '*' ? spelled.substr(0, spelled.size() - 1) : spelled;
    std::string type = "T_" + std::string(input ? "in" : "out") + std::to_string(index);
    auto option = last == '?' ? OpSchema::Optional : last == '*' ? OpSchema::Variadic : OpSchema::Single;
    bool sameTypes = last != '*';
    if (input)
      schema.Input(index, bare, "", type, option, sameTypes);
    else
      schema.Output(index, bare, "", type, option);
    schema.TypeConstraint(type, kAllTensors, "");
  };
  for (size_t i = 0; i < signature.inputs.size(); ++i)
    formal(signature.inputs[i], static_cast<int>(i), true);
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    formal(signature.outputs[i], static_cast<int>(i), false);
  return schema;
}

void addIntegers(OpSchema &schema, std::initializer_list<std::pair<const char *, int64_t>> defaults) {
  for (auto [name, value] : defaults)
    schema.Attr(name, "", AttributeProto::INT, value);
}

void addFloats(OpSchema &schema, std::initializer_list<std::pair<const char *, float>> defaults) {
  for (auto [name, value] : defaults)
    schema.Attr(name, "", AttributeProto::FLOAT, value);
}

void addOptional(OpSchema &schema, AttributeProto::AttributeType type, std::initializer_list<const char *> names) {
  for (const char *name : names)
    schema.Attr(name, "", type, false);
}

//===----------------------------------------------------------------------===//
// The node
//===----------------------------------------------------------------------===//

std::string FunctionBody::name(int input) const {
  return has(input) ? schema.inputs()[input].GetName() : std::string();
}

/// The node's attribute, the schema's default, or an empty one.
static AttributeProto getAttribute(const FunctionBodyBuildContext &context, const OpSchema &schema, const char *name) {
  if (const AttributeProto *given = context.getAttribute(name))
    return *given;
  auto declared = schema.attributes().find(name);
  return declared == schema.attributes().end() ? AttributeProto() : declared->second.default_value;
}

int64_t FunctionBody::integer(const char *attribute) const { return getAttribute(context, schema, attribute).i(); }
float FunctionBody::real(const char *attribute) const { return getAttribute(context, schema, attribute).f(); }
std::string FunctionBody::text(const char *attribute) const { return getAttribute(context, schema, attribute).s(); }

std::vector<int64_t> FunctionBody::integers(const char *attribute) const {
  AttributeProto value = getAttribute(context, schema, attribute);
  return {value.ints().begin(), value.ints().end()};
}

std::vector<float> FunctionBody::reals(const char *attribute) const {
  AttributeProto value = getAttribute(context, schema, attribute);
  return {value.floats().begin(), value.floats().end()};
}

std::vector<std::string> FunctionBody::texts(const char *attribute) const {
  AttributeProto value = getAttribute(context, schema, attribute);
  return {value.strings().begin(), value.strings().end()};
}

int32_t FunctionBody::element(int input) const {
  const TypeProto *type = context.getInputType(input);
  if (!type || type->tensor_type().elem_type() == TensorProto::UNDEFINED)
    refuse("expected the element type of input " + std::to_string(input) + " to be known");
  return type->tensor_type().elem_type();
}

static const ::onnx::TensorShapeProto *getShape(const FunctionBodyBuildContext &context, int input) {
  const TypeProto *type = context.hasInput(input) ? context.getInputType(input) : nullptr;
  return type && type->tensor_type().has_shape() ? &type->tensor_type().shape() : nullptr;
}

std::optional<int64_t> FunctionBody::rank(int input) const {
  const auto *shape = getShape(context, input);
  return shape ? std::optional<int64_t>(shape->dim_size()) : std::nullopt;
}

std::optional<int64_t> FunctionBody::size(int input, int dim) const {
  const auto *shape = getShape(context, input);
  bool isKnown = shape && dim < shape->dim_size() && shape->dim(dim).has_dim_value();
  return isKnown ? std::optional<int64_t>(shape->dim(dim).dim_value()) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

void FunctionBody::copy(std::initializer_list<const char *> attributes) {
  for (const char *name : attributes)
    if (AttributeProto value = getAttribute(context, schema, name); value.type() != AttributeProto::UNDEFINED)
      *proto.mutable_node(proto.node_size() - 1)->add_attribute() = value;
}

void FunctionBody::scalar(const std::string &name, float value, int32_t type) {
  builder.Const(name + "_single", value);
  add(name + " = Cast(" + name + "_single)", "to", static_cast<int64_t>(type));
}

void FunctionBody::zero(const std::string &name, int32_t type) {
  TensorProto tensor;
  tensor.set_data_type(type);
  tensor.add_int32_data(0);
  builder.Const(name, tensor);
}

void FunctionBody::number(const std::string &numbers, const std::string &count, const std::string &tensor,
                          int64_t dim) {
  single(count + "_dim", dim);
  single(numbers + "_first", 0);
  single(numbers + "_step", 1);
  add(count + "_sizes = Shape(" + tensor + ")\n" + count + " = Gather(" + count + "_sizes, " + count + "_dim)\n" +
      numbers + " = Range(" + numbers + "_first, " + count + ", " + numbers + "_step)");
}

int FunctionBody::repeat(int first, const std::string &name) {
  int count = 0;
  for (; has(first + count); ++count)
    repeated.push_back(name + std::to_string(count));
  return count;
}

void FunctionBody::refuse(const std::string &reason) { throw UnsupportedForm(reason); }

bool FunctionBody::finish() {
  // The body is of operators that mean the same in all opsets that are read; the model's opset is put in the place of this one.
  constexpr int kOpset = 13;
  builder.AddOpset("", kOpset).AddOpset(kMicrosoft, 1);
  schema.BuildFunction(proto);
  if (repeated.empty())
    return true;
  proto.mutable_input()->RemoveLast();
  for (const std::string &input : repeated)
    proto.add_input(input);
  return true;
}

void moveChannels(FunctionBody &body, const std::string &from, const std::string &to, bool toLast) {
  auto rank = body.rank(0);
  if (!rank || *rank < 3)
    body.refuse("expected an input of 3 or more dimensions with the channels last");
  std::vector<int64_t> order = {0};
  if (!toLast)
    order.push_back(*rank - 1);
  for (int64_t dim = toLast ? 2 : 1; dim < *rank - (toLast ? 0 : 1); ++dim)
    order.push_back(dim);
  if (toLast)
    order.push_back(1);
  body.add(to + " = Transpose(" + from + ")", "perm", order);
}

//===----------------------------------------------------------------------===//
// Inference through the function
//===----------------------------------------------------------------------===//

namespace {

/// What inference knows of a node, as what functions are made from.
class InferredNode : public FunctionBodyBuildContext {
public:
  explicit InferredNode(InferenceContext &inference) : inference(inference) {}
  const AttributeProto *getAttribute(const std::string &name) const override { return inference.getAttribute(name); }
  bool hasInput(int input) const override { return getInputType(input) != nullptr; }
  bool hasOutput(int output) const override { return static_cast<size_t>(output) < inference.getNumOutputs(); }
  const TypeProto *getInputType(int input) const override {
    return static_cast<size_t>(input) < inference.getNumInputs() ? inference.getInputType(input) : nullptr;
  }

private:
  InferenceContext &inference;
};

} // namespace

OpSchema withFunction(OpSchema schema, FunctionMaker make) {
  auto build = [make](const FunctionBodyBuildContext &context, const OpSchema &schema, FunctionProto &proto) {
    FunctionBody body(context, schema, proto);
    make(body);
    return body.finish();
  };
  schema.SetContextDependentFunctionBodyBuilder(build);
  std::string name = schema.Name(), domain = schema.domain();
  int version = schema.since_version();
  schema.TypeAndShapeInferenceFunction([build, name, domain, version](InferenceContext &context) {
    FunctionProto function;
    try {
      build(InferredNode(context), *::onnx::OpSchemaRegistry::Schema(name, version, domain), function);
    } catch (const UnsupportedForm &) {
      return; // said where the node is expanded
    }
    while (static_cast<size_t>(function.output_size()) > context.getNumOutputs())
      function.mutable_output()->RemoveLast();
    ::onnx::shape_inference::InferShapeForFunctionNode(function, ::onnx::OpSchemaRegistry::Instance(), context);
  });
  return schema;
}

} // namespace hone::onnxir
