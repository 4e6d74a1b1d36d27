// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Wraps the two functions of a schema through which libonnx makes a dimension of each element. Compiled with exceptions, as
// inference reports by them to libonnx.

#include "BoundedSchemas.h"

#include "hone/Import/Limits.h"

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

static void infer(const OpSchema &schema, InferenceContext &context) {
  int operand = getShapeOperand(schema.Name());
  if (operand >= 0 && static_cast<size_t>(operand) < context.getNumInputs())
    if (int64_t rank = countElements(context.getInputType(operand)); rank > kMaxRank)
      fail_shape_inference("expected a shape of at most ", kMaxRank, " dimensions, but got ", rank);
  schema.GetTypeAndShapeInferenceFunction()(context);
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
