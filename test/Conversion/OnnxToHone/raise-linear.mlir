// RUN: hone-opt %s --hone-raise-linear --split-input-file | FileCheck %s

// A weight of a file's [K, N] is stored so; its name stays.
// CHECK: hone.param @w : tensor<6x4xf32, #hone.stored<f32, transposed>> = dense<1.000000e+00> : tensor<4x6xf32>
// CHECK-LABEL: @matmul_add
// CHECK: %[[W:.*]] = hone.get_param @w
// CHECK: hone.linear %arg0, %[[W]] bias(%{{.*}}) : {{.*}} -> tensor<?x?x6xf32>
// CHECK-NOT: onnx
hone.param @w : tensor<4x6xf32> = dense<1.0> : tensor<4x6xf32>
hone.param @b : tensor<6xf32> = dense<1.0> : tensor<6xf32>
func.func @matmul_add(%x: tensor<?x?x4xf32>) -> tensor<?x?x6xf32> {
  %w = hone.get_param @w : tensor<4x6xf32>
  %b = hone.get_param @b : tensor<6xf32>
  %0 = "onnx.MatMul"(%x, %w) : (tensor<?x?x4xf32>, tensor<4x6xf32>) -> tensor<?x?x6xf32>
  %1 = "onnx.Add"(%b, %0) : (tensor<6xf32>, tensor<?x?x6xf32>) -> tensor<?x?x6xf32>
  return %1 : tensor<?x?x6xf32>
}

// -----

// A table that is also read otherwise keeps its form: the transposed product reads its rows.
// CHECK: hone.param @table : tensor<6x4xf32> = dense<1.000000e+00>
// CHECK-LABEL: @tied
// CHECK: hone.linear %arg0, %{{.*}} : (tensor<?x4xf32>, tensor<6x4xf32>) -> tensor<?x6xf32>
// CHECK: hone.linear %arg0, %{{.*}} : (tensor<?x4xf32>, tensor<6x4xf32>) -> tensor<?x6xf32>
hone.param @table : tensor<6x4xf32> = dense<1.0> : tensor<6x4xf32>
func.func @tied(%x: tensor<?x4xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>) {
  %w = hone.get_param @table : tensor<6x4xf32>
  %t = "onnx.Transpose"(%w) {perm = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %0 = "onnx.MatMul"(%x, %t) : (tensor<?x4xf32>, tensor<4x6xf32>) -> tensor<?x6xf32>
  %1 = "onnx.Gemm"(%x, %w) {transB = 1 : i64} : (tensor<?x4xf32>, tensor<6x4xf32>) -> tensor<?x6xf32>
  return %0, %1 : tensor<?x6xf32>, tensor<?x6xf32>
}

// -----

// Rows that are flattened for the product and restored after it.
// CHECK-LABEL: @flattened
// CHECK: hone.linear %arg0, %{{.*}} : (tensor<?x?x4xf32>, tensor<6x4xf32, #hone.stored<f32, transposed>>) -> tensor<?x?x6xf32>
// CHECK-NOT: onnx.Reshape
hone.param @w : tensor<4x6xf32> = dense<1.0> : tensor<4x6xf32>
func.func @flattened(%x: tensor<?x?x4xf32>) -> tensor<?x?x6xf32> {
  %w = hone.get_param @w : tensor<4x6xf32>
  %flat = "onnx.Constant"() {value = dense<[-1, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %six = "onnx.Constant"() {value = dense<6> : tensor<1xi64>} : () -> tensor<1xi64>
  %shape = "onnx.Shape"(%x) : (tensor<?x?x4xf32>) -> tensor<3xi64>
  %lead = "onnx.Slice"(%shape, %zero, %two, %zero) : (tensor<3xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %wanted = "onnx.Concat"(%lead, %six) {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  %0 = "onnx.Reshape"(%x, %flat) : (tensor<?x?x4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  %1 = "onnx.Gemm"(%0, %w) : (tensor<?x4xf32>, tensor<4x6xf32>) -> tensor<?x6xf32>
  %2 = "onnx.Reshape"(%1, %wanted) : (tensor<?x6xf32>, tensor<3xi64>) -> tensor<?x?x6xf32>
  return %2 : tensor<?x?x6xf32>
}

// -----

// A product of two values, and a scaled one, are not raised.
// CHECK-LABEL: @not_weights
// CHECK-NOT: hone.linear
// CHECK: onnx.MatMul
// CHECK: onnx.Gemm
hone.param @w : tensor<4x6xf32> = dense<1.0> : tensor<4x6xf32>
func.func @not_weights(%x: tensor<?x4xf32>, %y: tensor<4x6xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>) {
  %w = hone.get_param @w : tensor<4x6xf32>
  %0 = "onnx.MatMul"(%x, %y) : (tensor<?x4xf32>, tensor<4x6xf32>) -> tensor<?x6xf32>
  %1 = "onnx.Gemm"(%x, %w) {alpha = 0.5 : f32} : (tensor<?x4xf32>, tensor<4x6xf32>) -> tensor<?x6xf32>
  return %0, %1 : tensor<?x6xf32>, tensor<?x6xf32>
}

// -----

// The matrices of experts lie in one parameter that is split into them: each is a parameter of its own, of bytes in the same place.
// CHECK-NOT: hone.param @experts :
// CHECK-DAG: hone.param @experts.0 : tensor<4x3xf32, #hone.stored<f32, transposed>> = #hone.external<"model.bin", 64, 48>
// CHECK-DAG: hone.param @experts.1 : tensor<4x3xf32, #hone.stored<f32, transposed>> = #hone.external<"model.bin", 112, 48>
// CHECK-LABEL: @split_weight
// CHECK: %[[FIRST:.*]] = hone.get_param @experts.0
// CHECK: hone.linear %arg0, %[[FIRST]]
// CHECK: %[[SECOND:.*]] = hone.get_param @experts.1
// CHECK: hone.linear %arg1, %[[SECOND]]
hone.param @experts : tensor<2x3x4xf32> = #hone.external<"model.bin", 64, 96>
func.func @split_weight(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %first = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %w = hone.get_param @experts : tensor<2x3x4xf32>
  %parts:2 = "onnx.Split"(%w) {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<2x3x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x4xf32>)
  %a = "onnx.Squeeze"(%parts#0, %first) : (tensor<1x3x4xf32>, tensor<1xi64>) -> tensor<3x4xf32>
  %b = "onnx.Squeeze"(%parts#1, %first) : (tensor<1x3x4xf32>, tensor<1xi64>) -> tensor<3x4xf32>
  %0 = "onnx.MatMul"(%x, %a) : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
  %1 = "onnx.MatMul"(%y, %b) : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}
