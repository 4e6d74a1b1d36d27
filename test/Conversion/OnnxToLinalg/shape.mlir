// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --hone-convert-onnx-to-linalg --canonicalize --cse | FileCheck %s -enable-var-scope

// The shape chain of a traced `x.view(batch, sequence, 4, -1)`: no tensor of integers is left.
// CHECK-LABEL: @traced_view(
// CHECK-SAME: %[[X:.*]]: tensor<?x?x64xf32>
// CHECK-NOT: i64
// CHECK: tensor.expand_shape %[[X]] {{\[\[}}0], [1], [2, 3]] {{.*}} : tensor<?x?x64xf32> into tensor<?x?x4x16xf32>
func.func @traced_view(%x: tensor<?x?x64xf32>) -> tensor<?x?x4x?xf32> {
  %shape = "onnx.Shape"(%x) : (tensor<?x?x64xf32>) -> tensor<3xi64>
  %zero = "onnx.Constant"() {value_int = 0 : i64} : () -> tensor<i64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %axes = "onnx.Constant"() {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  %b = "onnx.Gather"(%shape, %zero) : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %s = "onnx.Gather"(%shape, %one) : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %b1 = "onnx.Unsqueeze"(%b, %axes) : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
  %s1 = "onnx.Unsqueeze"(%s, %axes) : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
  %rest = "onnx.Constant"() {value = dense<[4, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %to = "onnx.Concat"(%b1, %s1, %rest) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<2xi64>) -> tensor<4xi64>
  %y = "onnx.Reshape"(%x, %to) : (tensor<?x?x64xf32>, tensor<4xi64>) -> tensor<?x?x4x?xf32>
  return %y : tensor<?x?x4x?xf32>
}

// -----

// dynamo's `expand`: sizes of -1 are replaced by 1 through Equal and Where, which folds since sizes are never negative.
// CHECK-LABEL: @expand_by_where(
// CHECK-SAME: %[[X:.*]]: tensor<?x1xf32>
// CHECK-NOT: tensor.from_elements
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<?x1xf32>) outs(%{{.*}} : tensor<?x?xf32>)
// CHECK-NOT: tensor.extract
func.func @expand_by_where(%x: tensor<?x1xf32>, %y: tensor<?xi64>) -> tensor<?x?xf32> {
  %n = "onnx.Shape"(%y) : (tensor<?xi64>) -> tensor<1xi64>
  %keep = "onnx.Constant"() {value_ints = array<i64: -1>} : () -> tensor<1xi64>
  %ones = "onnx.Constant"() {value_ints = array<i64: 1, 1>} : () -> tensor<2xi64>
  %minus = "onnx.Constant"() {value_ints = array<i64: -1, -1>} : () -> tensor<2xi64>
  %to = "onnx.Concat"(%keep, %n) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %is = "onnx.Equal"(%to, %minus) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
  %sizes = "onnx.Where"(%is, %ones, %to) : (tensor<2xi1>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %r = "onnx.Expand"(%x, %sizes) : (tensor<?x1xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// A dimension whose name is a sum is that sum: the mask needs no run-time broadcast against [past + sequence].
// CHECK-LABEL: @sum_of_names(
// CHECK: hrt.check %{{.*}}, "input 'mask': expected dimension 1 to be p + s"
// CHECK: linalg.generic
// CHECK-NOT: tensor.extract
// CHECK: arith.addf
func.func @sum_of_names(%mask: tensor<?x?xf32> {onnx.name = "mask", onnx.dims = ["b", "p + s"]},
                        %past: tensor<?x?xf32> {onnx.dims = ["b", "p"]},
                        %new: tensor<?x?xf32> {onnx.dims = ["b", "s"]}) -> tensor<?x?xf32> {
  %all = "onnx.Concat"(%past, %new) {axis = 1 : i64} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = "onnx.Add"(%all, %mask) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// Known only at run time, 0 keeps a size, -1 infers one, and the number of elements is checked.
// CHECK-LABEL: @reshape_at_run_time(
// CHECK: hrt.check %{{.*}}, "expected the new shape to have {} elements as the input has, but got {}"
// CHECK: tensor.reshape
func.func @reshape_at_run_time(%x: tensor<?x6xf32>, %to: tensor<3xi64>) -> tensor<?x?x?xf32> {
  %r = "onnx.Reshape"(%x, %to) : (tensor<?x6xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}

// -----

// CHECK-LABEL: @constant_range
// CHECK: dense<[7, 5, 3]> : tensor<3xi64>
func.func @constant_range() -> tensor<3xi64> {
  %start = "onnx.Constant"() {value_int = 7 : i64} : () -> tensor<i64>
  %limit = "onnx.Constant"() {value_int = 2 : i64} : () -> tensor<i64>
  %delta = "onnx.Constant"() {value_int = -2 : i64} : () -> tensor<i64>
  %r = "onnx.Range"(%start, %limit, %delta) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<3xi64>
  return %r : tensor<3xi64>
}

// -----

// Range(past, past + sequence) has `sequence` elements, whatever both are.
// CHECK-LABEL: @range_of_positions(
// CHECK: %[[S:.*]] = tensor.dim %arg1
// CHECK: tensor.empty(%[[S]]) : tensor<?xi64>
func.func @range_of_positions(%past: tensor<?xf32>, %new: tensor<?xf32>) -> tensor<?xi64> {
  %axes = "onnx.Constant"() {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  %delta = "onnx.Constant"() {value_int = 1 : i64} : () -> tensor<i64>
  %p1 = "onnx.Shape"(%past) : (tensor<?xf32>) -> tensor<1xi64>
  %s1 = "onnx.Shape"(%new) : (tensor<?xf32>) -> tensor<1xi64>
  %p = "onnx.Squeeze"(%p1, %axes) : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
  %s = "onnx.Squeeze"(%s1, %axes) : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
  %end = "onnx.Add"(%s, %p) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %r = "onnx.Range"(%p, %end, %delta) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  return %r : tensor<?xi64>
}

// -----

// CHECK-LABEL: @to_and_from_scalar(
// CHECK: tensor.collapse_shape %{{.*}} [] : tensor<1x1xf32> into tensor<f32>
// CHECK: tensor.expand_shape %{{.*}} [] output_shape [1, 1, 1]
func.func @to_and_from_scalar(%x: tensor<1x1xf32>, %y: tensor<f32>) -> (tensor<f32>, tensor<1x1x1xf32>) {
  %none = "onnx.Constant"() {value = dense<> : tensor<0xi64>} : () -> tensor<0xi64>
  %three = "onnx.Constant"() {value_ints = array<i64: 1, -1, 1>} : () -> tensor<3xi64>
  %s = "onnx.Reshape"(%x, %none) : (tensor<1x1xf32>, tensor<0xi64>) -> tensor<f32>
  %t = "onnx.Reshape"(%y, %three) : (tensor<f32>, tensor<3xi64>) -> tensor<1x1x1xf32>
  return %s, %t : tensor<f32>, tensor<1x1x1xf32>
}

// -----

// CHECK-LABEL: @tile(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x?x3xf32>)
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<2x?x3xf32> into tensor<?x3xf32>
func.func @tile(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %repeats = "onnx.Constant"() {value_ints = array<i64: 2, 1>} : () -> tensor<2xi64>
  %r = "onnx.Tile"(%x, %repeats) : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}

// -----

// What hone operations make is as large as what they read: neither the addition nor the reshape needs a check.
// CHECK-LABEL: @sizes_of_hone(
// CHECK-NOT: hrt.check
// CHECK: %[[Y:.*]] = hone.linear
// CHECK-NOT: hrt.check
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %{{.*}} : tensor<?x?x64xf32>, tensor<?x?x64xf32>)
// CHECK-NOT: hrt.check
// CHECK: tensor.expand_shape {{.*}} : tensor<?x?x64xf32> into tensor<?x?x4x16xf32>
func.func @sizes_of_hone(%x: tensor<?x?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x?x4x?xf32> {
  %y = hone.linear %x, %w : (tensor<?x?x64xf32>, tensor<64x64xf32>) -> tensor<?x?x64xf32>
  %z = "onnx.Add"(%y, %x) : (tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  %sizes = "onnx.Shape"(%x) {start = 0 : i64, end = 2 : i64} : (tensor<?x?x64xf32>) -> tensor<2xi64>
  %rest = "onnx.Constant"() {value = dense<[-1, 16]> : tensor<2xi64>} : () -> tensor<2xi64>
  %to = "onnx.Concat"(%sizes, %rest) {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
  %r = "onnx.Reshape"(%z, %to) : (tensor<?x?x64xf32>, tensor<4xi64>) -> tensor<?x?x4x?xf32>
  return %r : tensor<?x?x4x?xf32>
}

// -----

// A size that only lowering finds out stays fixed through operations of the dialect that were declared without it.
// CHECK-LABEL: @fixed_through_hone(
// CHECK: hone.rope {{.*}} : (tensor<?x?x4x16xf32>, {{.*}}) -> tensor<?x?x4x16xf32>
// CHECK: linalg.transpose ins(%{{.*}} : tensor<?x?x4x16xf32>) outs(%{{.*}} : tensor<?x4x?x16xf32>)
func.func @fixed_through_hone(%x: tensor<?x?x64xf32>, %cos: tensor<1x4x8xf32>, %sin: tensor<1x4x8xf32>) -> tensor<?x?x?x16xf32> {
  %sizes = "onnx.Shape"(%x) {start = 0 : i64, end = 2 : i64} : (tensor<?x?x64xf32>) -> tensor<2xi64>
  %rest = "onnx.Constant"() {value = dense<[-1, 16]> : tensor<2xi64>} : () -> tensor<2xi64>
  %to = "onnx.Concat"(%sizes, %rest) {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
  %r = "onnx.Reshape"(%x, %to) : (tensor<?x?x64xf32>, tensor<4xi64>) -> tensor<?x?x?x16xf32>
  %y = hone.rope %r, %cos, %sin : (tensor<?x?x?x16xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<?x?x?x16xf32>
  %z = "onnx.Transpose"(%y) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32>
  return %z : tensor<?x?x?x16xf32>
}

// -----

// Axes of size 1 are all: the declared result of what is made of it has no dimension.
// CHECK-LABEL: @squeeze_to_scalar(
// CHECK: hrt.check {{.*}}expected what is squeezed to have size 1, as the declared result says, but got {}
// CHECK: return %{{.*}} : tensor<f32>
func.func @squeeze_to_scalar(%x: tensor<?x1xf32>) -> tensor<f32> {
  %four = "onnx.Constant"() {value_float = 4.0 : f32} : () -> tensor<f32>
  %s = "onnx.Squeeze"(%x) : (tensor<?x1xf32>) -> tensor<*xf32>
  %y = "onnx.Sigmoid"(%s) : (tensor<*xf32>) -> tensor<*xf32>
  %r = "onnx.Mul"(%y, %four) : (tensor<*xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// A declared rank that has the open dimension keeps it.
// CHECK-LABEL: @squeeze_to_rows(
// CHECK: return %{{.*}} : tensor<?xf32>
func.func @squeeze_to_rows(%x: tensor<?x1xf32>) -> tensor<?xf32> {
  %s = "onnx.Squeeze"(%x) : (tensor<?x1xf32>) -> tensor<*xf32>
  %r = "onnx.Sigmoid"(%s) : (tensor<*xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// The states of a recurrent layer fix its batch, and so what a Squeeze after it finds.
// CHECK-LABEL: @squeeze_after_recurrence(
// CHECK: hrt.check {{.*}}the input of a recurrent layer: expected dimension 1 to be 1, but got {}
// CHECK: return %{{.*}} : tensor<5x3xf32>
func.func @squeeze_after_recurrence(%x: tensor<5x?x2xf32>, %w: tensor<1x9x2xf32>, %r: tensor<1x9x3xf32>, %h: tensor<1x1x3xf32>) -> tensor<*xf32> {
  %none = "onnx.NoValue"() : () -> none
  %y, %last = "onnx.GRU"(%x, %w, %r, %none, %none, %h) {hidden_size = 3 : i64} : (tensor<5x?x2xf32>, tensor<1x9x2xf32>, tensor<1x9x3xf32>, none, none, tensor<1x1x3xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  %s = "onnx.Squeeze"(%y) : (tensor<*xf32>) -> tensor<*xf32>
  return %s : tensor<*xf32>
}
