// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft QLinear…: an operator over integers with a scale and a zero point each, as the operator over the floats that they stand
// for. Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

using ::onnx::AttributeProto;
using ::onnx::OpSchema;

namespace hone::onnxir {

//===----------------------------------------------------------------------===//
// Integers and floats
//===----------------------------------------------------------------------===//

/// `to` = the floats that input `input` stands for; its scale and zero point follow it.
static void dequantize(FunctionBody &body, int input, const std::string &to) {
  body.add(to + " = DequantizeLinear(" + body.name(input) + ", " + body.name(input + 1) + ", " + body.name(input + 2) +
           ")");
}

/// `to` = `from` as integers of the type of input `like`, by the scale at `scale` and the zero point that follows it.
static void quantize(FunctionBody &body, const std::string &from, int scale, int like, const std::string &to) {
  std::string zero = body.name(scale + 1);
  if (zero.empty()) {
    zero = "no_zero_point";
    body.zero(zero, body.element(like));
  }
  body.add(to + " = QuantizeLinear(" + from + ", " + body.name(scale) + ", " + zero + ")");
}

/// A function of two tensors: (A, its scale and zero point, B, its scale and zero point, scale and zero point of the result).
template <const char *name> static void makeBinary(FunctionBody &body) {
  dequantize(body, 0, "lhs");
  dequantize(body, 3, "rhs");
  body.add(std::string("result = ") + name + "(lhs, rhs)");
  quantize(body, "result", 6, 0, "C");
}

/// A function of one: (X, its scale and zero point, scale and zero point of the result).
static void makeUnary(FunctionBody &body, const std::string &name, std::initializer_list<const char *> attributes) {
  dequantize(body, 0, "input");
  body.add("result = " + name + "(input)");
  body.copy(attributes);
  quantize(body, "result", 3, 0, "Y");
}

static void makeSigmoid(FunctionBody &body) { makeUnary(body, "Sigmoid", {}); }
static void makeLeakyRelu(FunctionBody &body) { makeUnary(body, "LeakyRelu", {"alpha"}); }

/// Before opset 13 the dimensions from the axis on are one row.
static void makeSoftmax(FunctionBody &body) {
  constexpr int64_t kPerAxis = 13;
  int64_t axis = body.integer("axis"), opset = body.integer("opset");
  auto rank = body.rank(0);
  bool isLast = axis == -1 || (rank && axis == *rank - 1);
  if (opset < kPerAxis && !isLast)
    body.refuse("unsupported axis " + std::to_string(axis) + " of opset " + std::to_string(opset) +
                "; supported: the last one");
  makeUnary(body, "Softmax", {"axis"});
}

//===----------------------------------------------------------------------===//
// Pools and convolutions
//===----------------------------------------------------------------------===//

static void makePool(FunctionBody &body, const std::string &name, std::initializer_list<const char *> attributes) {
  bool isLast = body.integer("channels_last") != 0;
  dequantize(body, 0, "floats");
  if (isLast)
    moveChannels(body, "floats", "input", /*toLast=*/false);
  else
    body.add("input = Identity(floats)");
  body.add("pooled = " + name + "(input)");
  body.copy(attributes);
  if (isLast)
    moveChannels(body, "pooled", "result", /*toLast=*/true);
  else
    body.add("result = Identity(pooled)");
  quantize(body, "result", 3, 0, "Y");
}

static void makeAveragePool(FunctionBody &body) {
  makePool(body, "AveragePool", {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"});
}

static void makeGlobalAveragePool(FunctionBody &body) { makePool(body, "GlobalAveragePool", {}); }

/// The operator of the default domain, between transpositions where the channels are last.
static void makeConv(FunctionBody &body) {
  bool isLast = body.integer("channels_last") != 0;
  if (isLast)
    moveChannels(body, "x", "input", /*toLast=*/false);
  else
    body.add("input = Identity(x)");
  body.add("result = QLinearConv(input, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point" +
           std::string(body.has(8) ? ", B)" : ")"));
  body.copy({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  if (isLast)
    moveChannels(body, "result", "y", /*toLast=*/true);
  else
    body.add("y = Identity(result)");
}

/// MaxPool of integers as they are, which all have one scale.
static void makeMaxPool(FunctionBody &body) {
  moveChannels(body, "x", "input", /*toLast=*/false);
  body.add("pooled = MaxPool(input)");
  body.copy({"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"});
  moveChannels(body, "pooled", "y", /*toLast=*/true);
}

//===----------------------------------------------------------------------===//
// Several tensors
//===----------------------------------------------------------------------===//

/// (scale and zero point of the result, then of each tensor: itself, scale, zero point).
static void makeConcat(FunctionBody &body) {
  constexpr int kFirst = 2, kParts = 3;
  int count = body.repeat(kFirst, "part");
  if (count == 0 || count % kParts != 0)
    body.refuse("expected each input to have a scale and a zero point, but got " + std::to_string(count) + " in all");
  std::string operands;
  for (int i = 0; i < count; i += kParts) {
    std::string part = "part" + std::to_string(i), floats = "floats" + std::to_string(i);
    body.add(floats + " = DequantizeLinear(" + part + ", part" + std::to_string(i + 1) + ", part" +
             std::to_string(i + 2) + ")");
    operands += (i ? ", " : "") + floats;
  }
  body.add("result = Concat(" + operands + ")");
  body.copy({"axis"});
  body.add("Y = QuantizeLinear(result, Y_scale, Y_zero_point)");
}

static void makeWhere(FunctionBody &body) {
  dequantize(body, 1, "lhs");
  dequantize(body, 4, "rhs");
  body.add("result = Where(condition, lhs, rhs)");
  quantize(body, "result", 7, 1, "Z");
}

//===----------------------------------------------------------------------===//
// Schemas
//===----------------------------------------------------------------------===//

static constexpr char kAdd[] = "Add", kMul[] = "Mul";

std::vector<OpSchema> makeQuantizedFunctions() {
  const Signature binary = {
      {"A", "A_scale", "A_zero_point?", "B", "B_scale", "B_zero_point?", "C_scale", "C_zero_point?"}, {"C"}};
  const Signature unary = {{"X", "X_scale", "X_zero_point?", "Y_scale", "Y_zero_point?"}, {"Y"}};
  OpSchema leakyRelu = makeSchema("QLinearLeakyRelu", unary), softmax = makeSchema("QLinearSoftmax", unary);
  addFloats(leakyRelu, {{"alpha", 0.01f}});
  addIntegers(softmax, {{"axis", -1}});
  softmax.Attr("opset", "", AttributeProto::INT, true);
  OpSchema pool = makeSchema("QLinearAveragePool", unary), global = makeSchema("QLinearGlobalAveragePool", unary);
  addIntegers(pool, {{"channels_last", 0}, {"ceil_mode", 0}, {"count_include_pad", 0}});
  addIntegers(global, {{"channels_last", 0}});
  pool.Attr("auto_pad", "", AttributeProto::STRING, std::string("NOTSET"));
  pool.Attr("kernel_shape", "", AttributeProto::INTS, true);
  addOptional(pool, AttributeProto::INTS, {"pads", "strides"});
  OpSchema largest = makeSchema("NhwcMaxPool", {{"x"}, {"y"}});
  addIntegers(largest, {{"ceil_mode", 0}});
  largest.Attr("auto_pad", "", AttributeProto::STRING, std::string("NOTSET"));
  largest.Attr("kernel_shape", "", AttributeProto::INTS, true);
  addOptional(largest, AttributeProto::INTS, {"dilations", "pads", "strides"});
  OpSchema concat = makeSchema("QLinearConcat", {{"Y_scale", "Y_zero_point", "inputs*"}, {"Y"}});
  concat.Attr("axis", "", AttributeProto::INT, true);
  OpSchema where = makeSchema("QLinearWhere", {{"condition", "X", "x_scale", "x_zero_point", "Y", "y_scale",
                                                "y_zero_point", "z_scale", "z_zero_point"},
                                               {"Z"}});
  OpSchema conv = makeSchema(
      "QLinearConv",
      {{"x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale", "y_zero_point", "B?"}, {"y"}});
  addIntegers(conv, {{"channels_last", 0}, {"group", 1}});
  conv.Attr("auto_pad", "", AttributeProto::STRING, std::string("NOTSET"));
  addOptional(conv, AttributeProto::INTS, {"dilations", "kernel_shape", "pads", "strides"});
  return {withFunction(std::move(conv), makeConv),
          withFunction(makeSchema("QLinearAdd", binary), makeBinary<kAdd>),
          withFunction(makeSchema("QLinearMul", binary), makeBinary<kMul>),
          withFunction(makeSchema("QLinearSigmoid", unary), makeSigmoid),
          withFunction(std::move(leakyRelu), makeLeakyRelu),
          withFunction(std::move(softmax), makeSoftmax),
          withFunction(std::move(pool), makeAveragePool),
          withFunction(std::move(global), makeGlobalAveragePool),
          withFunction(std::move(largest), makeMaxPool),
          withFunction(std::move(concat), makeConcat),
          withFunction(std::move(where), makeWhere)};
}

} // namespace hone::onnxir
