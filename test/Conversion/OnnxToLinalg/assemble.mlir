// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --hone-convert-onnx-to-linalg --canonicalize --cse | FileCheck %s -enable-var-scope

// CHECK-LABEL: @concat_cache(
// CHECK: %[[ALL:.*]] = arith.addi
// CHECK: tensor.empty(%[[ALL]]) : tensor<1x?x4xf32>
// CHECK: tensor.insert_slice %arg0 into %{{.*}}[0, 0, 0]
// CHECK: tensor.insert_slice %arg1 into %{{.*}}[0, %{{.*}}, 0]
func.func @concat_cache(%past: tensor<1x?x4xf32>, %new: tensor<1x?x4xf32>) -> tensor<1x?x4xf32> {
  %r = "onnx.Concat"(%past, %new) {axis = -2 : i64} : (tensor<1x?x4xf32>, tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  return %r : tensor<1x?x4xf32>
}

// -----

// Sizes that a part only says at run time are checked, and known afterwards.
// CHECK-LABEL: @concat_checks(
// CHECK: hrt.check %{{.*}}, "expected the inputs to agree in dimension 1"
// CHECK: tensor.empty() : tensor<5x3xf32>
func.func @concat_checks(%a: tensor<2x?xf32>, %b: tensor<3x3xf32>) -> tensor<5x?xf32> {
  %r = "onnx.Concat"(%a, %b) {axis = 0 : i64} : (tensor<2x?xf32>, tensor<3x3xf32>) -> tensor<5x?xf32>
  return %r : tensor<5x?xf32>
}

// -----

// `x[:, 1:, -9223372036854775808:]` needs no clamping at run time but that of the start.
// CHECK-LABEL: @slice_to_the_end(
// CHECK: %[[START:.*]] = arith.minsi
// CHECK: tensor.extract_slice %arg0[%[[START]], 0] {{.*}} [1, 1]
func.func @slice_to_the_end(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %starts = "onnx.Constant"() {value_ints = array<i64: 1, -9223372036854775808>} : () -> tensor<2xi64>
  %ends = "onnx.Constant"() {value_ints = array<i64: 9223372036854775807, 2147483647>} : () -> tensor<2xi64>
  %r = "onnx.Slice"(%x, %starts, %ends) : (tensor<?x8xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: @slice_backward(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4xf32>)
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[BACK:.*]] = arith.muli %[[I]], %c-2
// CHECK: arith.addi %[[BACK]], %c7
func.func @slice_backward(%x: tensor<8xf32>) -> tensor<4xf32> {
  %start = "onnx.Constant"() {value_ints = array<i64: -1>} : () -> tensor<1xi64>
  %end = "onnx.Constant"() {value_ints = array<i64: -9223372036854775807>} : () -> tensor<1xi64>
  %axis = "onnx.Constant"() {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  %step = "onnx.Constant"() {value_ints = array<i64: -2>} : () -> tensor<1xi64>
  %r = "onnx.Slice"(%x, %start, %end, %axis, %step) : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Nothing is left of a slice that takes all, and an empty slice at the very end is no slice at all.
// CHECK-LABEL: @slice_all_and_nothing(
// CHECK: %[[NONE:.*]] = tensor.empty() : tensor<0xf32>
// CHECK: return %arg0, %[[NONE]]
func.func @slice_all_and_nothing(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<0xf32>) {
  %zero = "onnx.Constant"() {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  %end = "onnx.Constant"() {value_ints = array<i64: 8>} : () -> tensor<1xi64>
  %all = "onnx.Slice"(%x, %zero, %end) : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  %none = "onnx.Slice"(%x, %end, %end) : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<0xf32>
  return %all, %none : tensor<8xf32>, tensor<0xf32>
}

// -----

// CHECK-LABEL: @split_uneven(
// CHECK: tensor.extract_slice %arg0[0] [3] [1]
// CHECK: tensor.extract_slice %arg0[3] [3] [1]
// CHECK: tensor.extract_slice %arg0[6] [1] [1]
func.func @split_uneven(%x: tensor<7xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<1xf32>) {
  %r:3 = "onnx.Split"(%x) {num_outputs = 3 : i64} : (tensor<7xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<1xf32>)
  return %r#0, %r#1, %r#2 : tensor<3xf32>, tensor<3xf32>, tensor<1xf32>
}

// -----

// Equal parts of a multiple are equal without a check.
// CHECK-LABEL: @split_dynamic(
// CHECK-NOT: hrt.check
// CHECK: tensor.extract_slice %arg0[0, 0] [%[[N:.*]], 4] [1, 1]
// CHECK: tensor.extract_slice %arg0[0, 4] [%[[N]], 4] [1, 1]
func.func @split_dynamic(%x: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %r:2 = "onnx.Split"(%x) {axis = 1 : i64, num_outputs = 2 : i64} : (tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// A negative pad crops.
// CHECK-LABEL: @pad_and_crop(
// CHECK: linalg.fill {{.*}} outs(%{{.*}} : tensor<4xf32>)
// CHECK: %[[INNER:.*]] = tensor.extract_slice %arg0[0] [2] [1]
// CHECK: tensor.insert_slice %[[INNER]] into %{{.*}}[2] [2] [1]
func.func @pad_and_crop(%x: tensor<3xf32>) -> tensor<4xf32> {
  %pads = "onnx.Constant"() {value_ints = array<i64: 2, -1>} : () -> tensor<2xi64>
  %r = "onnx.Pad"(%x, %pads) : (tensor<3xf32>, tensor<2xi64>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// CHECK-LABEL: @depth_to_space(
// CHECK: tensor.expand_shape {{.*}} output_shape [1, 2, 2, 3, 2, 3]
// CHECK: linalg.transpose {{.*}} permutation = [0, 3, 4, 1, 5, 2]
// CHECK: tensor.collapse_shape
func.func @depth_to_space(%x: tensor<1x12x2x3xf32>) -> tensor<1x3x4x6xf32> {
  %r = "onnx.DepthToSpace"(%x) {blocksize = 2 : i64} : (tensor<1x12x2x3xf32>) -> tensor<1x3x4x6xf32>
  return %r : tensor<1x3x4x6xf32>
}
