// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

func.func @axis_range(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{expected axis to be in [-2, 2), but got 2}}
  %0 = "onnx.ReduceSum"(%a) {axes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @length_of_axes(%a: tensor<2x3xf32>, %axes: tensor<?xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{expected input 1 to be a vector of fixed length, but got 'tensor<?xi64>'}}
  %0 = "onnx.ReduceSum"(%a, %axes) : (tensor<2x3xf32>, tensor<?xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @cum_sum_of_number(%a: tensor<f32>, %axis: tensor<i64>) -> tensor<f32> {
  // expected-error @+1 {{expected a tensor of at least one dimension and one axis}}
  %0 = "onnx.CumSum"(%a, %axis) : (tensor<f32>, tensor<i64>) -> tensor<f32>
  return %0 : tensor<f32>
}
