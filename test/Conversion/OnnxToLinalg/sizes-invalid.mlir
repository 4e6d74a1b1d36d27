// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

func.func @too_many() -> tensor<4611686018427387904x4xf32> {
  %sizes = "onnx.Constant"() {value_ints = array<i64: 4611686018427387904, 4>} : () -> tensor<2xi64>
  // expected-error @+1 {{cannot allocate a tensor of 4611686018427387904x4xf32: too many elements}}
  %0 = "onnx.ConstantOfShape"(%sizes) : (tensor<2xi64>) -> tensor<4611686018427387904x4xf32>
  return %0 : tensor<4611686018427387904x4xf32>
}

// -----

// One run-time size does not make it fewer.
func.func @too_many_rows(%x: tensor<?xf32>) -> tensor<?xf32> {
  %sizes = "onnx.Constant"() {value_ints = array<i64: 4611686018427387904>} : () -> tensor<1xi64>
  // expected-error @+1 {{cannot allocate a tensor of 4611686018427387904x?xf32: too many elements}}
  %0 = "onnx.Tile"(%x, %sizes) : (tensor<?xf32>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @transposed(%x: tensor<1x1x1xf32>, %w: tensor<1x1x3xf32>) -> tensor<1x1x1xf32> {
  // expected-error @+1 {{expected a size not to be negative, but got -1}}
  %0 = "onnx.ConvTranspose"(%x, %w) {pads = array<i64: 2, 2>} : (tensor<1x1x1xf32>, tensor<1x1x3xf32>) -> tensor<1x1x1xf32>
  return %0 : tensor<1x1x1xf32>
}

// -----

func.func @pads(%x: tensor<4xf32>) -> tensor<4xf32> {
  %pads = "onnx.Constant"() {value_ints = array<i64: 9223372036854775807, 1>} : () -> tensor<2xi64>
  // expected-error @+1 {{expected the pads to be in [-1099511627776, 1099511627776], but got 9223372036854775807}}
  %0 = "onnx.Pad"(%x, %pads) {mode = "constant"} : (tensor<4xf32>, tensor<2xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
