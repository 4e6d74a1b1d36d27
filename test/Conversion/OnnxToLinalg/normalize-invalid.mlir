// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

func.func @training(%a: tensor<2x3x4xf32>, %s: tensor<3xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{unsupported training of statistics; supported: inference with given ones}}
  %0 = "onnx.BatchNormalization"(%a, %s, %s, %s, %s) {training_mode = 1 : i64} : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

func.func @groups(%a: tensor<2x3x4xf32>, %s: tensor<3xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{expected num_groups to divide the channels of 'tensor<2x3x4xf32>', but got 2}}
  %0 = "onnx.GroupNormalization"(%a, %s, %s) {num_groups = 2 : i64} : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

func.func @softmax_of_number(%a: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{expected a tensor of at least one dimension, but got 'tensor<f32>'}}
  %0 = "onnx.Softmax"(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @power(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{unsupported p 3; supported: 1, 2}}
  %0 = "onnx.LpNormalization"(%a) {p = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

module attributes {onnx.opsets = {ai.onnx = 18 : i64, com.microsoft = 1 : i64}} {
func.func @scale_of_more_dimensions(%x: tensor<?x3xf32>, %scale: tensor<1x1x3xf32>) -> tensor<?x3xf32> {
  // expected-error @+1 {{expected an operand of at most 2 dimensions, but got 'tensor<1x1x3xf32>'}}
  %0 = "onnx.com.microsoft.SkipSimplifiedLayerNormalization"(%x, %x, %scale) : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<1x1x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
}
