// Weights in the form that all readers bring them into.
//
// RUN: hone-opt %s --hone-arrange-params --split-input-file | FileCheck %s -enable-var-scope

// The bytes of one that is only reshaped are the same, and what asked for its sizes knows them.
// CHECK: hone.param @w : tensor<3x4xf32> = dense<{{\[\[}}0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], {{.*}}> : tensor<3x4xf32>
// CHECK-LABEL: @reshaped
// CHECK: %[[W:.*]] = hone.get_param @w : tensor<3x4xf32>
// CHECK-NOT: onnx.Reshape
// CHECK: "onnx.MatMul"(%arg0, %[[W]])
// CHECK-NOT: onnx.Shape
// CHECK: dense<[3, 2, 2]>
hone.param @w : tensor<3x2x2xf32> = dense<[[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]], [[8.0, 9.0], [10.0, 11.0]]]> : tensor<3x2x2xf32>
func.func @reshaped(%x: tensor<?x3xf32>) -> (tensor<?x4xf32>, tensor<3xi64>) {
  %w = hone.get_param @w : tensor<3x2x2xf32>
  %shape = "onnx.Constant"() {value = dense<[3, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
  %m = "onnx.Reshape"(%w, %shape) : (tensor<3x2x2xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  %0 = "onnx.MatMul"(%x, %m) : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
  %1 = "onnx.Shape"(%w) : (tensor<3x2x2xf32>) -> tensor<3xi64>
  return %0, %1 : tensor<?x4xf32>, tensor<3xi64>
}

// -----

// Elements of one that is transposed before are moved here; a constant is as a parameter.
// CHECK: hone.param @w : tensor<3x4xf32> = dense<{{\[\[}}0.000000e+00, 1.000000e+00, 6.000000e+00, 7.000000e+00], [2.000000e+00, 3.000000e+00, 8.000000e+00, 9.000000e+00], [4.000000e+00, 5.000000e+00, 1.000000e+01, 1.100000e+01]]>
// CHECK-LABEL: @transposed
// CHECK: "onnx.Constant"() {value = dense<[0.000000e+00, 1.000000e+00]> : tensor<2xf32>}
// CHECK-NOT: onnx.Transpose
// CHECK-NOT: onnx.Reshape
// CHECK: return
hone.param @w : tensor<2x3x2xf32> = dense<[[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [[6.0, 7.0], [8.0, 9.0], [10.0, 11.0]]]> : tensor<2x3x2xf32>
func.func @transposed(%x: tensor<?x3xf32>, %y: tensor<?x2xf32>) -> (tensor<?x4xf32>, tensor<?x2xf32>) {
  %w = hone.get_param @w : tensor<2x3x2xf32>
  %c = "onnx.Constant"() {value = dense<[[0.0], [1.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %shape = "onnx.Constant"() {value = dense<[3, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
  %row = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %t = "onnx.Transpose"(%w) {perm = array<i64: 1, 0, 2>} : (tensor<2x3x2xf32>) -> tensor<3x2x2xf32>
  %m = "onnx.Reshape"(%t, %shape) : (tensor<3x2x2xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  %0 = "onnx.MatMul"(%x, %m) : (tensor<?x3xf32>, tensor<3x4xf32>) -> tensor<?x4xf32>
  %b = "onnx.Reshape"(%c, %row) : (tensor<2x1xf32>, tensor<1xi64>) -> tensor<2xf32>
  %1 = "onnx.Add"(%y, %b) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x2xf32>
}

// -----

// One that is also read as it is, or in two forms, stays, and so do one of more dimensions and a matrix that is only transposed.
// CHECK-DAG: hone.param @both : tensor<3x2x2xf32>
// CHECK-DAG: hone.param @two : tensor<3x2x2xf32>
// CHECK-DAG: hone.param @experts : tensor<4x3x2xf32>
// CHECK-DAG: hone.param @matrix : tensor<3x2xf32>
// CHECK-LABEL: @stays
// CHECK-COUNT-4: onnx.Reshape
// CHECK: onnx.Transpose
hone.param @both : tensor<3x2x2xf32> = dense<1.0> : tensor<3x2x2xf32>
hone.param @two : tensor<3x2x2xf32> = dense<1.0> : tensor<3x2x2xf32>
hone.param @experts : tensor<4x3x2xf32> = dense<1.0> : tensor<4x3x2xf32>
hone.param @matrix : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32>
func.func @stays() -> (tensor<3x4xf32>, tensor<3x2x2xf32>, tensor<3x4xf32>, tensor<12xf32>, tensor<2x2x3x2xf32>, tensor<2x3xf32>) {
  %both = hone.get_param @both : tensor<3x2x2xf32>
  %two = hone.get_param @two : tensor<3x2x2xf32>
  %experts = hone.get_param @experts : tensor<4x3x2xf32>
  %matrix = hone.get_param @matrix : tensor<3x2xf32>
  %shape = "onnx.Constant"() {value = dense<[3, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
  %row = "onnx.Constant"() {value = dense<12> : tensor<1xi64>} : () -> tensor<1xi64>
  %four = "onnx.Constant"() {value = dense<[2, 2, 3, 2]> : tensor<4xi64>} : () -> tensor<4xi64>
  %0 = "onnx.Reshape"(%both, %shape) : (tensor<3x2x2xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  %1 = "onnx.Reshape"(%two, %shape) : (tensor<3x2x2xf32>, tensor<2xi64>) -> tensor<3x4xf32>
  %2 = "onnx.Reshape"(%two, %row) : (tensor<3x2x2xf32>, tensor<1xi64>) -> tensor<12xf32>
  %3 = "onnx.Reshape"(%experts, %four) : (tensor<4x3x2xf32>, tensor<4xi64>) -> tensor<2x2x3x2xf32>
  %4 = "onnx.Transpose"(%matrix) {perm = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %0, %both, %1, %2, %3, %4 : tensor<3x4xf32>, tensor<3x2x2xf32>, tensor<3x4xf32>, tensor<12xf32>, tensor<2x2x3x2xf32>, tensor<2x3xf32>
}
