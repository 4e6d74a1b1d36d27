// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-convert-onnx-to-linalg | FileCheck %s

// Sizes and values of one input that another has to agree with, where only a call knows them.
module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
// CHECK-LABEL: @conv
// CHECK: hrt.check {{.*}}"expected the channels of the input to be a multiple of 2"
// CHECK: hrt.check {{.*}}"expected the channels of the weight to be a multiple of 2"
// CHECK: hrt.check {{.*}}"expected the sizes of the bias and [M] to be equal"
func.func @conv(%x: tensor<1x?x9xf32>, %w: tensor<?x?x3xf32>, %b: tensor<?xf32>) -> tensor<1x?x7xf32> {
  %0 = "onnx.Conv"(%x, %w, %b) {group = 2 : i64} : (tensor<1x?x9xf32>, tensor<?x?x3xf32>, tensor<?xf32>) -> tensor<1x?x7xf32>
  return %0 : tensor<1x?x7xf32>
}

// CHECK-LABEL: @grid
// CHECK: hrt.check {{.*}}"expected the batches of X and grid to be equal"
// CHECK-COUNT-2: hrt.check {{.*}}"expected the spatial dimensions of X to have elements"
func.func @grid(%x: tensor<?x2x?x?xf32>, %g: tensor<?x4x4x2xf32>) -> tensor<?x2x4x4xf32> {
  %0 = "onnx.GridSample"(%x, %g) : (tensor<?x2x?x?xf32>, tensor<?x4x4x2xf32>) -> tensor<?x2x4x4xf32>
  return %0 : tensor<?x2x4x4xf32>
}

// CHECK-LABEL: @regions
// CHECK: hrt.check {{.*}}"expected the sizes of rois and batch_indices to be equal"
// CHECK: hrt.check {{.*}}"expected the coordinates of a region and 4 to be equal"
// CHECK: hrt.check {{.*}}"expected batch_indices inside the batch"
func.func @regions(%x: tensor<?x2x8x8xf32>, %r: tensor<?x?xf32>, %i: tensor<?xi64>) -> tensor<?x2x1x1xf32> {
  %0 = "onnx.RoiAlign"(%x, %r, %i) : (tensor<?x2x8x8xf32>, tensor<?x?xf32>, tensor<?xi64>) -> tensor<?x2x1x1xf32>
  return %0 : tensor<?x2x1x1xf32>
}

// CHECK-LABEL: @unpool
// CHECK: hrt.check {{.*}}"expected the sizes of I and those of X to be equal"
// CHECK: hrt.check {{.*}}"expected indices inside the result"
func.func @unpool(%x: tensor<1x1x?xf32>, %i: tensor<1x1x?xi64>) -> tensor<1x1x?xf32> {
  %0 = "onnx.MaxUnpool"(%x, %i) {kernel_shape = array<i64: 2>, strides = array<i64: 2>} : (tensor<1x1x?xf32>, tensor<1x1x?xi64>) -> tensor<1x1x?xf32>
  return %0 : tensor<1x1x?xf32>
}

// CHECK-LABEL: @resize
// CHECK: hrt.check {{.*}}"cannot resize a dimension of 0 elements to others"
func.func @resize(%x: tensor<?xf32>, %to: tensor<1xi64>) -> tensor<?xf32> {
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.Resize"(%x, %none, %none, %to) : (tensor<?xf32>, none, none, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: @blocks
// CHECK: hrt.check {{.*}}"expected the sizes of the scale and the blocks of x to be equal"
// CHECK: hrt.check {{.*}}"expected the sizes of the zero point and the blocks of x to be equal"
func.func @blocks(%x: tensor<4x?xi8>, %s: tensor<4x?xf32>, %z: tensor<4x?xi8>) -> tensor<4x?xf32> {
  %0 = "onnx.DequantizeLinear"(%x, %s, %z) {block_size = 16 : i64} : (tensor<4x?xi8>, tensor<4x?xf32>, tensor<4x?xi8>) -> tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// CHECK-LABEL: @sequences
// CHECK: hrt.check {{.*}}"expected the sizes of sequence_lens and [batch] to be equal"
// CHECK: hrt.check {{.*}}"expected sequence_lens to be from 0 to the number of steps"
func.func @sequences(%x: tensor<?x?x3xf32>, %w: tensor<1x5x3xf32>, %r: tensor<1x5x5xf32>, %n: tensor<?xi32>) -> tensor<?x1x?x5xf32> {
  %none = "onnx.NoValue"() : () -> none
  %0, %1 = "onnx.RNN"(%x, %w, %r, %none, %n) {hidden_size = 5 : i64} : (tensor<?x?x3xf32>, tensor<1x5x3xf32>, tensor<1x5x5xf32>, none, tensor<?xi32>) -> (tensor<?x1x?x5xf32>, tensor<1x?x5xf32>)
  return %0 : tensor<?x1x?x5xf32>
}
}
