// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-convert-onnx-to-linalg | FileCheck %s

// Groups are a dimension of their own; windows are affine in the output and the kernel position.
// CHECK-DAG: #[[$COLUMNS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d5 * 2 + d3, d6 * 2 + d4)>
// CHECK-DAG: #[[$X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 * 2 + d6, d4 * 2 + d7)>
// CHECK-DAG: #[[$W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>
module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
// CHECK-LABEL: @conv
// CHECK: tensor.insert_slice %arg0 into {{.*}}[0, 0, 1, 1]
// CHECK: linalg.generic {indexing_maps = [#[[$COLUMNS]],
// CHECK: hone.matmul {{.*}} (tensor<2x3x18xf32>, tensor<?x2x18x25xf32>) -> tensor<?x2x3x25xf32>
// CHECK: tensor.collapse_shape
func.func @conv(%x: tensor<?x4x9x9xf32>, %w: tensor<6x2x3x3xf32>) -> tensor<?x6x5x5xf32> {
  %0 = "onnx.Conv"(%x, %w) {group = 2 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<?x4x9x9xf32>, tensor<6x2x3x3xf32>) -> tensor<?x6x5x5xf32>
  return %0 : tensor<?x6x5x5xf32>
}

// One product of matrices, and no column is made.
// CHECK-LABEL: @pointwise
// CHECK-NOT: linalg.generic
// CHECK: hone.matmul {{.*}} (tensor<6x4xf32>, tensor<?x4x?xf32>) -> tensor<?x6x?xf32>
func.func @pointwise(%x: tensor<?x4x?x9xf32>, %w: tensor<6x4x1x1xf32>) -> tensor<?x6x?x9xf32> {
  %0 = "onnx.Conv"(%x, %w) : (tensor<?x4x?x9xf32>, tensor<6x4x1x1xf32>) -> tensor<?x6x?x9xf32>
  return %0 : tensor<?x6x?x9xf32>
}

// Columns could be of any size here, and here there would be one row in each product.
// CHECK-LABEL: @direct
// CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$W]],
// CHECK-NOT: hone.matmul
func.func @direct(%x: tensor<1x4x?x9xf32>, %w: tensor<6x4x3x3xf32>) -> tensor<1x6x?x4xf32> {
  %0 = "onnx.Conv"(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x4x?x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x?x4xf32>
  return %0 : tensor<1x6x?x4xf32>
}
// CHECK-LABEL: @depthwise
// CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$W]],
// CHECK-NOT: hone.matmul
func.func @depthwise(%x: tensor<1x4x9x9xf32>, %w: tensor<4x1x3x3xf32>) -> tensor<1x4x4x4xf32> {
  %0 = "onnx.Conv"(%x, %w) {group = 4 : i64, strides = array<i64: 2, 2>} : (tensor<1x4x9x9xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x4x4xf32>
  return %0 : tensor<1x4x4x4xf32>
}

// With ceil_mode the last window may reach beyond the input, but not begin there.
// CHECK-LABEL: @ceil
// CHECK: tensor.insert_slice %arg0 into {{.*}} : tensor<1x1x6xf32> into tensor<1x1x7xf32>
// CHECK: return {{.*}} : tensor<1x1x3xf32>
func.func @ceil(%x: tensor<1x1x6xf32>) -> tensor<1x1x3xf32> {
  %0 = "onnx.MaxPool"(%x) {kernel_shape = array<i64: 3>, strides = array<i64: 2>, ceil_mode = 1 : i64} : (tensor<1x1x6xf32>) -> tensor<1x1x3xf32>
  return %0 : tensor<1x1x3xf32>
}
}
