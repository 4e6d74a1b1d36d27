// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-expand-onnx-functions | FileCheck %s

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
// The body is that of the module's opset, its types are inferred, and attributes have the schema's defaults.
// CHECK-LABEL: @window
// CHECK-NOT: onnx.HannWindow
// CHECK: onnx.Cos
// CHECK: return {{.*}} : tensor<?xf32>
func.func @window(%n: tensor<i64>) -> tensor<?xf32> {
  %0 = "onnx.HannWindow"(%n) : (tensor<i64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// What has a lowering stays.
// CHECK-LABEL: @others
// CHECK: onnx.Add
func.func @others(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "onnx.Add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}
