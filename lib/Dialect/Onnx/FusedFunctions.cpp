// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft operators that onnxruntime fuses of two or three: a product or convolution with an activation, sums with one.
// Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

#include <map>

using ::onnx::AttributeProto;
using ::onnx::OpSchema;

namespace hone::onnxir {

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// `to` = the activation that the node names of `from`; `from` itself where it names none. `parameters` are its numbers.
static void activate(FunctionBody &body, const std::string &from, const std::string &to,
                     const std::vector<float> &parameters) {
  static const std::map<std::string, std::vector<const char *>> kKnown = {{"", {}},
                                                                          {"Relu", {}},
                                                                          {"Tanh", {}},
                                                                          {"Sigmoid", {}},
                                                                          {"LeakyRelu", {"alpha"}},
                                                                          {"HardSigmoid", {"alpha", "beta"}}};
  std::string name = body.text("activation");
  auto known = kKnown.find(name);
  if (known == kKnown.end())
    body.refuse("unsupported activation '" + name + "'; supported: HardSigmoid, LeakyRelu, Relu, Sigmoid, Tanh");
  const auto &names = known->second;
  if (parameters.size() < names.size())
    body.refuse("expected the activation " + name + " to have " + std::to_string(names.size()) +
                " parameters, but got " + std::to_string(parameters.size()));
  body.add(to + " = " + (name.empty() ? "Identity" : name) + "(" + from + ")");
  for (size_t i = 0; i < names.size(); ++i)
    body.attribute(names[i], parameters[i]);
}

/// The numbers that the node gives its activation as attributes of their own, in their order.
static std::vector<float> readParameters(FunctionBody &body) {
  std::vector<float> values;
  for (const char *name : {"activation_alpha", "activation_beta"})
    if (body.hasAttribute(name))
      values.push_back(body.real(name));
  return values;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static void makeFusedGemm(FunctionBody &body) {
  body.add("product = Gemm(A, B" + std::string(body.has(2) ? ", C)" : ")"));
  body.copy({"alpha", "beta", "transA", "transB"});
  activate(body, "product", "Y", readParameters(body));
}

static void makeFusedMatMulActivation(FunctionBody &body) {
  body.add("product = com.microsoft.FusedMatMul(A, B)");
  body.copy({"alpha", "transA", "transB", "transBatchA", "transBatchB"});
  activate(body, "product", "Y", readParameters(body));
}

static void makeTransposeMatMul(FunctionBody &body) {
  body.add("Y = com.microsoft.FusedMatMul(A, B)");
  body.copy({"alpha", "transA", "transB"});
}

static void makeGemmFastGelu(FunctionBody &body) {
  body.add("product = MatMul(X, W)\nY = com.microsoft.FastGelu(product" + std::string(body.has(2) ? ", bias)" : ")"));
}

/// `sum` = `result` and Z, which has its sizes: a sum that is larger does not have them.
static void addResidual(FunctionBody &body) {
  body.add(body.has(3) ? "added = Add(result, Z)\nresult_sizes = Shape(result)\nsum = Reshape(added, result_sizes)"
                       : "sum = Identity(result)");
}

static void makeFusedConv(FunctionBody &body) {
  body.add("result = Conv(X, W" + std::string(body.has(2) ? ", B)" : ")"));
  body.copy({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  addResidual(body);
  activate(body, "sum", "Y", body.reals("activation_params"));
}

/// A convolution of channels that are last; its filters are those of Conv.
static void convolveLast(FunctionBody &body, const std::string &to) {
  moveChannels(body, "X", "planes", /*toLast=*/false);
  body.add("convolved = Conv(planes, W" + std::string(body.has(2) ? ", B)" : ")"));
  body.copy({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  moveChannels(body, "convolved", to, /*toLast=*/true);
}

static void makeNhwcConv(FunctionBody &body) { convolveLast(body, "Y"); }

static void makeNhwcFusedConv(FunctionBody &body) {
  convolveLast(body, "result");
  addResidual(body);
  activate(body, "sum", "Y", body.reals("activation_params"));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

static void makeBiasAdd(FunctionBody &body) { body.add("biased = Add(X, bias)\nY = Add(biased, skip)"); }

/// The left half of each row, times the GELU of the right.
static void makeBiasSplitGelu(FunctionBody &body) {
  constexpr int kRank = 3;
  auto width = body.size(1, 0);
  if (body.rank(0) != kRank || !width || *width % 2 != 0)
    body.refuse("expected X to have 3 dimensions, and an even number of elements of the bias to be known");
  body.constant("begin", {0});
  body.constant("middle", {*width / 2});
  body.constant("end", {*width});
  body.constant("last", {2});
  body.add("biased = Add(X, bias)\n"
           "left = Slice(biased, begin, middle, last)\n"
           "right = Slice(biased, middle, end, last)\n"
           "gate = com.microsoft.Gelu(right)\n"
           "Y = Mul(left, gate)");
}

//===----------------------------------------------------------------------===//
// Schemas
//===----------------------------------------------------------------------===//

static OpSchema makeActivated(const char *name, const std::vector<std::string> &inputs) {
  OpSchema schema = makeSchema(name, {inputs, {"Y"}});
  addOptional(schema, AttributeProto::STRING, {"activation"});
  return schema;
}

static void addParameters(OpSchema &schema) {
  addOptional(schema, AttributeProto::FLOAT, {"activation_alpha", "activation_beta", "activation_gamma"});
}

static void addConvolution(OpSchema &schema) {
  schema.Attr("auto_pad", "", AttributeProto::STRING, std::string("NOTSET"));
  addIntegers(schema, {{"group", 1}});
  addOptional(schema, AttributeProto::INTS, {"dilations", "kernel_shape", "pads", "strides"});
}

std::vector<OpSchema> makeFusedFunctions() {
  OpSchema gemm = makeActivated("FusedGemm", {"A", "B", "C?"});
  addFloats(gemm, {{"alpha", 1.0f}, {"beta", 1.0f}});
  addIntegers(gemm, {{"transA", 0}, {"transB", 0}});
  addParameters(gemm);
  OpSchema product = makeActivated("FusedMatMulActivation", {"A", "B"});
  addFloats(product, {{"alpha", 1.0f}});
  addIntegers(product, {{"transA", 0}, {"transB", 0}, {"transBatchA", 0}, {"transBatchB", 0}});
  addOptional(product, AttributeProto::INT, {"activation_axis"});
  addParameters(product);
  OpSchema transposed = makeSchema("TransposeMatMul", {{"A", "B"}, {"Y"}});
  addFloats(transposed, {{"alpha", 1.0f}});
  addIntegers(transposed, {{"transA", 0}, {"transB", 0}});
  OpSchema conv = makeActivated("FusedConv", {"X", "W", "B?", "Z?"}),
           last = makeSchema("NhwcConv", {{"X", "W", "B?"}, {"Y"}}),
           fusedLast = makeActivated("NhwcFusedConv", {"X", "W", "B?", "Z?"});
  for (OpSchema *schema : {&conv, &last, &fusedLast})
    addConvolution(*schema);
  for (OpSchema *schema : {&conv, &fusedLast})
    addOptional(*schema, AttributeProto::FLOATS, {"activation_params"});
  return {withFunction(std::move(gemm), makeFusedGemm),
          withFunction(std::move(product), makeFusedMatMulActivation),
          withFunction(std::move(transposed), makeTransposeMatMul),
          withFunction(std::move(conv), makeFusedConv),
          withFunction(std::move(last), makeNhwcConv),
          withFunction(std::move(fusedLast), makeNhwcFusedConv),
          withFunction(makeSchema("GemmFastGelu", {{"X", "W", "bias?"}, {"Y"}}), makeGemmFastGelu),
          withFunction(makeSchema("BiasAdd", {{"X", "bias", "skip"}, {"Y"}}), makeBiasAdd),
          withFunction(makeSchema("BiasSplitGelu", {{"X", "bias"}, {"Y"}}), makeBiasSplitGelu)};
}

} // namespace hone::onnxir
