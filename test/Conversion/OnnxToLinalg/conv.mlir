// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-convert-onnx-to-linalg | FileCheck %s

// Groups are a dimension of their own; windows are affine in the output and the kernel position.
// CHECK: #[[$X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 * 2 + d6, d4 * 2 + d7)>
// CHECK: #[[$W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>
module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
// CHECK-LABEL: @conv
// CHECK: tensor.insert_slice %arg0 into {{.*}}[0, 0, 1, 1]
// CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$W]],
// CHECK: tensor.collapse_shape
func.func @conv(%x: tensor<?x4x9x9xf32>, %w: tensor<6x2x3x3xf32>) -> tensor<?x6x5x5xf32> {
  %0 = "onnx.Conv"(%x, %w) {group = 2 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<?x4x9x9xf32>, tensor<6x2x3x3xf32>) -> tensor<?x6x5x5xf32>
  return %0 : tensor<?x6x5x5xf32>
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
