// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --hone-raise --split-input-file | FileCheck %s
// RUN: hone-opt %s --hone-expand-multi-head-attention --split-input-file --remarks-filter=hone-expand-multi-head-attention --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: @bias
// CHECK: "onnx.Add"(%arg0
// CHECK: hone.attention {{.*}} pattern(#hone.full) scale(5.000000e-01)
// CHECK-SAME: -> tensor<?x2x?x4xf32>
// CHECK-NOT: onnx.com.microsoft
func.func @bias(%x: tensor<?x?x8xf32> {onnx.dims = ["b", "s", ""]}, %y: tensor<?x?x8xf32> {onnx.dims = ["b", "t", ""]}, %bias: tensor<24xf32>) -> tensor<?x?x8xf32> {
  %0 = "onnx.com.microsoft.MultiHeadAttention"(%x, %y, %y, %bias) {num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<24xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// CHECK-LABEL: @causal
// CHECK: hone.attention {{.*}} pattern(#hone.causal) scale(5.000000e-01)
func.func @causal(%x: tensor<?x?x8xf32> {onnx.dims = ["b", "s", ""]}) -> tensor<?x?x8xf32> {
  %0 = "onnx.com.microsoft.MultiHeadAttention"(%x, %x, %x) {num_heads = 2 : i64, unidirectional = 1 : i64} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// Heads that an encoder made, and a mask of its keys.
// CHECK-LABEL: @encoder
// CHECK: hone.attention {{.*}}, %arg1, %arg1 pattern(#hone.full) scale(5.000000e-01) bias(
func.func @encoder(%x: tensor<?x?x8xf32> {onnx.dims = ["b", "s", ""]}, %k: tensor<?x2x?x4xf32> {onnx.dims = ["b", "", "t", ""]},
                   %m: tensor<?x?xi32> {onnx.dims = ["b", "t"]}) -> tensor<?x?x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.com.microsoft.MultiHeadAttention"(%x, %k, %k, %none, %m) {num_heads = 2 : i64} : (tensor<?x?x8xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, none, tensor<?x?xi32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// Pairs of past and present are the slots of a state.
// CHECK-LABEL: func.func @forward
// CHECK: hone.kv_append
// CHECK: hone.attention {{.*}} pattern(#hone.causal)
func.func @main(%ids: tensor<?x?xi64> {onnx.dims = ["b", "s"], onnx.name = "input_ids"}, %pk: tensor<?x2x?x4xf32> {onnx.dims = ["b", "", "p", ""], onnx.name = "past_key_values.0.key"},
                %pv: tensor<?x2x?x4xf32> {onnx.dims = ["b", "", "p", ""], onnx.name = "past_key_values.0.value"})
    -> (tensor<?x?x8xf32> {onnx.name = "logits"}, tensor<?x2x?x4xf32> {onnx.name = "present.0.key"}, tensor<?x2x?x4xf32> {onnx.name = "present.0.value"}) {
  %table = "onnx.Constant"() {value = dense<1.0> : tensor<9x8xf32>} : () -> tensor<9x8xf32>
  %none = "onnx.NoValue"() : () -> none
  %x = "onnx.Gather"(%table, %ids) {axis = 0 : i64} : (tensor<9x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %0:3 = "onnx.com.microsoft.MultiHeadAttention"(%x, %x, %x, %none, %none, %none, %pk, %pv) {num_heads = 2 : i64, unidirectional = 1 : i64}
    : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, none, none, none, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> (tensor<?x?x8xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x?x8xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>
}

// -----

// CHECK-LABEL: @packed
// CHECK: onnx.com.microsoft.MultiHeadAttention
// REMARK: its query is packed, or not of narrow floats
func.func @packed(%x: tensor<?x?x2x3x4xf32>) -> tensor<?x?x8xf32> {
  %0 = "onnx.com.microsoft.MultiHeadAttention"(%x) {num_heads = 2 : i64} : (tensor<?x?x2x3x4xf32>) -> tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

// -----

// CHECK-LABEL: @width
// CHECK: onnx.com.microsoft.MultiHeadAttention
// REMARK: the width of its queries is not known
func.func @width(%x: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %0 = "onnx.com.microsoft.MultiHeadAttention"(%x, %x, %x) {num_heads = 2 : i64} : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// CHECK-LABEL: @logits
// CHECK: onnx.com.microsoft.MultiHeadAttention
// REMARK: its logits are used
func.func @logits(%x: tensor<1x3x8xf32>) -> tensor<1x2x3x3xf32> {
  %0:4 = "onnx.com.microsoft.MultiHeadAttention"(%x, %x, %x) {num_heads = 2 : i64} : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> (tensor<1x3x8xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x3xf32>)
  return %0#3 : tensor<1x2x3x3xf32>
}
