// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --canonicalize --split-input-file %s | FileCheck %s -enable-var-scope

// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1) -> (0, d1)>

// 16-bit floats are computed in f32 and rounded once.
// CHECK-LABEL: func @add_f16
// CHECK: %[[L:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[R:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[SUM:.*]] = arith.addf %[[L]], %[[R]] : f32
// CHECK: arith.truncf %[[SUM]] : f32 to f16
func.func @add_f16(%a: tensor<4xf16>, %b: tensor<4xf16>) -> tensor<4xf16> {
  %0 = "onnx.Add"(%a, %b) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// A size of 1 is broadcast by the indexing map, without a copy.
// CHECK-LABEL: func @mul_broadcast
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$ROW]], #{{.*}}]
// CHECK: arith.mulf
func.func @mul_broadcast(%a: tensor<3x4xf32>, %b: tensor<1x4xf32>) -> tensor<3x4xf32> {
  %0 = "onnx.Mul"(%a, %b) : (tensor<3x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// Integer division cannot trap: 0 and -1 are not divided by.
// CHECK-LABEL: func @div_i32
// CHECK: %[[IS_ZERO:.*]] = arith.cmpi eq, %[[Y:.*]], %c0_i32
// CHECK: %[[ONE:.*]] = arith.select %[[IS_ZERO]], %c1_i32, %[[Y]]
// CHECK: %[[SAFE:.*]] = arith.select %{{.*}}, %c1_i32, %[[ONE]]
// CHECK: arith.divsi %{{.*}}, %[[SAFE]]
func.func @div_i32(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi32> {
  %0 = "onnx.Div"(%a, %b) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// The operator's own type says that integers are unsigned.
// CHECK-LABEL: func @max_u8
// CHECK: arith.maxui
func.func @max_u8(%a: tensor<4xui8>, %b: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "onnx.Max"(%a, %b) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// A constant exponent becomes products.
// CHECK-LABEL: func @pow_2
// CHECK: ^bb0(%[[X:[a-z0-9_]+]]: f32
// CHECK-NEXT: arith.mulf %[[X]], %[[X]]
// CHECK-NOT: math.powf
func.func @pow_2(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "onnx.Constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %1 = "onnx.Pow"(%a, %0) : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// The rest of a size by a positive number is a size: here 0.
// CHECK-LABEL: func @mod_of_size
// CHECK: %[[ZERO:.*]] = arith.constant dense<0> : tensor<1xi64>
// CHECK: return %[[ZERO]]
func.func @mod_of_size(%a: tensor<?xf32>) -> tensor<1xi64> {
  %0 = "onnx.Shape"(%a) : (tensor<?xf32>) -> tensor<1xi64>
  %1 = "onnx.Constant"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
  %2 = "onnx.Mul"(%0, %1) : (tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  %3 = "onnx.Mod"(%2, %1) : (tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  return %3 : tensor<1xi64>
}

// -----

// Bounds are attributes before opset 11.
// CHECK-LABEL: func @clip_6
// CHECK: arith.maximumf
// CHECK-NOT: arith.minimumf
module attributes {onnx.opsets = {ai.onnx = 6 : i64}} {
  func.func @clip_6(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "onnx.Clip"(%a) {min = 0.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
