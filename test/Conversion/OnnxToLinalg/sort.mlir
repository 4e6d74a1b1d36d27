// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --canonicalize --split-input-file --verify-diagnostics %s | FileCheck %s -enable-var-scope

// Runs double until one is the whole row; the first K of it are taken.
// CHECK-LABEL: func @top_k
// CHECK: scf.for
// CHECK: scf.while
// CHECK: arith.cmpf ogt
// CHECK: scf.for
func.func @top_k(%a: tensor<3x?xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>) {
  %0 = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %1:2 = "onnx.TopK"(%a, %0) : (tensor<3x?xf32>, tensor<1xi64>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  return %1#0, %1#1 : tensor<3x2xf32>, tensor<3x2xi64>
}

// In short rows every element counts those that go before it, ties by their positions: no loop depends on another.
// CHECK-LABEL: func @router
// CHECK-NOT: scf.
// CHECK: %[[PLACES:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X:.*]], %[[X]] : tensor<?x64xf32>, tensor<?x64xf32>)
// CHECK: arith.cmpf ogt
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[PLACES]] : tensor<?x64xi64>)
// CHECK-NOT: scf.
// CHECK: return
func.func @router(%a: tensor<?x64xf32>) -> (tensor<?x8xf32>, tensor<?x8xi64>) {
  %0 = "onnx.Constant"() {value = dense<8> : tensor<1xi64>} : () -> tensor<1xi64>
  %1:2 = "onnx.TopK"(%a, %0) : (tensor<?x64xf32>, tensor<1xi64>) -> (tensor<?x8xf32>, tensor<?x8xi64>)
  return %1#0, %1#1 : tensor<?x8xf32>, tensor<?x8xi64>
}

// CHECK-LABEL: func @smallest_u8
// CHECK: arith.cmpi ult, %{{.*}} : i8
func.func @smallest_u8(%a: tensor<4xui8>, %k: tensor<1xi64>) -> (tensor<?xui8>, tensor<?xi64>) {
  %1:2 = "onnx.TopK"(%a, %k) {largest = 0 : i64} : (tensor<4xui8>, tensor<1xi64>) -> (tensor<?xui8>, tensor<?xi64>)
  return %1#0, %1#1 : tensor<?xui8>, tensor<?xi64>
}

// -----

func.func @several_k(%a: tensor<4xf32>, %k: tensor<2xi64>) -> (tensor<?xf32>, tensor<?xi64>) {
  // expected-error @+1 {{expected K to be one number, but got 'tensor<2xi64>'}}
  %1:2 = "onnx.TopK"(%a, %k) : (tensor<4xf32>, tensor<2xi64>) -> (tensor<?xf32>, tensor<?xi64>)
  return %1#0, %1#1 : tensor<?xf32>, tensor<?xi64>
}
