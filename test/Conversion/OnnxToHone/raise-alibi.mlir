// RUN: hone-opt %s --hone-raise-attention --split-input-file | FileCheck %s -enable-var-scope

// A slope of the head times the key's position, from any origin that the keys of a query share.
// CHECK-LABEL: @slopes
// CHECK: %[[SLOPES:.*]] = "onnx.Reshape"(%arg3, {{.*}}) : (tensor<4x1x1xf32>, tensor<1xi64>) -> tensor<4xf32>
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.full) scale(2.500000e-01) alibi(%[[SLOPES]])
func.func @slopes(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %slopes: tensor<4x1x1xf32>,
                  %shift: tensor<2x1x1x1xi64>) -> tensor<2x4x8x16xf32> {
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %eight = "onnx.Constant"() {value = dense<8> : tensor<i64>} : () -> tensor<i64>
  %keys = "onnx.Range"(%zero, %eight, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8xi64>
  %from = "onnx.Sub"(%keys, %shift) : (tensor<8xi64>, tensor<2x1x1x1xi64>) -> tensor<2x1x1x8xi64>
  %real = "onnx.Cast"(%from) {to = 1 : i64} : (tensor<2x1x1x8xi64>) -> tensor<2x1x1x8xf32>
  %bias = "onnx.Mul"(%real, %slopes) : (tensor<2x1x1x8xf32>, tensor<4x1x1xf32>) -> tensor<2x4x1x8xf32>
  %o = "onnx.Attention"(%q, %k, %v, %bias) {scale = 0.25 : f32} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x1x8xf32>) -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// -----

// Not from a shared origin: the square of the position, and a number that each key has of its own.
// CHECK-LABEL: @squares
// CHECK: hone.attention {{.*}} bias(
// CHECK: hone.attention {{.*}} bias(
// CHECK-NOT: alibi
func.func @squares(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %slopes: tensor<4x1x1xf32>,
                   %own: tensor<8xi64>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) {
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %eight = "onnx.Constant"() {value = dense<8> : tensor<i64>} : () -> tensor<i64>
  %keys = "onnx.Range"(%zero, %eight, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8xi64>
  %square = "onnx.Mul"(%keys, %keys) : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi64>
  %real = "onnx.Cast"(%square) {to = 1 : i64} : (tensor<8xi64>) -> tensor<8xf32>
  %bias = "onnx.Mul"(%real, %slopes) : (tensor<8xf32>, tensor<4x1x1xf32>) -> tensor<4x1x8xf32>
  %o = "onnx.Attention"(%q, %k, %v, %bias) {scale = 0.25 : f32} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<4x1x8xf32>) -> tensor<2x4x8x16xf32>
  %sum = "onnx.Add"(%keys, %own) : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi64>
  %sumReal = "onnx.Cast"(%sum) {to = 1 : i64} : (tensor<8xi64>) -> tensor<8xf32>
  %sumBias = "onnx.Mul"(%sumReal, %slopes) : (tensor<8xf32>, tensor<4x1x1xf32>) -> tensor<4x1x8xf32>
  %p = "onnx.Attention"(%q, %k, %v, %sumBias) {scale = 0.25 : f32} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<4x1x8xf32>) -> tensor<2x4x8x16xf32>
  return %o, %p : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>
}
