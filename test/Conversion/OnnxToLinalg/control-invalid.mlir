// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --split-input-file --verify-diagnostics --hone-convert-onnx-to-linalg

func.func @if_ranks(%cond: tensor<i1>, %x: tensor<2xf32>, %y: tensor<f32>) -> tensor<*xf32> {
  // expected-error @below {{expected both branches to give result 0 one element type and rank, but got 'tensor<2xf32>' and 'tensor<f32>'}}
  %r = "onnx.If"(%cond) ({
    "onnx.Yield"(%x) : (tensor<2xf32>) -> ()
  }, {
    "onnx.Yield"(%y) : (tensor<f32>) -> ()
  }) {onnx.regions = ["then_branch", "else_branch"]} : (tensor<i1>) -> tensor<*xf32>
  return %r : tensor<*xf32>
}

// -----

func.func @loop_body_inputs(%n: tensor<i64>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %none = "onnx.NoValue"() : () -> none
  // expected-error @below {{expected subgraph 'body' to have 3 inputs and at least 2 outputs, but got 2 and 1}}
  %r = "onnx.Loop"(%n, %none, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>):
    "onnx.Yield"(%go) : (tensor<i1>) -> ()
  }) {onnx.regions = ["body"]} : (tensor<i64>, none, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @loop_changes_type(%n: tensor<i64>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %none = "onnx.NoValue"() : () -> none
  // expected-error @below {{expected carried value 0 to keep its type 'tensor<?xf32>', but got 'tensor<i64>'}}
  %r = "onnx.Loop"(%n, %none, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %state: tensor<2xf32>):
    "onnx.Yield"(%go, %i) : (tensor<i1>, tensor<i64>) -> ()
  }) {onnx.regions = ["body"]} : (tensor<i64>, none, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @scan_inputs(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{expected num_scan_inputs to be in [1, 1], but got 2}}
  %r = "onnx.Scan"(%x) ({
  ^bb0(%one: tensor<f32>):
    "onnx.Yield"(%one) : (tensor<f32>) -> ()
  }) {num_scan_inputs = 2 : i64, onnx.regions = ["body"]} : (tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @nested_drafts(%x: tensor<2x3xf32>) -> tensor<*xf32> {
  %r = "onnx.Scan"(%x) ({
  ^bb0(%row: tensor<3xf32>):
    // expected-error @below {{unsupported loop inside of a loop, both of which collect values whose rank the file does not say; supported: one of them}}
    %inner = "onnx.Scan"(%row) ({
    ^bb0(%one: tensor<f32>):
      %same = "onnx.Identity"(%one) : (tensor<f32>) -> tensor<*xf32>
      "onnx.Yield"(%same) : (tensor<*xf32>) -> ()
    }) {num_scan_inputs = 1 : i64, onnx.regions = ["body"]} : (tensor<3xf32>) -> tensor<*xf32>
    "onnx.Yield"(%inner) : (tensor<*xf32>) -> ()
  }) {num_scan_inputs = 1 : i64, onnx.regions = ["body"]} : (tensor<2x3xf32>) -> tensor<*xf32>
  return %r : tensor<*xf32>
}

// -----

func.func @update_rule(%q: tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  // expected-error @below {{unsupported update_rule 'other'; supported: linear, gated, delta, gated_delta}}
  %r, %s = "onnx.LinearAttention"(%q, %q, %q) {update_rule = "other", q_num_heads = 1 : i64, kv_num_heads = 1 : i64} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x1x4x4xf32>)
  return %r : tensor<1x2x4xf32>
}

// -----

func.func @rule_without_decay(%q: tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  // expected-error @below {{expected input 'decay' with update_rule 'gated'}}
  %r, %s = "onnx.LinearAttention"(%q, %q, %q) {update_rule = "gated", q_num_heads = 1 : i64, kv_num_heads = 1 : i64} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x1x4x4xf32>)
  return %r : tensor<1x2x4xf32>
}

// -----

func.func @widths_of_beta(%q: tensor<1x2x4xf32>, %b: tensor<1x2x3xf32>) -> tensor<1x2x4xf32> {
  %none = "onnx.NoValue"() : () -> none
  // expected-error @below {{expected the columns of beta to be 1 or 2, but got 3}}
  %r, %s = "onnx.LinearAttention"(%q, %q, %q, %none, %none, %b) {update_rule = "delta", q_num_heads = 2 : i64, kv_num_heads = 2 : i64} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, none, none, tensor<1x2x3xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x2x2xf32>)
  return %r : tensor<1x2x4xf32>
}

// -----

func.func @ngrams(%x: tensor<5xi64>) -> tensor<3xf32> {
  // expected-error @below {{expected ngram_counts to divide pool_int64s into n-grams, each with one of ngram_indexes}}
  %r = "onnx.TfIdfVectorizer"(%x) {mode = "TF", min_gram_length = 2 : i64, max_gram_length = 2 : i64, max_skip_count = 0 : i64, ngram_counts = array<i64: 0, 0>, ngram_indexes = array<i64: 0, 1, 2>, pool_int64s = array<i64: 1, 2, 3>} : (tensor<5xi64>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
