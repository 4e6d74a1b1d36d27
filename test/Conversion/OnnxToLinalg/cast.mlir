// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --canonicalize %s | FileCheck %s -enable-var-scope

// Out of range is the nearest value, NaN is 0.
// CHECK-LABEL: func @f32_to_i64
// CHECK: arith.cmpf une
// CHECK: arith.select
// CHECK: arith.maximumf
// CHECK: arith.minimumf
// CHECK: arith.fptosi %{{.*}} : f32 to i64
func.func @f32_to_i64(%a: tensor<?xf32>) -> tensor<?xi64> {
  %0 = "onnx.Cast"(%a) {to = 7 : i64} : (tensor<?xf32>) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}

// Narrow integers keep the low bits, and are bytes.
// CHECK-LABEL: func @i8_to_i4
// CHECK-SAME: -> (tensor<?xi8> {onnx.type = tensor<?xi4>})
// CHECK: %[[HIGH:.*]] = arith.shli %{{.*}}, %c4_i8
// CHECK: arith.shrsi %[[HIGH]], %c4_i8
func.func @i8_to_i4(%a: tensor<?xi8>) -> tensor<?xi4> {
  %0 = "onnx.Cast"(%a) {to = 22 : i64} : (tensor<?xi8>) -> tensor<?xi4>
  return %0 : tensor<?xi4>
}

// An 8-bit float is the byte that holds it. FNUZ formats have no minus zero, whose code is NaN.
// CHECK-LABEL: func @f8_to_f32
// CHECK-SAME: tensor<?xi8>
// CHECK: arith.extui %{{.*}} : i8 to i32
// CHECK: arith.cmpi eq, %{{.*}}, %c128_i32
// CHECK: arith.bitcast %{{.*}} : i32 to f32
func.func @f8_to_f32(%a: tensor<?xf8E4M3FNUZ>) -> tensor<?xf32> {
  %0 = "onnx.Cast"(%a) {to = 1 : i64} : (tensor<?xf8E4M3FNUZ>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// Without saturation what is too large becomes NaN (127) where there is no infinity; with it the largest number (126).
// CHECK-LABEL: func @saturation
// CHECK: arith.cmpi sgt, %{{.*}}, %c126_i32
// CHECK: arith.select %{{.*}}, %c127_i32, %{{.*}}
// CHECK: arith.cmpi sgt, %{{.*}}, %c126_i32
// CHECK: arith.select %{{.*}}, %c126_i32, %{{.*}}
func.func @saturation(%a: tensor<2xf32>) -> (tensor<2xf8E4M3FN>, tensor<2xf8E4M3FN>) {
  %0 = "onnx.Cast"(%a) {to = 17 : i64, saturate = 0 : i64} : (tensor<2xf32>) -> tensor<2xf8E4M3FN>
  %1 = "onnx.Cast"(%a) {to = 17 : i64} : (tensor<2xf32>) -> tensor<2xf8E4M3FN>
  return %0, %1 : tensor<2xf8E4M3FN>, tensor<2xf8E4M3FN>
}

// CHECK-LABEL: func @bit_cast
// CHECK: arith.bitcast %{{.*}} : f32 to i32
func.func @bit_cast(%a: tensor<?xf32>) -> tensor<?xui32> {
  %0 = "onnx.BitCast"(%a) {to = 12 : i64} : (tensor<?xf32>) -> tensor<?xui32>
  return %0 : tensor<?xui32>
}
