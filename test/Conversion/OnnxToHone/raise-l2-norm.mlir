// RUN: hone-opt %s --hone-raise-norms | FileCheck %s

module attributes {onnx.opsets = {"ai.onnx" = 22}} {
  // CHECK-LABEL: @length
  // CHECK: hone.l2_norm
  func.func @length(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %0 = "onnx.LpNormalization"(%x) {axis = -1 : i64, p = 2 : i64} : (tensor<?x64xf32>) -> tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }

  // CHECK-LABEL: @sum
  // CHECK: onnx.LpNormalization
  func.func @sum(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %0 = "onnx.LpNormalization"(%x) {axis = -1 : i64, p = 1 : i64} : (tensor<?x64xf32>) -> tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
}
