// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --verify-diagnostics --hone-convert-onnx-to-linalg

module attributes {onnx.opsets = {"ai.onnx.preview.training" = 1 : i64}} {
  func.func @main(%r: tensor<f32>, %t: tensor<i64>, %x: tensor<2xf32>, %g: tensor<2xf32>, %v: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @+1 {{unsupported mode 'lion'; supported: standard, nesterov}}
    %0, %1 = "onnx.ai.onnx.preview.training.Momentum"(%r, %t, %x, %g, %v) {alpha = 0.9 : f32, beta = 0.9 : f32, mode = "lion", norm_coefficient = 0.0 : f32}
        : (tensor<f32>, tensor<i64>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    return %0 : tensor<2xf32>
  }
}

// -----

module attributes {onnx.opsets = {"ai.onnx.preview.training" = 1 : i64}} {
  func.func @main(%r: tensor<f32>, %t: tensor<i64>, %x: tensor<2xf32>, %g: tensor<2xf32>) -> tensor<2xf32> {
    // expected-error @+1 {{expected a learning rate, an update count, and for each parameter a gradient and 1 more tensors, but got 2 tensors and 1 results}}
    %0 = "onnx.ai.onnx.preview.training.Adagrad"(%r, %t, %x, %g) : (tensor<f32>, tensor<i64>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
