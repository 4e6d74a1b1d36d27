// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft products of integers: MatMulIntegerToFloat, DynamicQuantizeMatMul and QGemm, as products of integers whose sums are
// scaled. Compiled with exceptions, as libonnx reports by them.

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

std::vector<OpSchema> makeQuantizedProducts() {
  OpSchema integers = makeSchema("MatMulIntegerToFloat",
                                 {{"A", "B", "a_scale", "b_scale", "a_zero_point?", "b_zero_point?", "bias?"}, {"Y"}});
  OpSchema dynamic = makeSchema("DynamicQuantizeMatMul", {{"A", "B", "b_scale", "b_zero_point?", "bias?"}, {"Y"}});
  OpSchema gemm = makeSchema(
      "QGemm",
      {{"A", "a_scale", "a_zero_point", "B", "b_scale", "b_zero_point", "C?", "y_scale?", "y_zero_point?"}, {"Y"}});
  addIntegers(gemm, {{"transA", 0}, {"transB", 0}});
  addFloats(gemm, {{"alpha", 1.0f}});
  return {withFunction(std::move(integers), makeMatMulIntegerToFloat),
          withFunction(std::move(dynamic), makeDynamicQuantizeMatMul), withFunction(std::move(gemm), makeQGemm)};
}

} // namespace hone::onnxir
