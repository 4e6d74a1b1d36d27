// Codes that are moved are those of floats that are moved, where one scale is for all of them.
//
// RUN: hone-opt %s --hone-dequantize-movements | FileCheck %s -enable-var-scope

// CHECK-LABEL: @moved
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>
// CHECK: %[[CODES:.*]] = "onnx.QuantizeLinear"(%[[X]]
// CHECK: %[[FLOATS:.*]] = "onnx.DequantizeLinear"(%[[CODES]]
// CHECK: %[[TURNED:.*]] = "onnx.Transpose"(%[[FLOATS]]) {perm = array<i64: 1, 0>} : (tensor<?x4xf32>) -> tensor<4x?xf32>
// CHECK: %[[AGAIN:.*]] = "onnx.QuantizeLinear"(%[[TURNED]]
// CHECK: %[[HALVES:.*]]:2 = "onnx.Split"({{.*}}) {{.*}} -> (tensor<2x?xf32>, tensor<2x?xf32>)
// CHECK-COUNT-2: "onnx.QuantizeLinear"(%[[HALVES]]
// CHECK: "onnx.Shape"(%[[TURNED]])
func.func @moved(%x: tensor<?x4xf32>) -> (tensor<2x?xui8>, tensor<2x?xui8>, tensor<2xi64>) {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %sizes = "onnx.Constant"() {value = dense<2> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = "onnx.QuantizeLinear"(%x, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
  %1 = "onnx.Transpose"(%0) {perm = array<i64: 1, 0>} : (tensor<?x4xui8>) -> tensor<4x?xui8>
  %2:2 = "onnx.Split"(%1, %sizes) {axis = 0 : i64} : (tensor<4x?xui8>, tensor<2xi64>) -> (tensor<2x?xui8>, tensor<2x?xui8>)
  %3 = "onnx.Shape"(%1) {start = 0 : i64} : (tensor<4x?xui8>) -> tensor<2xi64>
  return %2#0, %2#1, %3 : tensor<2x?xui8>, tensor<2x?xui8>, tensor<2xi64>
}

// Each row has a scale.
// CHECK-LABEL: @per_row
// CHECK-NOT: onnx.DequantizeLinear
// CHECK: "onnx.Transpose"({{.*}} -> tensor<?x4xui8>
func.func @per_row(%x: tensor<4x?xf32>, %scale: tensor<4xf32>, %zero: tensor<4xui8>) -> tensor<?x4xui8> {
  %0 = "onnx.QuantizeLinear"(%x, %scale, %zero) {axis = 0 : i64} : (tensor<4x?xf32>, tensor<4xf32>, tensor<4xui8>) -> tensor<4x?xui8>
  %1 = "onnx.Transpose"(%0) {perm = array<i64: 1, 0>} : (tensor<4x?xui8>) -> tensor<?x4xui8>
  return %1 : tensor<?x4xui8>
}

// Nobody knows what they stand for.
// CHECK-LABEL: @bytes
// CHECK-NOT: onnx.DequantizeLinear
func.func @bytes(%x: tensor<?x4xui8>) -> tensor<4x?xui8> {
  %0 = "onnx.Transpose"(%x) {perm = array<i64: 1, 0>} : (tensor<?x4xui8>) -> tensor<4x?xui8>
  return %0 : tensor<4x?xui8>
}
