// Numbers and rows that a quantizer made codes are the f32 that they stand for.
//
// RUN: hone-opt %s --hone-fold-dequantized | FileCheck %s -enable-var-scope

// CHECK: hone.param @bias.floats : tensor<3xf32> = dense_resource<weight{{.*}}> : tensor<3xf32>
hone.param @bias : tensor<3xi8> = dense<[1, -2, 3]> : tensor<3xi8>

// CHECK-LABEL: @number
// CHECK: value = dense<1.500000e+00> : tensor<f32>
// CHECK-NOT: onnx.DequantizeLinear
func.func @number() -> tensor<f32> {
  %code = "onnx.Constant"() {value = dense<10> : tensor<ui8>} : () -> tensor<ui8>
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %zero = "onnx.Constant"() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = "onnx.DequantizeLinear"(%code, %scale, %zero) {axis = 1 : i64} : (tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: @row
// CHECK: value = dense<{{\[}}[5.000000e-01, -2.000000e+00]]> : tensor<1x2xf32>
func.func @row() -> tensor<1x2xf32> {
  %codes = "onnx.Constant"() {value = dense<[[1, -1]]> : tensor<1x2xi16>} : () -> tensor<1x2xi16>
  %scales = "onnx.Constant"() {value = dense<[0.5, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "onnx.DequantizeLinear"(%codes, %scales) {axis = 1 : i64} : (tensor<1x2xi16>, tensor<2xf32>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}

// CHECK-LABEL: @parameter
// CHECK: hone.get_param @bias.floats : tensor<3xf32>
func.func @parameter() -> tensor<3xf32> {
  %codes = hone.get_param @bias : tensor<3xi8>
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = "onnx.DequantizeLinear"(%codes, %scale) {axis = 1 : i64} : (tensor<3xi8>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// The bias of a QGemm: its scale is that of both operands.
// CHECK-LABEL: @two_scales
// CHECK: value = dense<[2.500000e-01, 1.000000e+00]> : tensor<2xf32>
func.func @two_scales() -> tensor<2xf32> {
  %codes = "onnx.Constant"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  %scale = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %scales = "onnx.Constant"() {value = dense<[0.5, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %both = "onnx.Mul"(%scales, %scale) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %0 = "onnx.DequantizeLinear"(%codes, %both) {axis = -1 : i64} : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Matrices are weights of products, and a scale may be computed.
// CHECK-LABEL: @others
// CHECK-COUNT-2: onnx.DequantizeLinear
func.func @others(%scale: tensor<f32>) -> (tensor<2x2xf32>, tensor<2xf32>) {
  %matrix = "onnx.Constant"() {value = dense<1> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
  %one = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = "onnx.DequantizeLinear"(%matrix, %one) {axis = 1 : i64} : (tensor<2x2xi8>, tensor<f32>) -> tensor<2x2xf32>
  %codes = "onnx.Constant"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
  %1 = "onnx.DequantizeLinear"(%codes, %scale) {axis = 1 : i64} : (tensor<2xi32>, tensor<f32>) -> tensor<2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2xf32>
}
