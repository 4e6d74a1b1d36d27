// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @channels(%x: tensor<1x4x9x9xf32>, %w: tensor<6x3x3x3xf32>) -> tensor<1x6x7x7xf32> {
  // expected-error @+1 {{expected the channels of a group and of the weight to be equal, but got 4 and 3}}
  %0 = "onnx.Conv"(%x, %w) : (tensor<1x4x9x9xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x7x7xf32>
  return %0 : tensor<1x6x7x7xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @groups(%x: tensor<1x4x9xf32>, %w: tensor<6x1x3xf32>) -> tensor<1x6x7xf32> {
  // expected-error @+1 {{expected the channels of the input to be a multiple of 3, but got 4}}
  %0 = "onnx.Conv"(%x, %w) {group = 3 : i64} : (tensor<1x4x9xf32>, tensor<6x1x3xf32>) -> tensor<1x6x7xf32>
  return %0 : tensor<1x6x7xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @strides(%x: tensor<1x4x9xf32>) -> tensor<1x4x7xf32> {
  // expected-error @+1 {{expected 'strides' to be 1 integers of at least 1, but got}}
  %0 = "onnx.MaxPool"(%x) {kernel_shape = array<i64: 3>, strides = array<i64: 0>} : (tensor<1x4x9xf32>) -> tensor<1x4x7xf32>
  return %0 : tensor<1x4x7xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @small(%x: tensor<1x4x2xf32>) -> tensor<1x4x1xf32> {
  // expected-error @+1 {{expected the padded input of size 2 to be at least as large as the kernel of size 5}}
  %0 = "onnx.MaxPool"(%x) {kernel_shape = array<i64: 5>} : (tensor<1x4x2xf32>) -> tensor<1x4x1xf32>
  return %0 : tensor<1x4x1xf32>
}
}
