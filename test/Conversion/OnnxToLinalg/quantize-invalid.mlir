// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

func.func @rank_of_scale(%x: tensor<8x64xi8>, %s: tensor<8x2xf32>) -> tensor<8x64xf32> {
  // expected-error @+1 {{expected the scale to have 1 dimensions, but got 'tensor<8x2xf32>'}}
  %0 = "onnx.DequantizeLinear"(%x, %s) : (tensor<8x64xi8>, tensor<8x2xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// -----

func.func @output_type(%x: tensor<8xi8>, %s: tensor<f32>) -> tensor<8xi32> {
  // expected-error @+1 {{unsupported output type number 6; supported: floats}}
  %0 = "onnx.DequantizeLinear"(%x, %s) {output_dtype = 6 : i64} : (tensor<8xi8>, tensor<f32>) -> tensor<8xi32>
  return %0 : tensor<8xi32>
}
