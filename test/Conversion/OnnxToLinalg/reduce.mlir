// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --canonicalize %s | FileCheck %s -enable-var-scope

// CHECK-LABEL: func @sum_attribute
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK: arith.addf
func.func @sum_attribute(%a: tensor<2x3xf32>) -> tensor<2x1xf32> {
  %0 = "onnx.ReduceSum"(%a) {axes = array<i64: -1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

// Sixteen-bit sums accumulate in f32.
// CHECK-LABEL: func @mean_f16
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.addf %{{.*}} : f32
// CHECK: arith.divf %{{.*}} : f32
// CHECK: arith.truncf
func.func @mean_f16(%a: tensor<2x3xf16>) -> tensor<f16> {
  %0 = "onnx.ReduceMean"(%a) {keepdims = 0 : i64} : (tensor<2x3xf16>) -> tensor<f16>
  return %0 : tensor<f16>
}

// The neutral element of the largest unsigned byte is 0.
// CHECK-LABEL: func @max_u8
// CHECK: linalg.fill ins(%c0_i8
// CHECK: arith.maxui
func.func @max_u8(%a: tensor<3xui8>) -> tensor<1xui8> {
  %0 = "onnx.ReduceMax"(%a) : (tensor<3xui8>) -> tensor<1xui8>
  return %0 : tensor<1xui8>
}

// Axes that only the call knows: every dimension either stays or folds.
// CHECK-LABEL: func @runtime_axes
// CHECK: hrt.check %{{.*}}, "an axis is out of range"
// CHECK: iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CHECK: tensor.extract
func.func @runtime_axes(%a: tensor<2x3xf32>, %axes: tensor<1xi64>) -> tensor<?x?xf32> {
  %0 = "onnx.ReduceSum"(%a, %axes) : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// The product of a shape is a size.
// CHECK-LABEL: func @product_of_sizes
// CHECK-NOT: linalg.generic
// CHECK: arith.muli
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @product_of_sizes(%a: tensor<?x?xf32>) -> tensor<i64> {
  %0 = "onnx.Shape"(%a) : (tensor<?x?xf32>) -> tensor<2xi64>
  %1 = "onnx.ReduceProd"(%0) {keepdims = 0 : i64} : (tensor<2xi64>) -> tensor<i64>
  return %1 : tensor<i64>
}

// CHECK-LABEL: func @arg_max_last
// CHECK: arith.cmpf oge
func.func @arg_max_last(%a: tensor<2x3xf32>) -> tensor<2xi64> {
  %0 = "onnx.ArgMax"(%a) {axis = 1 : i64, keepdims = 0 : i64, select_last_index = 1 : i64} : (tensor<2x3xf32>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// CHECK-LABEL: func @cum_sum
// CHECK: scf.for
// CHECK: tensor.extract_slice
// CHECK: tensor.insert_slice
func.func @cum_sum(%a: tensor<2x?xf32>) -> tensor<2x?xf32> {
  %0 = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %1 = "onnx.CumSum"(%a, %0) : (tensor<2x?xf32>, tensor<i64>) -> tensor<2x?xf32>
  return %1 : tensor<2x?xf32>
}
