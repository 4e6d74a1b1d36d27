// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --canonicalize %s | FileCheck %s -enable-var-scope

// CHECK-DAG: #[[$COLUMN:.*]] = affine_map<(d0, d1) -> (d0, 0)>

// Divide, round to even, shift, clamp.
// CHECK-LABEL: func @per_tensor
// CHECK: arith.divf
// CHECK: math.roundeven
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: arith.minimumf
func.func @per_tensor(%x: tensor<?xf32>, %s: tensor<f32>, %z: tensor<ui8>) -> tensor<?xui8> {
  %0 = "onnx.QuantizeLinear"(%x, %s, %z) : (tensor<?xf32>, tensor<f32>, tensor<ui8>) -> tensor<?xui8>
  return %0 : tensor<?xui8>
}

// The scale of an axis is read by its index.
// CHECK-LABEL: func @per_axis
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$COLUMN]], #{{.*}}]
func.func @per_axis(%x: tensor<3x4xi8>, %s: tensor<3xf32>) -> tensor<3x4xf32> {
  %0 = "onnx.DequantizeLinear"(%x, %s) {axis = 0 : i64} : (tensor<3x4xi8>, tensor<3xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// One scale for 32 elements along the axis; 4-bit integers are bytes here.
// CHECK-LABEL: func @blocked
// CHECK-SAME: tensor<8x64xi8>
// CHECK: arith.divui %{{.*}}, %c32
// CHECK: tensor.extract
func.func @blocked(%x: tensor<8x64xi4>, %s: tensor<8x2xf16>) -> tensor<8x64xf16> {
  %0 = "onnx.DequantizeLinear"(%x, %s) {axis = 1 : i64, block_size = 32 : i64} : (tensor<8x64xi4>, tensor<8x2xf16>) -> tensor<8x64xf16>
  return %0 : tensor<8x64xf16>
}
