// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-expand-onnx-functions=domain=com.microsoft --split-input-file --verify-diagnostics

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @group_count(%x: tensor<1x4x4x6xf32>, %p: tensor<6xf32>) {
  // expected-error @+1 {{expected the channels to be a multiple of groups, but got 6 and 4}}
  %0 = "onnx.com.microsoft.GroupNorm"(%x, %p, %p) {groups = 4 : i64, activation = 0 : i64} : (tensor<1x4x4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<1x4x4x6xf32>
  return
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @group_parameters(%x: tensor<1x4x4x6xf32>, %p: tensor<6xf32>, %q: tensor<5xf32>) {
  // expected-error @+1 {{expected gamma and beta to have an element for each of 6 channels, but got 5}}
  %0 = "onnx.com.microsoft.GroupNorm"(%x, %p, %q) {groups = 3 : i64, activation = 0 : i64} : (tensor<1x4x4x6xf32>, tensor<6xf32>, tensor<5xf32>) -> tensor<1x4x4x6xf32>
  return
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @group_activation(%x: tensor<1x4x4x6xf32>, %p: tensor<6xf32>) {
  // expected-error @+1 {{unsupported activation 2; supported: 0 (none), 1 (SiLU)}}
  %0 = "onnx.com.microsoft.GroupNorm"(%x, %p, %p) {groups = 3 : i64, activation = 2 : i64} : (tensor<1x4x4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<1x4x4x6xf32>
  return
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @group_skip(%x: tensor<1x4x4x6xf32>, %p: tensor<6xf32>, %s: tensor<4x4x6xf32>) {
  // expected-error @+1 {{expected skip to have 2 or 4 dimensions, but got 3}}
  %0 = "onnx.com.microsoft.SkipGroupNorm"(%x, %p, %p, %s) {groups = 3 : i64, activation = 0 : i64} : (tensor<1x4x4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x4x6xf32>) -> tensor<1x4x4x6xf32>
  return
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @causal_window(%x: tensor<1x3x5xf32>, %w: tensor<3x1x4xf32>) {
  // expected-error @+1 {{unsupported state_window 2; supported: 0}}
  %0 = "onnx.com.microsoft.CausalConvWithState"(%x, %w) {state_window = 2 : i64} : (tensor<1x3x5xf32>, tensor<3x1x4xf32>) -> tensor<1x3x5xf32>
  return
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @causal_dimensions(%x: tensor<1x3x5xf32>, %w: tensor<3x1x4xf32>) {
  // expected-error @+1 {{unsupported ndim 2; supported: 1}}
  %0 = "onnx.com.microsoft.CausalConvWithState"(%x, %w) {ndim = 2 : i64} : (tensor<1x3x5xf32>, tensor<3x1x4xf32>) -> tensor<1x3x5xf32>
  return
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @causal_activation(%x: tensor<1x3x5xf32>, %w: tensor<3x1x4xf32>) {
  // expected-error @+1 {{unsupported activation 'relu'; supported: none, silu, swish}}
  %0 = "onnx.com.microsoft.CausalConvWithState"(%x, %w) {activation = "relu"} : (tensor<1x3x5xf32>, tensor<3x1x4xf32>) -> tensor<1x3x5xf32>
  return
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @causal_weight(%x: tensor<1x3x5xf32>, %w: tensor<3x1x?xf32>) {
  // expected-error @+1 {{expected weight to be [channels, 1, taps] of known sizes}}
  %0 = "onnx.com.microsoft.CausalConvWithState"(%x, %w) {} : (tensor<1x3x5xf32>, tensor<3x1x?xf32>) -> tensor<1x3x5xf32>
  return
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @decoder_length(%x: tensor<1x1x8xf32>, %c: tensor<1x2x9x4xf32>, %none: none) {
  // expected-error @+1 {{expected input 'past_sequence_length' with past_present_share_buffer}}
  %0 = "onnx.com.microsoft.DecoderMaskedMultiHeadAttention"(%x, %x, %x, %none, %none, %c, %c) {num_heads = 2 : i64, past_present_share_buffer = 1 : i64} : (tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>, none, none, tensor<1x2x9x4xf32>, tensor<1x2x9x4xf32>) -> tensor<1x1x8xf32>
  return
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 13 : i64, com.microsoft = 1 : i64}} {
func.func @decoder_tokens(%x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{expected the query to be [batch, 1, hidden]}}
  %0 = "onnx.com.microsoft.DecoderMaskedMultiHeadAttention"(%x, %x, %x) {num_heads = 2 : i64} : (tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  return
}
}
