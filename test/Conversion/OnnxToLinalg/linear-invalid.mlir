// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @inner(%a: tensor<2x4xf32>, %b: tensor<3x5xf32>) -> tensor<2x5xf32> {
  // expected-error @+1 {{expected the inner dimensions of a product to be equal, but got 4 and 3}}
  %0 = "onnx.MatMul"(%a, %b) : (tensor<2x4xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @scalar(%a: tensor<f32>, %b: tensor<3x5xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{expected operands of at least one dimension, but got ranks 0 and 2}}
  %0 = "onnx.MatMul"(%a, %b) : (tensor<f32>, tensor<3x5xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @bits(%a: tensor<?x64xf32>, %b: tensor<8x2x16xui8>, %s: tensor<16xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{unsupported number of bits 5; supported: 2, 4, 8}}
  %0 = "onnx.com.microsoft.MatMulNBits"(%a, %b, %s) {K = 64 : i64, N = 8 : i64, bits = 5 : i64} : (tensor<?x64xf32>, tensor<8x2x16xui8>, tensor<16xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @scales(%a: tensor<?x64xf32>, %b: tensor<8x2x16xui8>, %s: tensor<15xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{expected the scales to have 16 elements, but got 'tensor<15xf32>'}}
  %0 = "onnx.com.microsoft.MatMulNBits"(%a, %b, %s) {K = 64 : i64, N = 8 : i64} : (tensor<?x64xf32>, tensor<8x2x16xui8>, tensor<15xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @equation(%a: tensor<2x4xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{expected the term 'ijk' of the equation to have 2 labels, but got 3}}
  %0 = "onnx.Einsum"(%a) {equation = "ijk->i"} : (tensor<2x4xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
}
