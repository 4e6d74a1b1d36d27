// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --hone-infer-onnx-shapes | FileCheck %s

// A product of integers has the sizes of any product: heads after one are known, though the file declares nothing.
// CHECK-LABEL: @dynamic_quantization(
// CHECK: "onnx.MatMulInteger"{{.*}} -> tensor<?x?x32xi32>
// CHECK: "onnx.Reshape"{{.*}} -> tensor<?x?x2x16xf32>
func.func @dynamic_quantization(%x: tensor<?x?x24xf32>, %w: tensor<24x32xi8>) -> tensor<?x?x?x?xf32> {
  %q:3 = "onnx.DynamicQuantizeLinear"(%x) : (tensor<?x?x24xf32>) -> (tensor<?x?x?xui8>, tensor<f32>, tensor<ui8>)
  %zero = "onnx.Constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %m = "onnx.MatMulInteger"(%q#0, %w, %q#2, %zero) : (tensor<?x?x?xui8>, tensor<24x32xi8>, tensor<ui8>, tensor<i8>) -> tensor<?x?x?xi32>
  %f = "onnx.Cast"(%m) {to = 1 : i64} : (tensor<?x?x?xi32>) -> tensor<?x?x?xf32>
  %s = "onnx.Mul"(%f, %q#1) : (tensor<?x?x?xf32>, tensor<f32>) -> tensor<?x?x?xf32>
  %shape = "onnx.Constant"() {value = dense<[0, 0, 2, -1]> : tensor<4xi64>} : () -> tensor<4xi64>
  %h = "onnx.Reshape"(%s, %shape) : (tensor<?x?x?xf32>, tensor<4xi64>) -> tensor<?x?x?x?xf32>
  return %h : tensor<?x?x?x?xf32>
}

// Bytes of a table in blocks hold two elements each; what follows the look-up is known though the file declares nothing.
// CHECK-LABEL: @blocks(
// CHECK: "onnx.com.microsoft.GatherBlockQuantized"{{.*}} -> tensor<?x?x32xf32>
// CHECK: "onnx.com.microsoft.MatMulNBits"{{.*}} -> tensor<?x?x48xf32>
func.func @blocks(%table: tensor<10x16xui8>, %scales: tensor<10x1xf32>, %ids: tensor<?x?xi64>, %b: tensor<48x1x16xui8>, %s: tensor<48x1xf32>) -> tensor<*xf32> {
  %x = "onnx.com.microsoft.GatherBlockQuantized"(%table, %ids, %scales) {bits = 4 : i64, block_size = 32 : i64}
      : (tensor<10x16xui8>, tensor<?x?xi64>, tensor<10x1xf32>) -> tensor<*xf32>
  %y = "onnx.com.microsoft.MatMulNBits"(%x, %b, %s) {K = 32 : i64, N = 48 : i64, bits = 4 : i64, block_size = 32 : i64}
      : (tensor<*xf32>, tensor<48x1x16xui8>, tensor<48x1xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// Branches of an If read values around them; what they give stays as it is declared.
// CHECK-LABEL: @branches(
// CHECK: "onnx.ConstantOfShape"{{.*}} -> tensor<2xi64>
// CHECK: "onnx.Expand"{{.*}} -> tensor<?x8xf32>
// CHECK: onnx.regions
// CHECK-SAME: -> tensor<*xf32>
func.func @branches(%x: tensor<1x8xf32>, %size: tensor<1xi64>, %flag: tensor<i1>) -> tensor<*xf32> {
  %last = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %r = "onnx.If"(%flag) ({
    %both = "onnx.Concat"(%size, %last) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %count = "onnx.Shape"(%both) : (tensor<2xi64>) -> tensor<1xi64>
    %ones = "onnx.ConstantOfShape"(%count) {value = dense<1> : tensor<1xi64>} : (tensor<1xi64>) -> tensor<?xi64>
    %wide = "onnx.Mul"(%both, %ones) : (tensor<2xi64>, tensor<?xi64>) -> tensor<?xi64>
    %rows = "onnx.Expand"(%x, %wide) : (tensor<1x8xf32>, tensor<?xi64>) -> tensor<*xf32>
    "onnx.Yield"(%rows) : (tensor<*xf32>) -> ()
  }, {
    "onnx.Yield"(%x) : (tensor<1x8xf32>) -> ()
  }) {onnx.regions = ["then_branch", "else_branch"]} : (tensor<i1>) -> tensor<*xf32>
  return %r : tensor<*xf32>
}

// Each label of the result has a size of an operand; dimensions are merged by the product of their sizes.
// CHECK-LABEL: @labels(
// CHECK: "onnx.Einsum"{{.*}} -> tensor<?x4x7x8xf32>
// CHECK: "onnx.Reshape"{{.*}} -> tensor<?x224xf32>
func.func @labels(%x: tensor<?x7x6xf32>, %w: tensor<6x4x8xf32>) -> tensor<*xf32> {
  %e = "onnx.Einsum"(%x, %w) {equation = "bsd,dhe->bhse"} : (tensor<?x7x6xf32>, tensor<6x4x8xf32>) -> tensor<*xf32>
  %shape = "onnx.Shape"(%e) : (tensor<*xf32>) -> tensor<4xi64>
  %inner = "onnx.Constant"() {value = dense<[1, 2, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %some = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %sizes = "onnx.Gather"(%shape, %inner) : (tensor<4xi64>, tensor<3xi64>) -> tensor<3xi64>
  %all = "onnx.ReduceProd"(%sizes) {keepdims = 1 : i64} : (tensor<3xi64>) -> tensor<1xi64>
  %wanted = "onnx.Concat"(%some, %all) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %r = "onnx.Reshape"(%e, %wanted) : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %r : tensor<*xf32>
}
