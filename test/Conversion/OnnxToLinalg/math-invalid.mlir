// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

func.func @bit_shift_direction(%a: tensor<4xui8>) -> tensor<4xui8> {
  // expected-error @+1 {{expected 'direction' to be LEFT or RIGHT, but got 'UP'}}
  %0 = "onnx.BitShift"(%a, %a) {direction = "UP"} : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// -----

func.func @gelu_approximation(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{unsupported 'approximate' 'sinh'; supported: none, tanh}}
  %0 = "onnx.Gelu"(%a) {approximate = "sinh"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
