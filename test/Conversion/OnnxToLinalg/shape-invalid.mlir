// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --verify-diagnostics --hone-convert-onnx-to-linalg

func.func @reshape_count(%x: tensor<2x6xf32>) -> tensor<5x3xf32> {
  %to = "onnx.Constant"() {value_ints = array<i64: 5, 3>} : () -> tensor<2xi64>
  // expected-error @below {{expected the new shape to have 12 elements as the input has, but got 15}}
  %r = "onnx.Reshape"(%x, %to) : (tensor<2x6xf32>, tensor<2xi64>) -> tensor<5x3xf32>
  return %r : tensor<5x3xf32>
}

// -----

func.func @reshape_two_inferred(%x: tensor<2x6xf32>) -> tensor<?x?xf32> {
  %to = "onnx.Constant"() {value_ints = array<i64: -1, -1>} : () -> tensor<2xi64>
  // expected-error @below {{expected at most one size to be -1, but got 2}}
  %r = "onnx.Reshape"(%x, %to) : (tensor<2x6xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

func.func @reshape_zero_beyond_rank(%x: tensor<6xf32>) -> tensor<?x?xf32> {
  %to = "onnx.Constant"() {value_ints = array<i64: 6, 0>} : () -> tensor<2xi64>
  // expected-error @below {{expected a size for dimension 1, but got 0, and the input has rank 1}}
  %r = "onnx.Reshape"(%x, %to) : (tensor<6xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

func.func @unsqueeze_axis(%x: tensor<2xf32>) -> tensor<1x2xf32> {
  %axes = "onnx.Constant"() {value_ints = array<i64: 2>} : () -> tensor<1xi64>
  // expected-error @below {{expected axis to be in [-2, 2), but got 2}}
  %r = "onnx.Unsqueeze"(%x, %axes) : (tensor<2xf32>, tensor<1xi64>) -> tensor<1x2xf32>
  return %r : tensor<1x2xf32>
}

// -----

func.func @unsqueeze_twice(%x: tensor<2xf32>) -> tensor<1x1x2xf32> {
  %axes = "onnx.Constant"() {value_ints = array<i64: 0, -3>} : () -> tensor<2xi64>
  // expected-error @below {{expected axes to differ from one another, but one is given twice}}
  %r = "onnx.Unsqueeze"(%x, %axes) : (tensor<2xf32>, tensor<2xi64>) -> tensor<1x1x2xf32>
  return %r : tensor<1x1x2xf32>
}

// -----

func.func @squeeze_of_two(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  %axes = "onnx.Constant"() {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  // expected-error @below {{expected the new shape to have 6 elements as the input has, but got 3}}
  %r = "onnx.Squeeze"(%x, %axes) : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

func.func @expand_sizes(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
  %to = "onnx.Constant"() {value_ints = array<i64: 2, 4>} : () -> tensor<2xi64>
  // expected-error @below {{expected a size of 3 to expand to 1 or 3, but got 4}}
  %r = "onnx.Expand"(%x, %to) : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

func.func @negative_size() -> tensor<?xf32> {
  %to = "onnx.Constant"() {value_ints = array<i64: -2>} : () -> tensor<1xi64>
  // expected-error @below {{expected sizes of input 0 not to be negative, but got -2}}
  %r = "onnx.ConstantOfShape"(%to) : (tensor<1xi64>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

func.func @transpose_not_a_permutation(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // expected-error @below {{expected attribute 'perm' to be a permutation of 2 dimensions}}
  %r = "onnx.Transpose"(%x) {perm = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// -----

func.func @range_of_no_step(%n: tensor<i64>) -> tensor<?xi64> {
  %zero = "onnx.Constant"() {value_int = 0 : i64} : () -> tensor<i64>
  // expected-error @below {{expected delta not to be 0}}
  %r = "onnx.Range"(%zero, %n, %zero) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  return %r : tensor<?xi64>
}
