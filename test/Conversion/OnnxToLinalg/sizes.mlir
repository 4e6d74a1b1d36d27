// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --hone-convert-onnx-to-linalg --canonicalize --cse | FileCheck %s -enable-var-scope

// Sizes that values decide: none is negative, and their product does not wrap.
// CHECK-LABEL: @expand(
// CHECK: %[[A:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK: %[[B:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK: hrt.check %{{.*}}, "node: expected sizes of input 1 not to be negative, but got {}"(%[[A]])
// CHECK: hrt.check %{{.*}}, "node: expected sizes of input 1 not to be negative, but got {}"(%[[B]])
// CHECK: %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %{{.*}} : f64
// CHECK: %[[FITS:.*]] = arith.cmpf ole, %[[PRODUCT]], %{{.*}} : f64
// CHECK: hrt.check %[[FITS]], "node: cannot allocate a tensor of {}x{}xf32: too many elements"(%[[A]], %[[B]])
// CHECK: tensor.empty(%[[A]], %[[B]])
// Tensors of the same sizes are not checked again.
// CHECK-NOT: hrt.check
func.func @expand(%x: tensor<1xf32>, %shape: tensor<2xi64>) -> tensor<?x?xf64> {
  %0 = "onnx.Expand"(%x, %shape) : (tensor<1xf32>, tensor<2xi64>) -> tensor<?x?xf32> loc("node")
  %1 = "onnx.Sin"(%0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = "onnx.Cast"(%1) {to = 11 : i64} : (tensor<?x?xf32>) -> tensor<?x?xf64>
  return %2 : tensor<?x?xf64>
}

// -----

// Sizes of inputs are what the runtime has checked, and parts of them are smaller.
// CHECK-LABEL: @inputs(
// CHECK-NOT: hrt.check
func.func @inputs(%x: tensor<?x?x64xf32>) -> tensor<?x4096xf32> {
  %to = "onnx.Constant"() {value_ints = array<i64: -1, 64>} : () -> tensor<2xi64>
  %axis = "onnx.Constant"() {value_ints = array<i64: 1>} : () -> tensor<1xi64>
  %sizes = "onnx.Constant"() {value_ints = array<i64: 1, 64>} : () -> tensor<2xi64>
  %0 = "onnx.Sin"(%x) : (tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  %1 = "onnx.Reshape"(%0, %to) : (tensor<?x?x64xf32>, tensor<2xi64>) -> tensor<?x64xf32>
  %2 = "onnx.Tile"(%1, %sizes) : (tensor<?x64xf32>, tensor<2xi64>) -> tensor<?x4096xf32>
  return %2 : tensor<?x4096xf32>
}

// -----

// What several inputs' sizes multiply to is not: here n * n * m.
// CHECK-LABEL: @outer(
// CHECK-COUNT-1: hrt.check %{{.*}}, "node: cannot allocate a tensor of {}x{}x{}xf32: too many elements"
// CHECK-NOT: hrt.check
func.func @outer(%x: tensor<?x1x1xf32> {onnx.dims = ["n", "", ""]}, %y: tensor<?x1xf32> {onnx.dims = ["n", ""]},
                 %z: tensor<?xf32> {onnx.dims = ["m"]}) -> tensor<?x?x?xf32> {
  %0 = "onnx.Add"(%x, %y) : (tensor<?x1x1xf32>, tensor<?x1xf32>) -> tensor<?x?x1xf32>
  %1 = "onnx.Add"(%0, %z) : (tensor<?x?x1xf32>, tensor<?xf32>) -> tensor<?x?x?xf32> loc("node")
  return %1 : tensor<?x?x?xf32>
}

// -----

// A view is checked as a buffer is: 4 elements are not [4, 2^62 + 1].
// CHECK-LABEL: @reshape(
// CHECK: hrt.check %{{.*}}, "node: expected the new shape to have {} elements as the input has, but got {}"
// CHECK: hrt.check %{{.*}}, "node: expected a size not to be negative, but got {}"
// CHECK: hrt.check %{{.*}}, "node: expected a size not to be negative, but got {}"
// CHECK: hrt.check %{{.*}}, "node: cannot allocate a tensor of {}x{}xf32: too many elements"
// CHECK: tensor.reshape
func.func @reshape(%x: tensor<4xf32>, %shape: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = "onnx.Reshape"(%x, %shape) : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32> loc("node")
  return %0 : tensor<?x?xf32>
}

// -----

// The check comes before an operation of the hone dialect, whose result is as large as its operand's sizes say.
// CHECK-LABEL: @product(
// CHECK: hrt.check %{{.*}}, "node: cannot allocate a tensor of {}x{}xf32: too many elements"
// CHECK: hone.matmul
func.func @product(%x: tensor<?x0xf32>, %n: tensor<1xi64>) -> tensor<?x?xf32> {
  %zero = "onnx.Constant"() {value_ints = array<i64: 0>} : () -> tensor<1xi64>
  %sizes = "onnx.Concat"(%zero, %n) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %y = "onnx.ConstantOfShape"(%sizes) : (tensor<2xi64>) -> tensor<0x?xf32>
  %0 = "onnx.MatMul"(%x, %y) : (tensor<?x0xf32>, tensor<0x?xf32>) -> tensor<?x?xf32> loc("node")
  return %0 : tensor<?x?xf32>
}

// -----

// Each size of a window is checked once; none is an empty result.
// CHECK-LABEL: @window(
// CHECK: %[[H:.*]] = tensor.dim %{{.*}}, %c2
// CHECK: hrt.check %{{.*}}, "node: expected the padded input of size {} to be at least as large as the kernel of size {}"(%[[H]], %c5{{.*}})
// CHECK-NOT: hrt.check %{{.*}} not to be negative
// CHECK: hone.pool
func.func @window(%x: tensor<1x3x?x9xf32>) -> tensor<1x3x?x5xf32> {
  %0 = "onnx.MaxPool"(%x) {kernel_shape = array<i64: 5, 5>} : (tensor<1x3x?x9xf32>) -> tensor<1x3x?x5xf32> loc("node")
  return %0 : tensor<1x3x?x5xf32>
}
