// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

func.func @to_unknown(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{unsupported element type}}
  %0 = "onnx.Cast"(%a) {to = 99 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @round_mode(%a: tensor<4xf32>) -> tensor<4xf8E8M0FNU> {
  // expected-error @+1 {{unsupported round_mode 'odd'; supported: up, down, nearest}}
  %0 = "onnx.Cast"(%a) {to = 24 : i64, round_mode = "odd"} : (tensor<4xf32>) -> tensor<4xf8E8M0FNU>
  return %0 : tensor<4xf8E8M0FNU>
}

// -----

func.func @bit_cast_width(%a: tensor<4xf32>) -> tensor<4xi64> {
  // expected-error @+1 {{expected 'to' to have the width of 'f32', but got 'i64'}}
  %0 = "onnx.BitCast"(%a) {to = 7 : i64} : (tensor<4xf32>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}
