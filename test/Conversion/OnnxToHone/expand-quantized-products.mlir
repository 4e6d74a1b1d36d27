// Products of codes become products of floats, rounded where they were.
//
// RUN: hone-opt %s -split-input-file --hone-expand-quantized-products | FileCheck %s -enable-var-scope

// CHECK-LABEL: @matmul
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>
// CHECK: %[[CODES:.*]] = "onnx.QuantizeLinear"(%[[X]]
// CHECK: %[[LHS:.*]] = "onnx.DequantizeLinear"(%[[CODES]], {{.*}}) {axis = 1 : i64} : {{.*}} -> tensor<?x4xf32>
// CHECK: %[[RHS:.*]] = "onnx.DequantizeLinear"({{.*}}) {axis = 1 : i64} : (tensor<4x2xi8>, tensor<2xf32>, tensor<2xi8>) -> tensor<4x2xf32>
// CHECK: %[[PRODUCT:.*]] = "onnx.MatMul"(%[[LHS]], %[[RHS]]) : {{.*}} -> tensor<?x2xf32>
// CHECK: "onnx.QuantizeLinear"(%[[PRODUCT]]{{.*}} -> tensor<?x2xui8>
func.func @matmul(%x: tensor<?x4xf32>) -> tensor<?x2xui8> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %w = "onnx.Constant"() {value = dense<3> : tensor<4x2xi8>} : () -> tensor<4x2xi8>
  %scales = "onnx.Constant"() {value = dense<[0.5, 0.25]> : tensor<2xf32>} : () -> tensor<2xf32>
  %zeros = "onnx.Constant"() {value = dense<0> : tensor<2xi8>} : () -> tensor<2xi8>
  %0 = "onnx.QuantizeLinear"(%x, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
  %1 = "onnx.QLinearMatMul"(%0, %scale, %zero, %w, %scales, %zeros, %scale, %zero) : (tensor<?x4xui8>, tensor<f32>, tensor<ui8>, tensor<4x2xi8>, tensor<2xf32>, tensor<2xi8>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
  return %1 : tensor<?x2xui8>
}

// -----

// A bias is counted in both scales.
// CHECK-LABEL: @gemm
// CHECK: %[[W:.*]] = "onnx.DequantizeLinear"({{.*}}) {axis = 0 : i64} : (tensor<2x4xi8>
// CHECK: %[[SCALE:.*]] = "onnx.Mul"({{.*}}) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
// CHECK: %[[BIAS:.*]] = "onnx.DequantizeLinear"({{.*}}, %[[SCALE]]) {axis = -1 : i64} : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK: "onnx.Gemm"({{.*}}, %[[W]], %[[BIAS]]) {alpha = 1.000000e+00 : f32, transA = 0 : i64, transB = 1 : i64}
func.func @gemm(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %w = "onnx.Constant"() {value = dense<3> : tensor<2x4xi8>} : () -> tensor<2x4xi8>
  %scales = "onnx.Constant"() {value = dense<[0.5, 0.25]> : tensor<2xf32>} : () -> tensor<2xf32>
  %zeros = "onnx.Constant"() {value = dense<0> : tensor<2xi8>} : () -> tensor<2xi8>
  %bias = "onnx.Constant"() {value = dense<9> : tensor<2xi32>} : () -> tensor<2xi32>
  %0 = "onnx.QuantizeLinear"(%x, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
  %1 = "onnx.com.microsoft.QGemm"(%0, %scale, %zero, %w, %scales, %zeros, %bias) {alpha = 1.0 : f32, transA = 0 : i64, transB = 1 : i64} : (tensor<?x4xui8>, tensor<f32>, tensor<ui8>, tensor<2x4xi8>, tensor<2xf32>, tensor<2xi8>, tensor<2xi32>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// CHECK-LABEL: @integer_to_float
// CHECK: %[[PRODUCT:.*]] = "onnx.MatMul"
// CHECK: "onnx.Add"(%[[PRODUCT]], %arg1)
func.func @integer_to_float(%x: tensor<?x4xf32>, %bias: tensor<2xf32>) -> tensor<?x2xf32> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %w = "onnx.Constant"() {value = dense<3> : tensor<4x2xi8>} : () -> tensor<4x2xi8>
  %none = "onnx.Constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %0 = "onnx.QuantizeLinear"(%x, %scale, %zero) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x4xui8>
  %1 = "onnx.com.microsoft.MatMulIntegerToFloat"(%0, %w, %scale, %scale, %zero, %none, %bias) : (tensor<?x4xui8>, tensor<4x2xi8>, tensor<f32>, tensor<f32>, tensor<ui8>, tensor<i8>, tensor<2xf32>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// Codes that come from outside are multiplied as they are, and so are those whose scale is computed.
// CHECK-LABEL: @of_input
// CHECK: onnx.QLinearMatMul
// CHECK-NOT: onnx.MatMul"
func.func @of_input(%x: tensor<?x4xui8>, %w: tensor<4x2xi8>) -> tensor<?x2xui8> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %none = "onnx.Constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %0 = "onnx.QLinearMatMul"(%x, %scale, %zero, %w, %scale, %none, %scale, %zero) : (tensor<?x4xui8>, tensor<f32>, tensor<ui8>, tensor<4x2xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
  return %0 : tensor<?x2xui8>
}

// -----

// CHECK-LABEL: @dynamic
// CHECK: onnx.com.microsoft.MatMulIntegerToFloat
// CHECK-NOT: onnx.DequantizeLinear
func.func @dynamic(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %w = "onnx.Constant"() {value = dense<3> : tensor<4x2xi8>} : () -> tensor<4x2xi8>
  %none = "onnx.Constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %0:3 = "onnx.DynamicQuantizeLinear"(%x) : (tensor<?x4xf32>) -> (tensor<?x4xui8>, tensor<f32>, tensor<ui8>)
  %1 = "onnx.com.microsoft.MatMulIntegerToFloat"(%0#0, %w, %0#1, %scale, %0#2, %none) : (tensor<?x4xui8>, tensor<4x2xi8>, tensor<f32>, tensor<f32>, tensor<ui8>, tensor<i8>) -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}
