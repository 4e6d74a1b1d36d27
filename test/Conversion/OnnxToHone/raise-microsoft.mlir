// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-raise --split-input-file | FileCheck %s -enable-var-scope

// What onnxruntime fused is raised as what it was fused of: lengths are the end of the keys that each sequence has.

// CHECK-LABEL: func @lengths
// CHECK: %[[PACKED:.*]] = hone.linear %arg0
// CHECK-NOT: onnx.com.microsoft
// CHECK: hone.attention {{.*}} scale(5.000000e-01)
// CHECK-SAME: -> tensor<?x2x?x4xf32>
module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
hone.param @w : tensor<8x24xf32> = dense<1.0> : tensor<8x24xf32>
func.func @lengths(%x: tensor<?x?x8xf32>, %m: tensor<?xi32>) -> tensor<?x?x8xf32> {
  %w = hone.get_param @w : tensor<8x24xf32>
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.com.microsoft.Attention"(%x, %w, %none, %m) {num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<8x24xf32>, none, tensor<?xi32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}
}

// -----

// CHECK-LABEL: func @causal
// CHECK: hone.attention {{.*}} pattern(#hone.causal)
module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
hone.param @w : tensor<8x24xf32> = dense<1.0> : tensor<8x24xf32>
func.func @causal(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %w = hone.get_param @w : tensor<8x24xf32>
  %0 = "onnx.com.microsoft.Attention"(%x, %w) {num_heads = 2 : i64, unidirectional = 1 : i64} : (tensor<?x?x8xf32>, tensor<8x24xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}
}

// -----

// CHECK-LABEL: func @embedding
// CHECK: hone.embedding %arg0
// CHECK: hone.embedding
// CHECK: hone.layer_norm
module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
hone.param @words : tensor<90x8xf32> = dense<1.0> : tensor<90x8xf32>
hone.param @positions : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
hone.param @row : tensor<8xf32> = dense<1.0> : tensor<8xf32>
func.func @embedding(%ids: tensor<?x?xi32>) -> tensor<?x?x8xf32> {
  %words = hone.get_param @words : tensor<90x8xf32>
  %positions = hone.get_param @positions : tensor<16x8xf32>
  %row = hone.get_param @row : tensor<8xf32>
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.com.microsoft.EmbedLayerNormalization"(%ids, %none, %words, %positions, %none, %row, %row) : (tensor<?x?xi32>, none, tensor<90x8xf32>, tensor<16x8xf32>, none, tensor<8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}
}

// -----

// A product whose rows are rounded to 8 bits, as MatMulInteger of a DynamicQuantizeLinear.

// CHECK-LABEL: func @dynamic
// CHECK: hone.linear %arg0, %{{.*}} bias(%{{.*}}) : (tensor<?x8xf32>, tensor<4x8xf32, #hone.affine<{{.*}}activations = 8
module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
hone.param @codes : tensor<8x4xi8> = dense<1> : tensor<8x4xi8>
hone.param @scales : tensor<4xf32> = dense<0.5> : tensor<4xf32>
hone.param @bias : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @dynamic(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %codes = hone.get_param @codes : tensor<8x4xi8>
  %scales = hone.get_param @scales : tensor<4xf32>
  %bias = hone.get_param @bias : tensor<4xf32>
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.com.microsoft.DynamicQuantizeMatMul"(%x, %codes, %scales, %none, %bias) : (tensor<?x8xf32>, tensor<8x4xi8>, tensor<4xf32>, none, tensor<4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
}

// -----

// Columns of M-RoPE have positions of their own; norms may be of heads, or of the branches of a residual stream.
// CHECK-LABEL: func @multimodal
// CHECK: "onnx.Where"
// CHECK: hone.rope %{{.*}} : (tensor<?x2x?x16xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x2x?x16xf32>
// CHECK-NOT: onnx.com.microsoft
// CHECK-LABEL: func @gated
// CHECK: hone.rms_norm %{{.*}}, %arg1 epsilon(9.99999997E-7) : (tensor<?x?x4x8xf32>, tensor<8xf32>) -> tensor<?x?x4x8xf32>
// CHECK: "onnx.Sigmoid"(%arg2)
// CHECK-LABEL: func @branchwise
// CHECK: hone.rms_norm %arg0, %{{.*}} : (tensor<?x?x3x32xf32>, tensor<32xf32>) -> tensor<?x?x3x32xf32>
// CHECK: "onnx.Mul"(%{{.*}}, %arg1)
module attributes {onnx.opsets = {ai.onnx = 18 : i64, com.microsoft = 1 : i64}} {
func.func @multimodal(%x: tensor<?x?x32xf32>, %p: tensor<3x?x?xi64>, %c: tensor<64x8xf32>, %s: tensor<64x8xf32>) -> tensor<?x?x32xf32> {
  %0 = "onnx.com.microsoft.MRotaryEmbedding"(%x, %p, %c, %s) {mrope_section = array<i64: 2, 3, 3>, num_heads = 2 : i64} : (tensor<?x?x32xf32>, tensor<3x?x?xi64>, tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<?x?x32xf32>
  return %0 : tensor<?x?x32xf32>
}
func.func @gated(%x: tensor<?x?x32xf32>, %w: tensor<8xf32>, %g: tensor<?x?x32xf32>) -> tensor<?x?x32xf32> {
  %0 = "onnx.com.microsoft.GatedRMSNorm"(%x, %w, %g) {epsilon = 1.0e-6 : f32} : (tensor<?x?x32xf32>, tensor<8xf32>, tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
  return %0 : tensor<?x?x32xf32>
}
func.func @branchwise(%x: tensor<?x?x3x32xf32>, %w: tensor<3x32xf32>) -> tensor<?x?x3x32xf32> {
  %0 = "onnx.com.microsoft.BranchwiseRMSNorm"(%x, %w) {epsilon = 1.0e-6 : f32} : (tensor<?x?x3x32xf32>, tensor<3x32xf32>) -> tensor<?x?x3x32xf32>
  return %0 : tensor<?x?x3x32xf32>
}
}
