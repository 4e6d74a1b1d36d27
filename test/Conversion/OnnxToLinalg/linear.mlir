// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --split-input-file --hone-convert-onnx-to-linalg | FileCheck %s

// Floats become operations of the hone dialect, which have kernels.
module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
// CHECK-LABEL: @matmul
// CHECK: hone.matmul %arg0, %arg1 : (tensor<?x8x4xf32>, tensor<4x2xf32>) -> tensor<?x8x2xf32>
func.func @matmul(%a: tensor<?x8x4xf32>, %b: tensor<4x2xf32>) -> tensor<?x8x2xf32> {
  %0 = "onnx.MatMul"(%a, %b) : (tensor<?x8x4xf32>, tensor<4x2xf32>) -> tensor<?x8x2xf32>
  return %0 : tensor<?x8x2xf32>
}

// A vector on the left is a row, which the result loses again.
// CHECK-LABEL: @vector
// CHECK: %[[ROW:.*]] = tensor.expand_shape %arg0 {{.*}} : tensor<4xf32> into tensor<1x4xf32>
// CHECK: hone.matmul %[[ROW]], %arg1 : (tensor<1x4xf32>, tensor<3x4x2xf32>) -> tensor<3x1x2xf32>
// CHECK: tensor.collapse_shape {{.*}} : tensor<3x1x2xf32> into tensor<3x2xf32>
func.func @vector(%a: tensor<4xf32>, %b: tensor<3x4x2xf32>) -> tensor<3x2xf32> {
  %0 = "onnx.MatMul"(%a, %b) : (tensor<4xf32>, tensor<3x4x2xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// CHECK-LABEL: @integers
// CHECK-NOT: hone.
// CHECK: linalg.generic
// CHECK: arith.muli
// CHECK: arith.addi
func.func @integers(%a: tensor<?x4xui32>, %b: tensor<3x4x2xui32>) -> tensor<3x?x2xui32> {
  %0 = "onnx.MatMul"(%a, %b) : (tensor<?x4xui32>, tensor<3x4x2xui32>) -> tensor<3x?x2xui32>
  return %0 : tensor<3x?x2xui32>
}

// Inner dimensions that may differ are compared at run time.
// CHECK-LABEL: @inner
// CHECK: hrt.check {{.*}}"expected the inner dimensions of a product to be equal"
func.func @inner(%a: tensor<2x?xf32>, %b: tensor<?x3xf32>) -> tensor<2x3xf32> {
  %0 = "onnx.MatMul"(%a, %b) : (tensor<2x?xf32>, tensor<?x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: @gemm_is_linear
// CHECK: hone.linear %arg0, %arg1 bias(%arg2)
// CHECK-NOT: linalg
func.func @gemm_is_linear(%a: tensor<?x4xf32>, %b: tensor<2x4xf32>, %c: tensor<2xf32>) -> tensor<?x2xf32> {
  %0 = "onnx.Gemm"(%a, %b, %c) {transB = 1 : i64} : (tensor<?x4xf32>, tensor<2x4xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}

// CHECK-LABEL: @gemm
// CHECK: %[[A:.*]] = linalg.transpose ins(%arg0 : tensor<4x?xf32>)
// CHECK: hone.matmul %[[A]], %arg1
// CHECK: arith.mulf {{.*}}, %cst
// CHECK: arith.addf
func.func @gemm(%a: tensor<4x?xf32>, %b: tensor<4x2xf32>, %c: tensor<?x1xf32>) -> tensor<?x2xf32> {
  %0 = "onnx.Gemm"(%a, %b, %c) {transA = 1 : i64, alpha = 0.5 : f32} : (tensor<4x?xf32>, tensor<4x2xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
}

// -----

// accuracy_level is the least accuracy of activations, which stay as they are.
module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
// CHECK-LABEL: @blocks
// CHECK-NOT: math.roundeven
// CHECK: hone.linear %arg0
func.func @blocks(%a: tensor<?x48xf32>, %b: tensor<8x2x16xui8>, %s: tensor<16xf32>) -> tensor<?x8xf32> {
  %0 = "onnx.com.microsoft.MatMulNBits"(%a, %b, %s) {K = 48 : i64, N = 8 : i64, accuracy_level = 4 : i64} : (tensor<?x48xf32>, tensor<8x2x16xui8>, tensor<16xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
}

// -----

// A size that the file declares, and that does not follow from the operands, is checked before anything is computed with it.
module attributes {onnx.opsets = {ai.onnx = 23 : i64}} {
// CHECK-LABEL: @declared
// CHECK: hrt.check {{.*}}"a value of 'hone.linear': expected dimension 0 to be 1, but got {}"
// CHECK: hone.linear %arg0, %arg1 : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
func.func @declared(%a: tensor<?x4xf32>, %w: tensor<2x4xf32>) -> tensor<1x2xf32> {
  %0 = hone.linear %a, %w : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}
}
