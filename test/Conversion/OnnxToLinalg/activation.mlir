// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --canonicalize %s | FileCheck %s -enable-var-scope

// CHECK-LABEL: func @gelu
// CHECK: math.erf
func.func @gelu(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "onnx.Gelu"(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// The bias of FastGelu is broadcast, and may be absent.
// CHECK-LABEL: func @fast_gelu
// CHECK: arith.addf
// CHECK: math.tanh
func.func @fast_gelu(%a: tensor<?x4xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %0 = "onnx.com.microsoft.FastGelu"(%a, %b) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: func @leaky_relu
// CHECK: %[[ALPHA:.*]] = arith.constant 1.250000e-01 : f32
// CHECK: arith.mulf %{{.*}}, %[[ALPHA]]
func.func @leaky_relu(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "onnx.LeakyRelu"(%a) {alpha = 0.125 : f32} : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func @relu_i8
// CHECK: arith.maxsi
func.func @relu_i8(%a: tensor<?xi8>) -> tensor<?xi8> {
  %0 = "onnx.Relu"(%a) : (tensor<?xi8>) -> tensor<?xi8>
  return %0 : tensor<?xi8>
}

// Softplus does not overflow: max(x, 0) + log1p(exp(-|x|)).
// CHECK-LABEL: func @softplus
// CHECK: arith.maximumf
// CHECK: math.absf
// CHECK: math.exp
// CHECK: math.log1p
func.func @softplus(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "onnx.Softplus"(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
