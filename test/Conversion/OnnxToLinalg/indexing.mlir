// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --hone-convert-onnx-to-linalg --canonicalize --cse | FileCheck %s -enable-var-scope

// Indices are checked once, before the loop that reads by them; negative ones count from the end.
// CHECK-LABEL: @gather_rows(
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins(%arg1
// CHECK: hrt.check %{{.*}}, "expected indices inside their dimension"
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<?x?x4xf32>)
// CHECK: arith.select
// CHECK: tensor.extract %arg0[%{{.*}}, %{{.*}}] : tensor<100x4xf32>
func.func @gather_rows(%table: tensor<100x4xf32>, %ids: tensor<?x?xi64>) -> tensor<?x?x4xf32> {
  %r = "onnx.Gather"(%table, %ids) : (tensor<100x4xf32>, tensor<?x?xi64>) -> tensor<?x?x4xf32>
  return %r : tensor<?x?x4xf32>
}

// -----

// One known index is a slice.
// CHECK-LABEL: @gather_last(
// CHECK-NOT: linalg.generic
// CHECK: %[[ONE:.*]] = tensor.extract_slice %arg0[0, 2, 0] [2, 1, 4] [1, 1, 1] : tensor<2x3x4xf32> to tensor<2x1x4xf32>
// CHECK: tensor.collapse_shape %[[ONE]] {{\[\[}}0], [1, 2]] : tensor<2x1x4xf32> into tensor<2x4xf32>
func.func @gather_last(%x: tensor<2x3x4xf32>) -> tensor<2x4xf32> {
  %last = "onnx.Constant"() {value_int = -1 : i64} : () -> tensor<i64>
  %r = "onnx.Gather"(%x, %last) {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<i64>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @gather_nd_batched(
// CHECK: hrt.check
// CHECK: tensor.extract %arg0[%{{.*}}, %{{.*}}, %{{.*}}] : tensor<2x3x4xf32>
func.func @gather_nd_batched(%x: tensor<2x3x4xf32>, %ids: tensor<2x1xi64>) -> tensor<2x4xf32> {
  %r = "onnx.GatherND"(%x, %ids) {batch_dims = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x1xi64>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @scatter_add(
// CHECK: hrt.check
// CHECK: scf.for {{.*}} iter_args(%[[DATA:.*]] = %arg0)
// CHECK: %[[OLD:.*]] = tensor.extract %[[DATA]]
// CHECK: %[[SUM:.*]] = arith.addf %[[OLD]]
// CHECK: tensor.insert %[[SUM]] into %[[DATA]]
func.func @scatter_add(%x: tensor<8xf32>, %ids: tensor<?xi64>, %updates: tensor<?xf32>) -> tensor<8xf32> {
  %r = "onnx.ScatterElements"(%x, %ids, %updates) {reduction = "add"} : (tensor<8xf32>, tensor<?xi64>, tensor<?xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Whole slices are written at once.
// CHECK-LABEL: @scatter_slices(
// CHECK: scf.for
// CHECK: %[[ROW:.*]] = tensor.extract_slice %arg2[%{{.*}}, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
// CHECK: tensor.insert_slice %[[ROW]] into %{{.*}}[%{{.*}}, 0] [1, 4] [1, 1]
func.func @scatter_slices(%x: tensor<8x4xf32>, %ids: tensor<2x1xi64>, %updates: tensor<2x4xf32>) -> tensor<8x4xf32> {
  %r = "onnx.ScatterND"(%x, %ids, %updates) : (tensor<8x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// The size of the result is counted before it is filled.
// CHECK-LABEL: @nonzero(
// CHECK: %[[COUNT:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<?xi1>)
// CHECK: tensor.extract %[[COUNT]][]
// CHECK: scf.for
// CHECK: tensor.extract_slice
func.func @nonzero(%x: tensor<?xi1>) -> tensor<1x?xi64> {
  %r = "onnx.NonZero"(%x) : (tensor<?xi1>) -> tensor<1x?xi64>
  return %r : tensor<1x?xi64>
}

// -----

// CHECK-LABEL: @triangle(
// CHECK: %[[EDGE:.*]] = arith.addi %{{.*}}, %c1
// CHECK: arith.cmpi sge, %{{.*}}, %[[EDGE]]
func.func @triangle(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %one = "onnx.Constant"() {value_int = 1 : i64} : () -> tensor<i64>
  %r = "onnx.Trilu"(%x, %one) : (tensor<?x?xf32>, tensor<i64>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// What a router chose is in range, and nothing asks. Few indices, which do not meet, are compared with the place of every element.
// CHECK-LABEL: @write_choices(
// CHECK-NOT: "expected indices inside
// CHECK: %[[MASK:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<?x8xf32>) outs
// CHECK: math.absf
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{[^,]*}}, %arg1 : tensor<?x2xi64>, tensor<?x2xf32>) outs(%[[MASK]] : tensor<?x8xf32>)
// CHECK: ^bb0(%[[ID:.*]]: i64, %[[UPDATE:.*]]: f32, %[[OLD:.*]]: f32):
// CHECK: %[[HERE:.*]] = arith.cmpi eq
// CHECK: arith.select %[[HERE]], %[[UPDATE]], %[[OLD]]
// CHECK-NOT: scf.for
func.func @write_choices(%scores: tensor<?x8xf32>, %updates: tensor<?x2xf32>) -> tensor<?x8xf32> {
  %k = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %values, %ids = "onnx.TopK"(%scores, %k) : (tensor<?x8xf32>, tensor<1xi64>) -> (tensor<?x2xf32>, tensor<?x2xi64>)
  %mask = "onnx.Abs"(%scores) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = "onnx.ScatterElements"(%mask, %ids, %updates) {axis = 1 : i64} : (tensor<?x8xf32>, tensor<?x2xi64>, tensor<?x2xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
