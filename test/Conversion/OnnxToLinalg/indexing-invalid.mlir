// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --verify-diagnostics --hone-convert-onnx-to-linalg

func.func @gather_outside(%x: tensor<3xf32>) -> tensor<f32> {
  %three = "onnx.Constant"() {value_int = 3 : i64} : () -> tensor<i64>
  // expected-error @below {{expected indices in [-3, 3), but got 3}}
  %r = "onnx.Gather"(%x, %three) : (tensor<3xf32>, tensor<i64>) -> tensor<f32>
  return %r : tensor<f32>
}

// -----

func.func @gather_elements_rank(%x: tensor<3x3xf32>, %ids: tensor<3xi64>) -> tensor<3xf32> {
  // expected-error @below {{expected inputs of one rank, but got 'tensor<3x3xf32>' and 'tensor<3xi64>'}}
  %r = "onnx.GatherElements"(%x, %ids) : (tensor<3x3xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----

func.func @gather_nd_tuple(%x: tensor<3xf32>, %ids: tensor<2x2xi64>) -> tensor<2xf32> {
  // expected-error @below {{expected tuples of at most 1 indices, but got 2}}
  %r = "onnx.GatherND"(%x, %ids) : (tensor<3xf32>, tensor<2x2xi64>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @gather_nd_unknown_tuple(%x: tensor<3xf32>, %ids: tensor<2x?xi64>) -> tensor<2xf32> {
  // expected-error @below {{expected input 1 to hold integers with a fixed last size, but got 'tensor<2x?xi64>'}}
  %r = "onnx.GatherND"(%x, %ids) : (tensor<3xf32>, tensor<2x?xi64>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @scatter_updates(%x: tensor<8xf32>, %ids: tensor<2xi64>, %updates: tensor<3xf32>) -> tensor<8xf32> {
  // expected-error @below {{expected the updates to have size 2 in dimension 0, but got 3}}
  %r = "onnx.ScatterElements"(%x, %ids, %updates) : (tensor<8xf32>, tensor<2xi64>, tensor<3xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @scatter_reduction(%x: tensor<8xf32>, %ids: tensor<2xi64>, %updates: tensor<2xf32>) -> tensor<8xf32> {
  // expected-error @below {{unsupported reduction 'mean'; supported: none, add, mul, min, max}}
  %r = "onnx.ScatterElements"(%x, %ids, %updates) {reduction = "mean"} : (tensor<8xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @triangle_of_vector(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{expected input 0 to have rank 2 or more, but got 'tensor<8xf32>'}}
  %r = "onnx.Trilu"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
