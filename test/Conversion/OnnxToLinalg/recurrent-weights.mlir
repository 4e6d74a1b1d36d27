// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Weights of recurrent layers that constants alone make are parameters: no call computes or cuts them again.
//
// RUN: hone-opt %s --split-input-file --hone-expand-onnx-functions=domain=com.microsoft --hone-convert-onnx-to-linalg --canonicalize | FileCheck %s -enable-var-scope

// Torch's exporter reorders the gates of a cell by slices.
// CHECK-LABEL: module
// CHECK: hone.param @[[$RECURRENCE:[^ ]+]] : tensor<3x3xf32>
// CHECK: hone.param @[[$WEIGHT:[^ ]+]] : tensor<3x2xf32> = dense_resource<[[$ROWS:[^>]+]]>
// CHECK-LABEL: @reordered(
// CHECK-NOT: tensor.extract_slice
// CHECK-DAG: %[[W:.*]] = hone.get_param @[[$WEIGHT]]
// CHECK-DAG: %[[R:.*]] = hone.get_param @[[$RECURRENCE]]
// CHECK: hone.linear %{{.*}}, %[[W]]
// CHECK: scf.for
// CHECK: hone.linear %{{.*}}, %[[R]]
// 3, 4, 5, 6, and then the first row.
// CHECK: [[$ROWS]]: "0x4000000000004040000080400000A0400000C0400000803F00000040"
hone.param @w : tensor<3x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
hone.param @r : tensor<1x3x3xf32> = dense<0.5> : tensor<1x3x3xf32>
func.func @reordered(%x: tensor<4x1x2xf32>) -> tensor<*xf32> {
  %w = hone.get_param @w : tensor<3x2xf32>
  %r = hone.get_param @r : tensor<1x3x3xf32>
  %zero = "onnx.Constant"() {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value_ints = array<i64: 1>} : () -> tensor<1xi64>
  %end = "onnx.Constant"() {value_ints = array<i64: 9223372036854775807>} : () -> tensor<1xi64>
  %first = "onnx.Slice"(%w, %zero, %one, %zero) : (tensor<3x2xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  %rest = "onnx.Slice"(%w, %one, %end, %zero) : (tensor<3x2xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  %rows = "onnx.Concat"(%rest, %first) {axis = 0 : i64} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %weight = "onnx.Unsqueeze"(%rows, %zero) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %y, %h = "onnx.RNN"(%x, %weight, %r) {hidden_size = 3 : i64} : (tensor<4x1x2xf32>, tensor<*xf32>, tensor<1x3x3xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  return %h : tensor<*xf32>
}

// -----

// Two products of a state have rows of their own.
// CHECK-LABEL: module
// CHECK: hone.param @[[$CANDIDATE:[^ ]+]] : tensor<3x3xf32>
// CHECK: hone.param @[[$GATES:[^ ]+]] : tensor<6x3xf32>
// CHECK-LABEL: @gates(
// CHECK-DAG: %[[G:.*]] = hone.get_param @[[$GATES]]
// CHECK-DAG: %[[C:.*]] = hone.get_param @[[$CANDIDATE]]
// CHECK: hone.linear %{{.*}}, %[[G]]
// CHECK: hone.linear %{{.*}}, %[[C]]
hone.param @r : tensor<1x9x3xf32> = dense<0.5> : tensor<1x9x3xf32>
func.func @gates(%x: tensor<4x1x2xf32>, %w: tensor<1x9x2xf32>) -> tensor<*xf32> {
  %r = hone.get_param @r : tensor<1x9x3xf32>
  %y, %h = "onnx.GRU"(%x, %w, %r) {hidden_size = 3 : i64} : (tensor<4x1x2xf32>, tensor<1x9x2xf32>, tensor<1x9x3xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  return %h : tensor<*xf32>
}

// -----

// Integers without zero points stay what the file has, a matrix for each direction; others become floats.
// CHECK: hone.param @{{.*}} : tensor<8x2xf32> = dense_resource
// CHECK: hone.param @w.{{.*}} : tensor<8x3xf32, #hone.affine<bits = 8, isSigned = true, transposed = true, activations = 8, atLeast = true>> = {scales = {{.*}} : tensor<1x8xf32>, values = {{.*}} : tensor<3x8xi8>}
module attributes {onnx.opsets = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
hone.param @w : tensor<1x3x8xi8> = dense<3> : tensor<1x3x8xi8>
hone.param @r : tensor<1x2x8xi8> = dense<3> : tensor<1x2x8xi8>
// CHECK-LABEL: @integers(
func.func @integers(%x: tensor<?x?x3xf32>) -> tensor<*xf32> {
  %none = "onnx.NoValue"() : () -> none
  %w = hone.get_param @w : tensor<1x3x8xi8>
  %r = hone.get_param @r : tensor<1x2x8xi8>
  %s = "onnx.Constant"() {value = dense<0.5> : tensor<1xf32>} : () -> tensor<1xf32>
  %z = "onnx.Constant"() {value = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %rz = "onnx.Constant"() {value = dense<1> : tensor<1xi8>} : () -> tensor<1xi8>
  %0:2 = "onnx.com.microsoft.DynamicQuantizeLSTM"(%x, %w, %r, %none, %none, %none, %none, %none, %s, %z, %s, %rz) {hidden_size = 2 : i64} : (tensor<?x?x3xf32>, tensor<1x3x8xi8>, tensor<1x2x8xi8>, none, none, none, none, none, tensor<1xf32>, tensor<1xi8>, tensor<1xf32>, tensor<1xi8>) -> (tensor<*xf32>, tensor<*xf32>)
  return %0#0 : tensor<*xf32>
}
}
