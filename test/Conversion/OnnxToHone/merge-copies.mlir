// Nodes that give what another one gives: those are left out that cannot be told apart.
//
// RUN: hone-opt %s -split-input-file --hone-merge-copies --mlir-pass-statistics 2>%t | FileCheck %s -enable-var-scope


// CHECK-LABEL: @dequantized_twice
// CHECK: %[[X:.*]] = "onnx.DequantizeLinear"(%arg0, %arg1, %arg2)
// CHECK-NOT: onnx.DequantizeLinear
// CHECK: "onnx.Mul"(%[[X]], %[[X]])
func.func @dequantized_twice(%q: tensor<?x8xui8>, %scale: tensor<f32>, %zero: tensor<ui8>) -> tensor<?x8xf32> {
  %0 = "onnx.DequantizeLinear"(%q, %scale, %zero) {axis = 1 : i64} : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x8xf32>
  %1 = "onnx.DequantizeLinear"(%q, %scale, %zero) {axis = 1 : i64} : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x8xf32>
  %2 = "onnx.Mul"(%0, %1) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// CHECK-LABEL: @another_scale
// CHECK-COUNT-2: onnx.DequantizeLinear
func.func @another_scale(%q: tensor<?x8xui8>, %scale: tensor<f32>, %other: tensor<f32>, %zero: tensor<ui8>) -> tensor<?x8xf32> {
  %0 = "onnx.DequantizeLinear"(%q, %scale, %zero) {axis = 1 : i64} : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x8xf32>
  %1 = "onnx.DequantizeLinear"(%q, %other, %zero) {axis = 1 : i64} : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x8xf32>
  %2 = "onnx.Mul"(%0, %1) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// One that an output is stays, and one that changes the type.
// CHECK-LABEL: @identities
// CHECK: %[[KNOWN:.*]] = "onnx.Identity"(%arg0) : (tensor<?x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[SUM:.*]] = "onnx.Add"(%[[KNOWN]], %arg0)
// CHECK: %[[OUT:.*]] = "onnx.Identity"(%[[SUM]])
// CHECK: return %[[OUT]]
func.func @identities(%x: tensor<?x8xf32>) -> tensor<4x8xf32> {
  %0 = "onnx.Identity"(%x) : (tensor<?x8xf32>) -> tensor<4x8xf32>
  %1 = "onnx.Identity"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = "onnx.Add"(%0, %1) : (tensor<4x8xf32>, tensor<?x8xf32>) -> tensor<4x8xf32>
  %3 = "onnx.Identity"(%2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// A cast to the type that it has.
// CHECK-LABEL: @same_type
// CHECK: "onnx.Add"(%arg0, %arg0)
func.func @same_type(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = "onnx.Cast"(%x) {to = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "onnx.Add"(%0, %0) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
