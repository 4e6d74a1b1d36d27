// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --canonicalize --split-input-file %s | FileCheck %s -enable-var-scope

// CHECK-LABEL: func @softmax
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.divf
func.func @softmax(%a: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = "onnx.Softmax"(%a) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// The deviation is an optional result, of the type that the statistics are computed in.
// CHECK-LABEL: func @rms_normalization
// CHECK-NOT: arith.subf
// CHECK: math.sqrt
func.func @rms_normalization(%a: tensor<2x8xf16>, %s: tensor<8xf16>) -> tensor<2x8xf16> {
  %0 = "onnx.RMSNormalization"(%a, %s) : (tensor<2x8xf16>, tensor<8xf16>) -> tensor<2x8xf16>
  return %0 : tensor<2x8xf16>
}

// The sum of input and skip is normalized, and is a result of its own.
// CHECK-LABEL: func @skip
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK: arith.addf
// CHECK: return %{{.*}}, %[[SUM]]
func.func @skip(%a: tensor<2x8xf32>, %s: tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %0:4 = "onnx.com.microsoft.SkipSimplifiedLayerNormalization"(%a, %a, %s) : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, none, none, tensor<2x8xf32>)
  return %0#0, %0#3 : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// Before opset 13 all dimensions from the axis on are one row.
// CHECK-LABEL: func @softmax_11
// CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>
// CHECK: tensor.expand_shape
module attributes {onnx.opsets = {ai.onnx = 11 : i64}} {
  func.func @softmax_11(%a: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %0 = "onnx.Softmax"(%a) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    return %0 : tensor<2x3x4xf32>
  }
}
