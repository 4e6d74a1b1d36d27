// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-expand-onnx-functions=domain=com.microsoft --split-input-file --verify-diagnostics

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @no_heads(%x: tensor<1x3x8xf32>, %w: tensor<8x24xf32>) -> tensor<1x3x8xf32> {
  // expected-error @+1 {{expected num_heads to be positive, but got 0}}
  %0 = "onnx.com.microsoft.Attention"(%x, %w) {num_heads = 0 : i64} : (tensor<1x3x8xf32>, tensor<8x24xf32>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @uneven_heads(%x: tensor<1x3x8xf32>, %w: tensor<8x24xf32>) -> tensor<1x3x8xf32> {
  // expected-error @+1 {{expected the width of the query to be a positive multiple of 3 heads, but got 8}}
  %0 = "onnx.com.microsoft.Attention"(%x, %w) {num_heads = 3 : i64} : (tensor<1x3x8xf32>, tensor<8x24xf32>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @columns(%x: tensor<1x3x8xf32>, %w: tensor<8x25xf32>) -> tensor<1x3x8xf32> {
  // expected-error @+1 {{expected the columns of the weights to be a multiple of 3, but got 25}}
  %0 = "onnx.com.microsoft.Attention"(%x, %w) {num_heads = 2 : i64} : (tensor<1x3x8xf32>, tensor<8x25xf32>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @widths(%x: tensor<1x3x8xf32>, %w: tensor<8x24xf32>) -> tensor<1x3x8xf32> {
  // expected-error @+1 {{expected the columns of the weights to be the sum of qkv_hidden_sizes, 32, but got 24}}
  %0 = "onnx.com.microsoft.Attention"(%x, %w) {num_heads = 2 : i64, qkv_hidden_sizes = array<i64: 8, 8, 16>} : (tensor<1x3x8xf32>, tensor<8x24xf32>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @mask(%x: tensor<1x3x8xf32>, %w: tensor<8x24xf32>, %m: tensor<1x1x3x3xi32>) -> tensor<1x3x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  // expected-error @+1 {{unsupported unidirectional 1 with a mask_index of 4 dimensions; supported: 0}}
  %0 = "onnx.com.microsoft.Attention"(%x, %w, %none, %m) {num_heads = 2 : i64, unidirectional = 1 : i64} : (tensor<1x3x8xf32>, tensor<8x24xf32>, none, tensor<1x1x3x3xi32>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @mask_rank(%x: tensor<1x3x8xf32>, %w: tensor<8x24xf32>, %m: tensor<1x1x1x3x3xi32>) -> tensor<1x3x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  // expected-error @+1 {{unsupported mask_index of 5 dimensions; supported: [batch], [batch, keys], [batch, queries, keys] and [batch, 1, all, all]}}
  %0 = "onnx.com.microsoft.Attention"(%x, %w, %none, %m) {num_heads = 2 : i64} : (tensor<1x3x8xf32>, tensor<8x24xf32>, none, tensor<1x1x1x3x3xi32>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @rotary(%x: tensor<1x3x8xf32>, %w: tensor<8x24xf32>) -> tensor<1x3x8xf32> {
  // expected-error @+1 {{unsupported do_rotary 1; supported: 0}}
  %0 = "onnx.com.microsoft.Attention"(%x, %w) {num_heads = 2 : i64, do_rotary = 1 : i64} : (tensor<1x3x8xf32>, tensor<8x24xf32>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @segments(%i: tensor<1x3xi32>, %w: tensor<9x8xf32>, %g: tensor<8xf32>) -> tensor<1x3x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  // expected-error @+1 {{expected segment_ids and segment_embedding to be given together}}
  %0 = "onnx.com.microsoft.EmbedLayerNormalization"(%i, %i, %w, %w, %none, %g, %g) : (tensor<1x3xi32>, tensor<1x3xi32>, tensor<9x8xf32>, tensor<9x8xf32>, none, tensor<8xf32>, tensor<8xf32>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @activation(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{unsupported activation 'Sin'; supported: HardSigmoid, LeakyRelu, Relu, Sigmoid, Tanh}}
  %0 = "onnx.com.microsoft.FusedGemm"(%a, %b) {activation = "Sin"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @parts(%s: tensor<f32>, %z: tensor<ui8>, %a: tensor<2x3xui8>) -> tensor<2x3xui8> {
  // expected-error @+1 {{expected each input to have a scale and a zero point, but got 2 in all}}
  %0 = "onnx.com.microsoft.QLinearConcat"(%s, %z, %a, %s) {axis = 1 : i64} : (tensor<f32>, tensor<ui8>, tensor<2x3xui8>, tensor<f32>) -> tensor<2x3xui8>
  return %0 : tensor<2x3xui8>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @rows(%s: tensor<f32>, %z: tensor<ui8>, %a: tensor<2x3xui8>) -> tensor<2x3xui8> {
  // expected-error @+1 {{unsupported axis 0 of opset 11; supported: the last one}}
  %0 = "onnx.com.microsoft.QLinearSoftmax"(%a, %s, %z, %s, %z) {axis = 0 : i64, opset = 11 : i64} : (tensor<2x3xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xui8>
  return %0 : tensor<2x3xui8>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @sections(%x: tensor<?x2x?x16xf32>, %p: tensor<3x?x?xi64>, %c: tensor<64x8xf32>) -> tensor<?x2x?x16xf32> {
  // expected-error @+1 {{expected mrope_section to be 3 numbers from 0 to 65536}}
  %0 = "onnx.com.microsoft.MRotaryEmbedding"(%x, %p, %c, %c) {mrope_section = array<i64: 4, 4>} : (tensor<?x2x?x16xf32>, tensor<3x?x?xi64>, tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<?x2x?x16xf32>
  return %0 : tensor<?x2x?x16xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @heads(%x: tensor<?x?x32xf32>, %p: tensor<3x?x?xi64>, %c: tensor<64x8xf32>) -> tensor<?x?x32xf32> {
  // expected-error @+1 {{expected num_heads for an input of 3 dimensions}}
  %0 = "onnx.com.microsoft.MRotaryEmbedding"(%x, %p, %c, %c) {mrope_section = array<i64: 2, 3, 3>} : (tensor<?x?x32xf32>, tensor<3x?x?xi64>, tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<?x?x32xf32>
  return %0 : tensor<?x?x32xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @gate(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{unsupported activation 'gelu'; supported: sigmoid, silu, swish}}
  %0 = "onnx.com.microsoft.GatedRMSNorm"(%x, %w, %x) {activation = "gelu"} : (tensor<?x8xf32>, tensor<8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @width(%x: tensor<?x?xf32>, %w: tensor<8xf32>) -> tensor<?x?xf32> {
  // expected-error @+1 {{expected size 1 of input 0 to be known}}
  %0 = "onnx.com.microsoft.BranchwiseRMSNorm"(%x, %w) {num_branches = 2 : i64} : (tensor<?x?xf32>, tensor<8xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @claimed(%x: tensor<?x4611686018427387904xf32>) -> tensor<?x4611686018427387904xf32> {
  // expected-error @+1 {{unsupported size 2305843009213693952; supported: 1 to 16777216}}
  %0 = "onnx.com.microsoft.BranchwiseRMSNorm"(%x) {num_branches = 2 : i64} : (tensor<?x4611686018427387904xf32>) -> tensor<?x4611686018427387904xf32>
  return %0 : tensor<?x4611686018427387904xf32>
}
}
