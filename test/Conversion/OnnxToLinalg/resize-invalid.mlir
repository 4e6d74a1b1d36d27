// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @nothing(%x: tensor<1x1x4xf32>) -> tensor<1x1x8xf32> {
  // expected-error @+1 {{expected 'scales' or 'sizes', but both are missing}}
  %0 = "onnx.Resize"(%x) : (tensor<1x1x4xf32>) -> tensor<1x1x8xf32>
  return %0 : tensor<1x1x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @activation(%x: tensor<2x1x3xf32>, %w: tensor<1x4x3xf32>, %r: tensor<1x4x4xf32>) -> tensor<2x1x1x4xf32> {
  // expected-error @+1 {{unsupported activation 'cube'}}
  %0 = "onnx.RNN"(%x, %w, %r) {activations = ["Cube"], hidden_size = 4 : i64} : (tensor<2x1x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<2x1x1x4xf32>
  return %0 : tensor<2x1x1x4xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @grid(%x: tensor<1x1x4x4xf32>, %g: tensor<1x2x2x3xf32>) -> tensor<1x1x2x2xf32> {
  // expected-error @+1 {{expected X [N, C, spatial...] and a grid [N, output..., number of spatial dimensions]}}
  %0 = "onnx.GridSample"(%x, %g) : (tensor<1x1x4x4xf32>, tensor<1x2x2x3xf32>) -> tensor<1x1x2x2xf32>
  return %0 : tensor<1x1x2x2xf32>
}
}
