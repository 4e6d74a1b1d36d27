// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --canonicalize %s | FileCheck %s -enable-var-scope

// CHECK-LABEL: func @less_u16
// CHECK: arith.cmpi ult
func.func @less_u16(%a: tensor<4xui16>, %b: tensor<4xui16>) -> tensor<4xi1> {
  %0 = "onnx.Less"(%a, %b) : (tensor<4xui16>, tensor<4xui16>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// CHECK-LABEL: func @greater_or_equal_f32
// CHECK: arith.cmpf oge
func.func @greater_or_equal_f32(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xi1> {
  %0 = "onnx.GreaterOrEqual"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// CHECK-LABEL: func @not
// CHECK: arith.xori %{{.*}}, %true
func.func @not(%a: tensor<?xi1>) -> tensor<?xi1> {
  %0 = "onnx.Not"(%a) : (tensor<?xi1>) -> tensor<?xi1>
  return %0 : tensor<?xi1>
}

// A dimension is never -1, so the exporters' test for a wildcard is decided.
// CHECK-LABEL: func @where_of_sizes
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>
// CHECK-NOT: arith.cmpi
// CHECK-NOT: arith.select
// CHECK: %[[DIM:.*]] = tensor.dim %[[X]]
// CHECK: %[[SIZE:.*]] = arith.index_cast %[[DIM]] : index to i64
// CHECK: tensor.from_elements %[[SIZE]]
func.func @where_of_sizes(%a: tensor<?xf32>) -> tensor<1xi64> {
  %0 = "onnx.Shape"(%a) : (tensor<?xf32>) -> tensor<1xi64>
  %1 = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = "onnx.Equal"(%0, %1) : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
  %3 = "onnx.Where"(%2, %1, %0) : (tensor<1xi1>, tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  return %3 : tensor<1xi64>
}
