// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --verify-diagnostics --hone-convert-onnx-to-linalg

func.func @concat_sizes(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) -> tensor<4x3xf32> {
  // expected-error @below {{expected the inputs to agree in dimension 1, but got sizes 3 and 4}}
  %r = "onnx.Concat"(%a, %b) {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

func.func @concat_axis(%a: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{expected axis to be in [-1, 1), but got 1}}
  %r = "onnx.Concat"(%a) {axis = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @split_sum(%x: tensor<7xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %lengths = "onnx.Constant"() {value_ints = array<i64: 3, 3>} : () -> tensor<2xi64>
  // expected-error @below {{expected the lengths of the parts to sum to 7, but got 6}}
  %r:2 = "onnx.Split"(%x, %lengths) : (tensor<7xf32>, tensor<2xi64>) -> (tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32>
}

// -----

func.func @slice_step(%x: tensor<8xf32>) -> tensor<?xf32> {
  %zero = "onnx.Constant"() {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  // expected-error @below {{expected steps not to be 0}}
  %r = "onnx.Slice"(%x, %zero, %zero, %zero, %zero) : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

func.func @slice_counts(%x: tensor<8xf32>) -> tensor<?xf32> {
  %one = "onnx.Constant"() {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  %two = "onnx.Constant"() {value_ints = array<i64: 0, 1>} : () -> tensor<2xi64>
  // expected-error @below {{expected as many ends, axes and steps as starts (1)}}
  %r = "onnx.Slice"(%x, %one, %two) : (tensor<8xf32>, tensor<1xi64>, tensor<2xi64>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

func.func @pads_count(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
  %pads = "onnx.Constant"() {value_ints = array<i64: 1, 1>} : () -> tensor<2xi64>
  // expected-error @below {{expected 4 pads, two for each axis, but got 2}}
  %r = "onnx.Pad"(%x, %pads) : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

func.func @pad_below_nothing(%x: tensor<2xf32>) -> tensor<?xf32> {
  %pads = "onnx.Constant"() {value_ints = array<i64: -2, -1>} : () -> tensor<2xi64>
  // expected-error @below {{expected a padded size not to be negative, but got -1}}
  %r = "onnx.Pad"(%x, %pads) : (tensor<2xf32>, tensor<2xi64>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

func.func @block_does_not_divide(%x: tensor<1x1x3x4xf32>) -> tensor<?x?x?x?xf32> {
  // expected-error @below {{expected a size to be a multiple of 2, but got 3}}
  %r = "onnx.SpaceToDepth"(%x) {blocksize = 2 : i64} : (tensor<1x1x3x4xf32>) -> tensor<?x?x?x?xf32>
  return %r : tensor<?x?x?x?xf32>
}
