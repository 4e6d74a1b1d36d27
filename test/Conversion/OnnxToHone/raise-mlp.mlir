// RUN: hone-opt %s --hone-raise-mlp --split-input-file | FileCheck %s

// CHECK-LABEL: @silu
// CHECK: hone.gated_mlp silu %arg0, gate(%arg1), up(%arg2), down(%arg3)
// CHECK-NOT: hone.linear
func.func @silu(%x: tensor<?x8xf32>, %g: tensor<6x8xf32>, %u: tensor<6x8xf32>, %d: tensor<8x6xf32>) -> tensor<?x8xf32> {
  %0 = hone.linear %x, %g : (tensor<?x8xf32>, tensor<6x8xf32>) -> tensor<?x6xf32>
  %1 = hone.linear %x, %u : (tensor<?x8xf32>, tensor<6x8xf32>) -> tensor<?x6xf32>
  %2 = "onnx.Sigmoid"(%0) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %3 = "onnx.Mul"(%0, %2) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %4 = "onnx.Mul"(%3, %1) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %5 = hone.linear %4, %d : (tensor<?x6xf32>, tensor<8x6xf32>) -> tensor<?x8xf32>
  return %5 : tensor<?x8xf32>
}

// -----

// The approximation by tanh, spelled out, is told from the exact function by its values.
// CHECK-LABEL: @gelu_tanh
// CHECK: hone.mlp gelu_tanh %arg0, up(%arg1), down(%arg2)
func.func @gelu_tanh(%x: tensor<?x8xf32>, %u: tensor<6x8xf32>, %d: tensor<8x6xf32>) -> tensor<?x8xf32> {
  %half = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %three = "onnx.Constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %c = "onnx.Constant"() {value = dense<0.044715> : tensor<f32>} : () -> tensor<f32>
  %r = "onnx.Constant"() {value = dense<0.797884583> : tensor<f32>} : () -> tensor<f32>
  %0 = hone.linear %x, %u : (tensor<?x8xf32>, tensor<6x8xf32>) -> tensor<?x6xf32>
  %1 = "onnx.Pow"(%0, %three) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %2 = "onnx.Mul"(%1, %c) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %3 = "onnx.Add"(%0, %2) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %4 = "onnx.Mul"(%3, %r) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %5 = "onnx.Tanh"(%4) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %6 = "onnx.Add"(%5, %one) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %7 = "onnx.Mul"(%0, %half) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %8 = "onnx.Mul"(%7, %6) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %9 = hone.linear %8, %d : (tensor<?x6xf32>, tensor<8x6xf32>) -> tensor<?x8xf32>
  return %9 : tensor<?x8xf32>
}

// -----

// Another function, and a gate that is read elsewhere, are not raised.
// CHECK-LABEL: @sigmoid
// CHECK-NOT: hone.mlp
// CHECK: onnx.Sigmoid
func.func @sigmoid(%x: tensor<?x8xf32>, %u: tensor<6x8xf32>, %d: tensor<8x6xf32>) -> tensor<?x8xf32> {
  %0 = hone.linear %x, %u : (tensor<?x8xf32>, tensor<6x8xf32>) -> tensor<?x6xf32>
  %1 = "onnx.Sigmoid"(%0) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %2 = hone.linear %1, %d : (tensor<?x6xf32>, tensor<8x6xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// CHECK-LABEL: @gate_is_read
// CHECK-NOT: hone.gated_mlp
// CHECK: return
func.func @gate_is_read(%x: tensor<?x8xf32>, %g: tensor<6x8xf32>, %u: tensor<6x8xf32>, %d: tensor<8x6xf32>) -> (tensor<?x8xf32>, tensor<?x6xf32>) {
  %0 = hone.linear %x, %g : (tensor<?x8xf32>, tensor<6x8xf32>) -> tensor<?x6xf32>
  %1 = hone.linear %x, %u : (tensor<?x8xf32>, tensor<6x8xf32>) -> tensor<?x6xf32>
  %2 = "onnx.Relu"(%0) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %3 = "onnx.Mul"(%2, %1) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %4 = hone.linear %3, %d : (tensor<?x6xf32>, tensor<8x6xf32>) -> tensor<?x8xf32>
  return %4, %0 : tensor<?x8xf32>, tensor<?x6xf32>
}

// -----

// The root of 2 as f16 has it.
// CHECK-LABEL: @gelu_half
// CHECK: hone.mlp gelu %arg0, up(%arg1), down(%arg2)
func.func @gelu_half(%x: tensor<?x8xf16>, %u: tensor<6x8xf16>, %d: tensor<8x6xf16>) -> tensor<?x8xf16> {
  %half = "onnx.Constant"() {value = dense<0.5> : tensor<f16>} : () -> tensor<f16>
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<f16>} : () -> tensor<f16>
  %root = "onnx.Constant"() {value = dense<1.4140625> : tensor<f16>} : () -> tensor<f16>
  %0 = hone.linear %x, %u : (tensor<?x8xf16>, tensor<6x8xf16>) -> tensor<?x6xf16>
  %1 = "onnx.Div"(%0, %root) : (tensor<?x6xf16>, tensor<f16>) -> tensor<?x6xf16>
  %2 = "onnx.Erf"(%1) : (tensor<?x6xf16>) -> tensor<?x6xf16>
  %3 = "onnx.Add"(%2, %one) : (tensor<?x6xf16>, tensor<f16>) -> tensor<?x6xf16>
  %4 = "onnx.Mul"(%0, %3) : (tensor<?x6xf16>, tensor<?x6xf16>) -> tensor<?x6xf16>
  %5 = "onnx.Mul"(%4, %half) : (tensor<?x6xf16>, tensor<f16>) -> tensor<?x6xf16>
  %6 = hone.linear %5, %d : (tensor<?x6xf16>, tensor<8x6xf16>) -> tensor<?x8xf16>
  return %6 : tensor<?x8xf16>
}

// -----

// As rough a root of 2 in f32 is another function.
// CHECK-LABEL: @gelu_rough
// CHECK-NOT: hone.mlp
func.func @gelu_rough(%x: tensor<?x8xf32>, %u: tensor<6x8xf32>, %d: tensor<8x6xf32>) -> tensor<?x8xf32> {
  %half = "onnx.Constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = "onnx.Constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %root = "onnx.Constant"() {value = dense<1.4140625> : tensor<f32>} : () -> tensor<f32>
  %0 = hone.linear %x, %u : (tensor<?x8xf32>, tensor<6x8xf32>) -> tensor<?x6xf32>
  %1 = "onnx.Div"(%0, %root) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %2 = "onnx.Erf"(%1) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %3 = "onnx.Add"(%2, %one) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %4 = "onnx.Mul"(%0, %3) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %5 = "onnx.Mul"(%4, %half) : (tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>
  %6 = hone.linear %5, %d : (tensor<?x6xf32>, tensor<8x6xf32>) -> tensor<?x8xf32>
  return %6 : tensor<?x8xf32>
}
