// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-convert-onnx-to-linalg | FileCheck %s

// CHECK-DAG: #[[$X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 * 2 + d6, d4 * 2 + d7)>
// CHECK-DAG: #[[$W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>
module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
// The padding belongs to the operation.
// CHECK-LABEL: @conv
// CHECK: %[[W:.*]] = tensor.collapse_shape %arg1 {{.*}} into tensor<6x18xf32>
// CHECK: hone.convolution %arg0, %[[W]] bias(%arg2) kernel [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] groups 2
func.func @conv(%x: tensor<?x4x9x9xf32>, %w: tensor<6x2x3x3xf32>, %b: tensor<6xf32>) -> tensor<?x6x5x5xf32> {
  %0 = "onnx.Conv"(%x, %w, %b) {group = 2 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<?x4x9x9xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<?x6x5x5xf32>
  return %0 : tensor<?x6x5x5xf32>
}

// CHECK-LABEL: @open
// CHECK: hone.convolution {{.*}} sizes(%{{.*}}) kernel [3, 3]
func.func @open(%x: tensor<1x4x?x9xf32>, %w: tensor<6x4x3x3xf32>) -> tensor<1x6x?x4xf32> {
  %0 = "onnx.Conv"(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x4x?x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x?x4xf32>
  return %0 : tensor<1x6x?x4xf32>
}

// How much padding there is follows from the size.
// CHECK-LABEL: @same
// CHECK: tensor.insert_slice %arg0
// CHECK: hone.convolution {{.*}} low [0] groups 1
func.func @same(%x: tensor<1x4x?xf32>, %w: tensor<6x4x3xf32>) -> tensor<1x6x?xf32> {
  %0 = "onnx.Conv"(%x, %w) {strides = array<i64: 2>, auto_pad = "SAME_UPPER"} : (tensor<1x4x?xf32>, tensor<6x4x3xf32>) -> tensor<1x6x?xf32>
  return %0 : tensor<1x6x?xf32>
}

// Sums of f16 are f32.
// CHECK-LABEL: @half
// CHECK: arith.extf
// CHECK: hone.convolution
// CHECK: arith.truncf
func.func @half(%x: tensor<1x4x9xf16>, %w: tensor<6x4x3xf16>) -> tensor<1x6x7xf16> {
  %0 = "onnx.Conv"(%x, %w) : (tensor<1x4x9xf16>, tensor<6x4x3xf16>) -> tensor<1x6x7xf16>
  return %0 : tensor<1x6x7xf16>
}

// Groups are a dimension of their own; windows are affine in the output and the kernel position.
// CHECK-LABEL: @doubles
// CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$W]],
// CHECK-NOT: hone.convolution
func.func @doubles(%x: tensor<1x4x9x9xf64>, %w: tensor<6x2x3x3xf64>) -> tensor<1x6x4x4xf64> {
  %0 = "onnx.Conv"(%x, %w) {group = 2 : i64, strides = array<i64: 2, 2>} : (tensor<1x4x9x9xf64>, tensor<6x2x3x3xf64>) -> tensor<1x6x4x4xf64>
  return %0 : tensor<1x6x4x4xf64>
}

// A convolution for each remainder of places modulo the stride: of five taps, three and two.
// CHECK-LABEL: @transposed
// CHECK: %[[EVEN:.*]] = hone.convolution %arg0, {{.*}} kernel [3] strides [1] dilations [1] low [1] groups 1
// CHECK: tensor.insert_slice %[[EVEN]] into {{.*}}[0, 0, 1] [1, 6, 8] [1, 1, 2]
// CHECK: %[[ODD:.*]] = hone.convolution %arg0, {{.*}} kernel [2] strides [1] dilations [1] low [1] groups 1
// CHECK: tensor.insert_slice %[[ODD]] into {{.*}}[0, 0, 0] [1, 6, 9] [1, 1, 2]
func.func @transposed(%x: tensor<1x4x8xf32>, %w: tensor<4x6x5xf32>) -> tensor<1x6x17xf32> {
  %0 = "onnx.ConvTranspose"(%x, %w) {strides = array<i64: 2>, pads = array<i64: 1, 1>} : (tensor<1x4x8xf32>, tensor<4x6x5xf32>) -> tensor<1x6x17xf32>
  return %0 : tensor<1x6x17xf32>
}

// The phases of a weight that is known are parameters; those that read x by the same windows are one convolution.
// CHECK-LABEL: @transposed_together
// CHECK: %[[W:.*]] = hone.get_param @weight.0 : tensor<12x4x1xf32>
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[W]]
// CHECK: %[[BOTH:.*]] = hone.convolution %arg0, %[[ROWS]] kernel [1] {{.*}} -> tensor<1x12x8xf32>
// CHECK: %[[EVEN:.*]] = tensor.extract_slice %[[BOTH]][0, 0, 0] [1, 6, 8]
// CHECK: tensor.insert_slice %[[EVEN]] into {{.*}}[0, 0, 0] [1, 6, 8] [1, 1, 2]
// CHECK: %[[ODD:.*]] = tensor.extract_slice %[[BOTH]][0, 6, 0] [1, 6, 8]
// CHECK: tensor.insert_slice %[[ODD]] into {{.*}}[0, 0, 1] [1, 6, 8] [1, 1, 2]
func.func @transposed_together(%x: tensor<1x4x8xf32>) -> tensor<1x6x16xf32> {
  %w = "onnx.Constant"() {value = dense<1.0> : tensor<4x6x2xf32>} : () -> tensor<4x6x2xf32>
  %0 = "onnx.ConvTranspose"(%x, %w) {strides = array<i64: 2>} : (tensor<1x4x8xf32>, tensor<4x6x2xf32>) -> tensor<1x6x16xf32>
  return %0 : tensor<1x6x16xf32>
}

// With ceil_mode the last window may reach beyond the input, but not begin there.
// CHECK-LABEL: @ceil
// CHECK: hone.pool max %arg0 kernel [3] strides [2] dilations [1] low [0] : (tensor<1x1x6xf32>) -> tensor<1x1x3xf32>
func.func @ceil(%x: tensor<1x1x6xf32>) -> tensor<1x1x3xf32> {
  %0 = "onnx.MaxPool"(%x) {kernel_shape = array<i64: 3>, strides = array<i64: 2>, ceil_mode = 1 : i64} : (tensor<1x1x6xf32>) -> tensor<1x1x3xf32>
  return %0 : tensor<1x1x3xf32>
}
}
