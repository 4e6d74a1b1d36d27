// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt --hone-convert-onnx-to-linalg --split-input-file --verify-diagnostics %s

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @heads(%q: tensor<1x3x8xf32>, %k: tensor<1x3x8xf32>, %v: tensor<1x3x8xf32>) -> tensor<1x3x8xf32> {
  // expected-error @+1 {{expected q_num_heads and kv_num_heads to be positive with three-dimensional inputs}}
  %0 = "onnx.Attention"(%q, %k, %v) : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @groups(%q: tensor<1x3x24xf32>, %l: tensor<1xi32>, %t: tensor<i32>) -> tensor<1x3x24xf32> {
  %none = "onnx.NoValue"() : () -> none
  // expected-error @+1 {{expected num_heads to be a multiple of kv_num_heads, but got 3 and 2}}
  %0 = "onnx.com.microsoft.GroupQueryAttention"(%q, %q, %q, %none, %none, %l, %t) {num_heads = 3 : i64, kv_num_heads = 2 : i64} : (tensor<1x3x24xf32>, tensor<1x3x24xf32>, tensor<1x3x24xf32>, none, none, tensor<1xi32>, tensor<i32>) -> tensor<1x3x24xf32>
  return %0 : tensor<1x3x24xf32>
}
}

// -----

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
func.func @activation(%x: tensor<3x8xf32>, %r: tensor<3x4xf32>, %u: tensor<4x6x8xf32>, %d: tensor<4x8x6xf32>) -> tensor<3x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  // expected-error @+1 {{unsupported activation_type 'identity'; supported: relu, gelu, silu, swiglu}}
  %0 = "onnx.com.microsoft.MoE"(%x, %r, %u, %none, %d) {activation_type = "identity"} : (tensor<3x8xf32>, tensor<3x4xf32>, tensor<4x6x8xf32>, none, tensor<4x8x6xf32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}
}

// -----

func.func @flex_precision(%q: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  // expected-error @+1 {{unsupported softmax_precision 7; supported: 1 (float), 10 (float16), 11 (double), 16 (bfloat16)}}
  %0 = "onnx.ai.onnx.preview.FlexAttention"(%q, %q, %q) {softmax_precision = 7 : i64} : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %0 : tensor<1x2x3x8xf32>
}

// -----

func.func @flex_input(%q: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  // expected-error @+1 {{expected subgraph 'score_mod' to take a tensor of 'f32', but got 'tensor<1x2x3x3xf16>'}}
  %0 = "onnx.ai.onnx.preview.FlexAttention"(%q, %q, %q) ({
  ^bb0(%s: tensor<1x2x3x3xf16>):
    "onnx.Yield"(%s) : (tensor<1x2x3x3xf16>) -> ()
  }) {onnx.regions = ["score_mod"]} : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %0 : tensor<1x2x3x8xf32>
}

// -----

func.func @flex_output(%q: tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32> {
  // expected-error @+1 {{expected subgraph 'prob_mod' to give a tensor of 'f32' with four dimensions, but got 'tensor<1x2x3x3xi64>'}}
  %0 = "onnx.ai.onnx.preview.FlexAttention"(%q, %q, %q) ({
  ^bb0(%s: tensor<1x2x3x3xf32>):
    %r = "onnx.Cast"(%s) {to = 7 : i64} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xi64>
    "onnx.Yield"(%r) : (tensor<1x2x3x3xi64>) -> ()
  }) {onnx.regions = ["prob_mod"]} : (tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> tensor<1x2x3x8xf32>
  return %0 : tensor<1x2x3x8xf32>
}

// -----

func.func @flex_shape(%q: tensor<1x2x3x8xf32>, %k: tensor<1x2x5x8xf32>) -> tensor<1x2x3x8xf32> {
  // expected-error @+1 {{expected the sizes of the result of score_mod and that of its input to be equal, but got 5 and 3}}
  %0 = "onnx.ai.onnx.preview.FlexAttention"(%q, %k, %k) ({
  ^bb0(%s: tensor<1x2x3x5xf32>):
    %r = "onnx.Transpose"(%s) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x3x5xf32>) -> tensor<1x2x5x3xf32>
    "onnx.Yield"(%r) : (tensor<1x2x5x3xf32>) -> ()
  }) {onnx.regions = ["score_mod"]} : (tensor<1x2x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> tensor<1x2x3x8xf32>
  return %0 : tensor<1x2x3x8xf32>
}
