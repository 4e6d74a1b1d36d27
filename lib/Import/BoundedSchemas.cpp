// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Wraps the two functions of a schema through which libonnx makes a dimension of each element, and infers the types in subgraphs of
// FlexAttention, which libonnx does not do. Compiled with exceptions, as inference reports by them to libonnx.

#include "BoundedSchemas.h"

#include "hone/Import/Limits.h"

#include "onnx/defs/shape_inference.h"

using ::onnx::DataPropagationContext;
using ::onnx::InferenceContext;
using ::onnx::OpSchema;
using ::onnx::TypeProto;

namespace hone {

/// How many elements libonnx would make dimensions of: those of a vector of known size.
static int64_t countElements(const TypeProto *type) {
  if (!type || !type->has_tensor_type() || type->tensor_type().shape().dim_size() != 1)
    return 0;
  return type->tensor_type().shape().dim(0).dim_value();
}

/// Which operand is a shape, of operators whose result gets as many dimensions as that has elements; -1 for others.
static int getShapeOperand(const std::string &name) {
  static const std::map<std::string, int> kOperands = {{"ConstantOfShape", 0}, {"Reshape", 1},       {"Expand", 1},
                                                       {"AffineGrid", 1},      {"CenterCropPad", 1}, {"Resize", 3}};
  auto operand = kOperands.find(name);
  return operand == kOperands.end() ? -1 : operand->second;
}

//===----------------------------------------------------------------------===//
// FlexAttention
//===----------------------------------------------------------------------===//

/// What its subgraphs take and give: scores `[batch, heads, queries, keys]` in the type of the softmax.
static TypeProto makeScoreType(InferenceContext &context) {
  using ::onnx::TensorProto;
  const auto *given = context.getAttribute("softmax_precision");
  bool isDouble = context.getInputType(0)->tensor_type().elem_type() == TensorProto::DOUBLE;
  TypeProto type;
  auto *tensor = type.mutable_tensor_type();
  tensor->set_elem_type(given ? static_cast<int32_t>(given->i()) : isDouble ? TensorProto::DOUBLE : TensorProto::FLOAT);
  constexpr int kRank = 4, kRows = 2;
  for (int dim = 0; dim < kRank; ++dim)
    tensor->mutable_shape()->add_dim();
  for (size_t input : {size_t(0), size_t(1)}) {
    if (!::onnx::hasInputShape(context, input) || ::onnx::getInputShape(context, input).dim_size() != kRank)
      continue;
    const auto &from = ::onnx::getInputShape(context, input);
    for (int dim = 0; input == 0 && dim <= kRows; ++dim)
      *tensor->mutable_shape()->mutable_dim(dim) = from.dim(dim);
    if (input == 1)
      *tensor->mutable_shape()->mutable_dim(kRank - 1) = from.dim(kRows);
  }
  return type;
}

static void inferModifiers(InferenceContext &context) {
  if (!context.getInputType(0) || !context.getInputType(0)->has_tensor_type())
    return;
  TypeProto scores = makeScoreType(context);
  for (const char *name : {"score_mod", "prob_mod"})
    if (context.getAttribute(name))
      if (auto *inferencer = context.getGraphAttributeInferencer(name))
        inferencer->doInferencing({&scores}, {nullptr});
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

static void infer(const OpSchema &schema, InferenceContext &context) {
  int operand = getShapeOperand(schema.Name());
  if (operand >= 0 && static_cast<size_t>(operand) < context.getNumInputs())
    if (int64_t rank = countElements(context.getInputType(operand)); rank > kMaxRank)
      fail_shape_inference("expected a shape of at most ", kMaxRank, " dimensions, but got ", rank);
  schema.GetTypeAndShapeInferenceFunction()(context);
  if (schema.Name() == "FlexAttention")
    inferModifiers(context);
}

void BoundedSchemas::propagate(const OpSchema &schema, DataPropagationContext &context) const {
  int64_t sum = 0;
  for (size_t i = 0; i < context.getNumInputs(); ++i) {
    int64_t count = countElements(context.getInputType(i));
    if (count > kMaxPropagatedElements)
      return;
    sum += count;
  }
  if (sum > kMaxPropagatedInAll - propagated)
    return;
  propagated += sum;
  schema.GetDataPropagationFunction()(context);
}

const OpSchema *BoundedSchemas::GetSchema(const std::string &name, int version, const std::string &domain) const {
  const OpSchema *schema = ::onnx::OpSchemaRegistry::Instance()->GetSchema(name, version, domain);
  if (!schema)
    return nullptr;
  auto [entry, isNew] = schemas.try_emplace(schema, *schema);
  if (isNew) {
    if (schema->has_type_and_shape_inference_function())
      entry->second.TypeAndShapeInferenceFunction([schema](InferenceContext &context) { infer(*schema, context); });
    if (schema->has_data_propagation_function())
      entry->second.PartialDataPropagationFunction(
          [this, schema](DataPropagationContext &context) { propagate(*schema, context); });
  }
  return &entry->second;
}

} // namespace hone
