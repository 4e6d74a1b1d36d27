// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft products of integers: MatMulIntegerToFloat, DynamicQuantizeMatMul and QGemm, as products of integers whose sums are
// scaled, and DynamicQuantizeLSTM. Compiled with exceptions, as libonnx reports by them.

#include "SchemaBuilding.h"

using ::onnx::AttributeProto;
using ::onnx::OpSchema;
using ::onnx::TensorProto;

namespace hone::onnxir {

/// `Y` = (the sums of `lhs` times B) times `lhsScale` and b_scale, plus the bias at `bias`.
static void scaleProduct(FunctionBody &body, const std::string &lhs, const std::string &lhsZero,
                         const std::string &lhsScale, int rhsZero, int bias, int32_t type) {
  body.add("sums = MatMulInteger(" + lhs + ", B, " + lhsZero + ", " + body.name(rhsZero) + ")");
  body.add("wide_sums = Cast(sums)", "to", static_cast<int64_t>(type));
  body.add("scales = Mul(" + lhsScale + ", b_scale)\nproduct = Mul(wide_sums, scales)");
  body.add(body.has(bias) ? "Y = Add(product, " + body.name(bias) + ")" : "Y = Identity(product)");
}

static void makeMatMulIntegerToFloat(FunctionBody &body) {
  scaleProduct(body, "A", body.name(4), "a_scale", /*rhsZero=*/5, /*bias=*/6, body.element(2));
}

static void makeDynamicQuantizeMatMul(FunctionBody &body) {
  body.add("codes, code_scale, code_zero = DynamicQuantizeLinear(A)");
  scaleProduct(body, "codes", "code_zero", "code_scale", /*rhsZero=*/3, /*bias=*/4, TensorProto::FLOAT);
}

/// `to` = `from`, transposed where the attribute says so.
static void transposeIf(FunctionBody &body, const char *attribute, const std::string &from, const std::string &to) {
  body.add(to + (body.integer(attribute) ? " = Transpose<perm = [1, 0]>(" : " = Identity(") + from + ")");
}

/// C holds integers as wide as the sums; the result is of integers with a scale and a zero point where y_zero_point is given.
static void makeQGemm(FunctionBody &body) {
  transposeIf(body, "transA", "A", "lhs");
  transposeIf(body, "transB", "B", "rhs");
  body.add("products = MatMulInteger(lhs, rhs, a_zero_point, b_zero_point)");
  body.add(body.has(6) ? "sums = Add(products, C)" : "sums = Identity(products)");
  body.add("wide_sums = Cast(sums)", "to", static_cast<int64_t>(body.element(1)));
  body.scalar("alpha", body.real("alpha"), body.element(1));
  body.add("both_scales = Mul(a_scale, b_scale)\n"
           "scales = Mul(both_scales, alpha)\n"
           "result = Mul(wide_sums, scales)");
  if (body.has(7) != body.has(8))
    body.refuse("expected y_scale and y_zero_point to be given together");
  body.add(body.has(8) ? "Y = QuantizeLinear(result, y_scale, y_zero_point)" : "Y = Identity(result)");
}

/// `to` [directions, 4 * hidden, columns] = what the integers of input `input` [directions, columns, 4 * hidden] stand for, whose scale and
/// zero point are at `scale`: one a direction, or one a row.
static void dequantizeRecurrent(FunctionBody &body, int input, int scale, const std::string &to) {
  body.add(to + "_scale = Reshape(" + body.name(scale) + ", per_direction)\n" + to + "_zero = Reshape(" +
           body.name(scale + 1) + ", per_direction)");
  for (const std::string &name : {to + "_codes = Cast(" + body.name(input), to + "_middle = Cast(" + to + "_zero"})
    body.add(name + ")", "to", static_cast<int64_t>(TensorProto::FLOAT));
  body.add(to + "_moved = Sub(" + to + "_codes, " + to + "_middle)\n" + to + "_columns = Mul(" + to + "_moved, " + to +
           "_scale)\n" + to + " = Transpose<perm = [0, 2, 1]>(" + to + "_columns)");
}

/// The layer with the weights that the integers stand for. Its lowering finds the integers, and has inputs and states rounded to 8 bits.
static void makeDynamicQuantizeLstm(FunctionBody &body) {
  body.constant("per_direction", {0, 1, -1});
  dequantizeRecurrent(body, 1, 8, "weight");
  dequantizeRecurrent(body, 2, 10, "recurrence");
  std::string inputs = "X, weight, recurrence";
  for (int input = 3; input <= 7; ++input)
    inputs += ", " + body.name(input);
  body.add("Y, Y_h, Y_c = LSTM(" + inputs + ")");
  body.copy({"activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget"});
}

std::vector<OpSchema> makeQuantizedProducts() {
  OpSchema integers = makeSchema("MatMulIntegerToFloat",
                                 {{"A", "B", "a_scale", "b_scale", "a_zero_point?", "b_zero_point?", "bias?"}, {"Y"}});
  OpSchema dynamic = makeSchema("DynamicQuantizeMatMul", {{"A", "B", "b_scale", "b_zero_point?", "bias?"}, {"Y"}});
  OpSchema gemm = makeSchema(
      "QGemm",
      {{"A", "a_scale", "a_zero_point", "B", "b_scale", "b_zero_point", "C?", "y_scale?", "y_zero_point?"}, {"Y"}});
  addIntegers(gemm, {{"transA", 0}, {"transB", 0}});
  addFloats(gemm, {{"alpha", 1.0f}});
  OpSchema lstm = makeSchema("DynamicQuantizeLSTM", {{"X", "W", "R", "B?", "sequence_lens?", "initial_h?", "initial_c?",
                                                      "P?", "W_scale", "W_zero_point", "R_scale", "R_zero_point"},
                                                     {"Y?", "Y_h?", "Y_c?"}});
  addIntegers(lstm, {{"input_forget", 0}});
  addOptional(lstm, AttributeProto::INT, {"hidden_size"});
  addOptional(lstm, AttributeProto::FLOAT, {"clip"});
  addOptional(lstm, AttributeProto::FLOATS, {"activation_alpha", "activation_beta"});
  addOptional(lstm, AttributeProto::STRINGS, {"activations"});
  addOptional(lstm, AttributeProto::STRING, {"direction"});
  return {withFunction(std::move(integers), makeMatMulIntegerToFloat),
          withFunction(std::move(dynamic), makeDynamicQuantizeMatMul), withFunction(std::move(gemm), makeQGemm),
          withFunction(std::move(lstm), makeDynamicQuantizeLstm)};
}

} // namespace hone::onnxir
