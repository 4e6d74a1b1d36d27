// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-expand-onnx-functions=domain=com.microsoft | FileCheck %s -enable-var-scope

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {

// The floats that the integers stand for; a zero point that is not given is 0 of the operand's type.
// CHECK-LABEL: func @sum
// CHECK-DAG: %[[LHS:.*]] = "onnx.DequantizeLinear"(%arg0, %arg1, %arg2)
// CHECK-DAG: %[[RHS:.*]] = "onnx.DequantizeLinear"(%arg3, %arg4)
// CHECK: %[[SUM:.*]] = "onnx.Add"(%[[LHS]], %[[RHS]])
// CHECK: %[[ZERO:.*]] = "onnx.Constant"() {value = dense<0> : tensor<i8>}
// CHECK: "onnx.QuantizeLinear"(%[[SUM]], %arg5, %[[ZERO]]) {{.*}} -> tensor<?x4xi8>
func.func @sum(%a: tensor<?x4xi8>, %sa: tensor<f32>, %za: tensor<i8>, %b: tensor<?x4xi8>, %sb: tensor<f32>, %sc: tensor<f32>) -> tensor<?x4xi8> {
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.com.microsoft.QLinearAdd"(%a, %sa, %za, %b, %sb, %none, %sc) : (tensor<?x4xi8>, tensor<f32>, tensor<i8>, tensor<?x4xi8>, tensor<f32>, none, tensor<f32>) -> tensor<?x4xi8>
  return %0 : tensor<?x4xi8>
}

// Operands that are repeated in threes.
// CHECK-LABEL: func @joined
// CHECK-COUNT-2: "onnx.DequantizeLinear"
// CHECK: "onnx.Concat"(%{{.*}}, %{{.*}}) {axis = 1 : i64}
func.func @joined(%s: tensor<f32>, %z: tensor<ui8>, %a: tensor<2x3xui8>, %b: tensor<2x4xui8>) -> tensor<2x7xui8> {
  %0 = "onnx.com.microsoft.QLinearConcat"(%s, %z, %a, %s, %z, %b, %s, %z) {axis = 1 : i64} : (tensor<f32>, tensor<ui8>, tensor<2x3xui8>, tensor<f32>, tensor<ui8>, tensor<2x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x7xui8>
  return %0 : tensor<2x7xui8>
}

// Channels that are last are moved, and moved back.
// CHECK-LABEL: func @pooled
// CHECK: "onnx.Transpose"(%{{.*}}) {perm = array<i64: 0, 3, 1, 2>}
// CHECK: "onnx.AveragePool"({{.*}}kernel_shape = array<i64: 2, 2>
// CHECK: "onnx.Transpose"(%{{.*}}) {perm = array<i64: 0, 2, 3, 1>}
func.func @pooled(%x: tensor<1x4x4x3xui8>, %s: tensor<f32>, %z: tensor<ui8>) -> tensor<1x3x3x3xui8> {
  %0 = "onnx.com.microsoft.QLinearAveragePool"(%x, %s, %z, %s, %z) {channels_last = 1 : i64, kernel_shape = array<i64: 2, 2>} : (tensor<1x4x4x3xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x3x3xui8>
  return %0 : tensor<1x3x3x3xui8>
}

// An activation has its numbers from the attributes of the node.
// CHECK-LABEL: func @activated
// CHECK: %[[PRODUCT:.*]] = "onnx.Gemm"(%arg0, %arg1) {alpha = 1.000000e+00 : f32, beta = 1.000000e+00 : f32, transA = 0 : i64, transB = 1 : i64}
// CHECK: "onnx.LeakyRelu"(%[[PRODUCT]]) {alpha = 2.500000e-01 : f32}
func.func @activated(%a: tensor<2x3xf32>, %b: tensor<4x3xf32>) -> tensor<2x4xf32> {
  %0 = "onnx.com.microsoft.FusedGemm"(%a, %b) {transB = 1 : i64, activation = "LeakyRelu", activation_alpha = 0.25 : f32} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// The left half of each row, times the GELU of the right.
// CHECK-LABEL: func @split
// CHECK: %[[BIASED:.*]] = "onnx.Add"(%arg0, %arg1)
// CHECK-DAG: %[[LEFT:.*]] = "onnx.Slice"(%[[BIASED]], %{{.*}}) : {{.*}} -> tensor<2x3x4xf32>
// CHECK: %[[GATE:.*]] = "onnx.com.microsoft.Gelu"
// CHECK: "onnx.Mul"(%[[LEFT]], %[[GATE]])
func.func @split(%x: tensor<2x3x8xf32>, %bias: tensor<8xf32>) -> tensor<2x3x4xf32> {
  %0 = "onnx.com.microsoft.BiasSplitGelu"(%x, %bias) : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// Functions of the default domain stay.
// CHECK-LABEL: func @other_domain
// CHECK: onnx.MeanVarianceNormalization
func.func @other_domain(%x: tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32> {
  %0 = "onnx.MeanVarianceNormalization"(%x) : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  return %0 : tensor<2x3x4x4xf32>
}

// The groups are the channels of an instance; what a skip is added to keeps its shape.
// CHECK-LABEL: func @grouped
// CHECK: "onnx.Add"
// CHECK: "onnx.Transpose"(%{{.*}}) {perm = array<i64: 0, 3, 1, 2>}
// CHECK: "onnx.InstanceNormalization"{{.*}} -> tensor<?x3x?xf32>
// CHECK: "onnx.Sigmoid"
func.func @grouped(%x: tensor<?x4x4x6xf16>, %p: tensor<6xf32>, %skip: tensor<?x6xf16>) -> tensor<?x4x4x6xf16> {
  %none = "onnx.NoValue"() : () -> none
  %0:2 = "onnx.com.microsoft.SkipGroupNorm"(%x, %p, %p, %skip) {groups = 3 : i64, activation = 1 : i64} : (tensor<?x4x4x6xf16>, tensor<6xf32>, tensor<6xf32>, tensor<?x6xf16>) -> (tensor<?x4x4x6xf16>, tensor<?x4x4x6xf16>)
  return %0#0 : tensor<?x4x4x6xf16>
}

// The state is what is before the input, and what is at the end of both.
// CHECK-LABEL: func @causal
// CHECK: %[[STATE:.*]] = "onnx.Reshape"(%arg2
// CHECK: %[[ALL:.*]] = "onnx.Concat"(%[[STATE]], %{{.*}}) {axis = 2 : i64}
// CHECK: "onnx.Conv"(%[[ALL]], %arg1) {{.*}}group = 3 : i64
// CHECK: "onnx.Sigmoid"
// CHECK: "onnx.Slice"(%[[ALL]]
func.func @causal(%x: tensor<?x3x?xf32>, %w: tensor<3x1x4xf32>, %past: tensor<?x3x3xf32>) -> tensor<?x3x3xf32> {
  %none = "onnx.NoValue"() : () -> none
  %0:2 = "onnx.com.microsoft.CausalConvWithState"(%x, %w, %none, %past) {activation = "silu"} : (tensor<?x3x?xf32>, tensor<3x1x4xf32>, none, tensor<?x3x3xf32>) -> (tensor<?x3x?xf32>, tensor<?x3x3xf32>)
  return %0#1 : tensor<?x3x3xf32>
}

// A cache that is shared holds as many rows as are in use.
// CHECK-LABEL: func @decoder
// CHECK: %[[KEYS:.*]] = "onnx.Slice"(%arg1
// CHECK: %[[PARTS:.*]]:4 = "onnx.com.microsoft.MultiHeadAttention"({{.*}}%[[KEYS]],
// CHECK: "onnx.Concat"(%[[PARTS]]#1
func.func @decoder(%x: tensor<?x1x8xf32>, %cache: tensor<?x2x9x4xf32>, %length: tensor<1xi32>) -> tensor<?x1x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  %0:3 = "onnx.com.microsoft.DecoderMaskedMultiHeadAttention"(%x, %x, %x, %none, %none, %cache, %cache, %length) {num_heads = 2 : i64, past_present_share_buffer = 1 : i64}
    : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, none, none, tensor<?x2x9x4xf32>, tensor<?x2x9x4xf32>, tensor<1xi32>) -> (tensor<?x1x8xf32>, tensor<?x2x9x4xf32>, tensor<?x2x9x4xf32>)
  return %0#0 : tensor<?x1x8xf32>
}

// A recurrent layer with the weights that its integers stand for, of rows where they were columns.
// CHECK-LABEL: func @recurrent
// CHECK: %[[WEIGHT:.*]] = "onnx.Transpose"(%{{.*}}) {perm = array<i64: 0, 2, 1>} : (tensor<1x2x12xf32>) -> tensor<1x12x2xf32>
// CHECK: %[[RECURRENCE:.*]] = "onnx.Transpose"(%{{.*}}) {perm = array<i64: 0, 2, 1>} : (tensor<1x3x12xf32>) -> tensor<1x12x3xf32>
// CHECK: "onnx.LSTM"(%arg0, %[[WEIGHT]], %[[RECURRENCE]], %{{.*}}) {direction = "reverse", hidden_size = 3 : i64, input_forget = 0 : i64}
func.func @recurrent(%x: tensor<?x?x2xf32>, %w: tensor<1x2x12xi8>, %r: tensor<1x3x12xi8>, %b: tensor<1x24xf32>, %s: tensor<1xf32>, %z: tensor<1xi8>, %rs: tensor<1x12xf32>, %rz: tensor<1x12xi8>) -> tensor<?x1x?x3xf32> {
  %none = "onnx.NoValue"() : () -> none
  %0:3 = "onnx.com.microsoft.DynamicQuantizeLSTM"(%x, %w, %r, %b, %none, %none, %none, %none, %s, %z, %rs, %rz) {direction = "reverse", hidden_size = 3 : i64} : (tensor<?x?x2xf32>, tensor<1x2x12xi8>, tensor<1x3x12xi8>, tensor<1x24xf32>, none, none, none, none, tensor<1xf32>, tensor<1xi8>, tensor<1x12xf32>, tensor<1x12xi8>) -> (tensor<?x1x?x3xf32>, tensor<1x?x3xf32>, tensor<1x?x3xf32>)
  return %0#0 : tensor<?x1x?x3xf32>
}
}
