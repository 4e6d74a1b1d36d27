// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --hone-widen-floats --split-input-file | FileCheck %s

// Weights keep their bytes, vectors become f32, and the file's types stay at the border. What says a type says f32.
// CHECK-LABEL: module @whole
module @whole {
  // CHECK: hone.param @w : tensor<4x8xf32, #hone.stored<f16>> = dense<1.000000e+00> : tensor<4x8xf16>
  hone.param @w : tensor<4x8xf16> = dense<1.0> : tensor<4x8xf16>
  // CHECK: hone.param @t : tensor<4x8xf32, #hone.stored<f16, transposed>>
  hone.param @t : tensor<4x8xf16, #hone.stored<f16, transposed>> = dense<1.0> : tensor<8x4xf16>
  // CHECK: hone.param @b : tensor<4xf32> = dense_resource<{{.*}}> : tensor<4xf32>
  hone.param @b : tensor<4xf16> = dense<0.5> : tensor<4xf16>
  // CHECK: hone.param @table : tensor<2x4xf16>
  hone.param @table : tensor<2x4xf16> = dense<2.0> : tensor<2x4xf16>
  // CHECK: func.func @main(%[[ARG:.*]]: tensor<?x8xf16>, %{{.*}}: tensor<?xi64>) -> tensor<?x4xf16>
  func.func @main(%x: tensor<?x8xf16>, %ids: tensor<?xi64>) -> tensor<?x4xf16> {
    // CHECK: %[[X:.*]] = "onnx.Cast"(%[[ARG]]) {to = 1 : i64} : (tensor<?x8xf16>) -> tensor<?x8xf32>
    %w = hone.get_param @w : tensor<4x8xf16>
    %t = hone.get_param @t : tensor<4x8xf16, #hone.stored<f16, transposed>>
    %b = hone.get_param @b : tensor<4xf16>
    // CHECK: %[[TABLE:.*]] = hone.get_param @table : tensor<2x4xf16>
    %table = hone.get_param @table : tensor<2x4xf16>
    // CHECK: hone.linear %[[X]], %{{.*}} bias(%{{.*}}) : (tensor<?x8xf32>, tensor<4x8xf32, #hone.stored<f16>>, tensor<4xf32>) -> tensor<?x4xf32>
    %y = hone.linear %x, %w bias(%b) : (tensor<?x8xf16>, tensor<4x8xf16>, tensor<4xf16>) -> tensor<?x4xf16>
    %z = hone.linear %x, %t : (tensor<?x8xf16>, tensor<4x8xf16, #hone.stored<f16, transposed>>) -> tensor<?x4xf16>
    %c = "onnx.Constant"() {value = dense<0.333251953> : tensor<f16>} : () -> tensor<f16>
    // CHECK: "onnx.Constant"() {value = dense<0.333251953> : tensor<f32>} : () -> tensor<f32>
    // CHECK: %[[ROWS:.*]] = "onnx.Gather"(%[[TABLE]], %{{.*}}) : (tensor<2x4xf16>, tensor<?xi64>) -> tensor<?x4xf16>
    // CHECK: "onnx.Cast"(%[[ROWS]]) {{.*}} -> tensor<?x4xf32>
    %g = "onnx.Gather"(%table, %ids) : (tensor<2x4xf16>, tensor<?xi64>) -> tensor<?x4xf16>
    // CHECK-NOT: {to = 10 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %n = "onnx.Cast"(%y) {to = 1 : i64} : (tensor<?x4xf16>) -> tensor<?x4xf32>
    %m = "onnx.Cast"(%n) {to = 10 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf16>
    %s = "onnx.Add"(%m, %z) : (tensor<?x4xf16>, tensor<?x4xf16>) -> tensor<?x4xf16>
    %p = "onnx.Mul"(%s, %c) : (tensor<?x4xf16>, tensor<f16>) -> tensor<?x4xf16>
    // CHECK: %[[SUM:.*]] = "onnx.Add"(%{{.*}}, %{{.*}}) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK: %[[R:.*]] = "onnx.Cast"({{.*}}) {to = 10 : i64} : (tensor<?x4xf32>) -> tensor<?x4xf16>
    // CHECK: return %[[R]]
    %q = "onnx.Add"(%p, %g) : (tensor<?x4xf16>, tensor<?x4xf16>) -> tensor<?x4xf16>
    return %q : tensor<?x4xf16>
  }
}

// -----

// Slots stay as they are, and attention reads them; a function with a state has results of f32. Sequences stay between casts.
// CHECK: func.func @forward(%[[ARG:.*]]: tensor<1x2x?x16xbf16>, %{{.*}}: !hone.kv<@kv>) -> (tensor<1x2x?x16xf32>, !hone.kv<@kv>)
module {
  hone.state @kv [#hone.slot<"k", tensor<1x2x?x16xbf16>, axis = 2>, #hone.slot<"v", tensor<1x2x?x16xbf16>, axis = 2>]
  func.func @forward(%x: tensor<1x2x?x16xbf16>, %state: !hone.kv<@kv>) -> (tensor<1x2x?x16xbf16>, !hone.kv<@kv>) {
    // CHECK: %[[X:.*]] = "onnx.Cast"(%[[ARG]]) {to = 1 : i64}
    // CHECK: %[[ROUNDED:.*]] = "onnx.Cast"(%[[X]]) {to = 16 : i64} : (tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xbf16>
    // CHECK: %{{.*}}, %[[K:.*]] = hone.kv_append %{{.*}}[0], %[[ROUNDED]]
    %s1, %k = hone.kv_append %state[0], %x : !hone.kv<@kv>, tensor<1x2x?x16xbf16> -> tensor<1x2x?x16xbf16>
    // CHECK: %{{.*}}, %[[V:.*]] = hone.kv_append %{{.*}}[1]
    // CHECK: %[[WIDE:.*]] = "onnx.Cast"(%[[V]]) {to = 1 : i64}
    %s2, %v = hone.kv_append %s1[1], %x : !hone.kv<@kv>, tensor<1x2x?x16xbf16> -> tensor<1x2x?x16xbf16>
    // CHECK: hone.attention %[[X]], %[[K]], %[[V]] {{.*}} : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xbf16>, tensor<1x2x?x16xbf16>) -> tensor<1x2x?x16xf32>
    %a = hone.attention %x, %k, %v pattern(#hone.causal) scale(0.25) : (tensor<1x2x?x16xbf16>, tensor<1x2x?x16xbf16>, tensor<1x2x?x16xbf16>) -> tensor<1x2x?x16xbf16>
    %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    // CHECK: %[[BACK:.*]] = "onnx.Cast"(%[[WIDE]]) {to = 16 : i64}
    // CHECK: "onnx.SequenceConstruct"(%[[BACK]])
    %seq = "onnx.SequenceConstruct"(%v) : (tensor<1x2x?x16xbf16>) -> !onnx.sequence<tensor<1x2x?x16xbf16>>
    // CHECK: %[[AT:.*]] = "onnx.SequenceAt"({{.*}}) : {{.*}} -> tensor<1x2x?x16xbf16>
    // CHECK: "onnx.Cast"(%[[AT]]) {to = 1 : i64}
    %at = "onnx.SequenceAt"(%seq, %zero) : (!onnx.sequence<tensor<1x2x?x16xbf16>>, tensor<i64>) -> tensor<1x2x?x16xbf16>
    // CHECK: "onnx.Sub"({{.*}} -> tensor<1x2x?x16xf32>
    %r = "onnx.Sub"(%a, %at) : (tensor<1x2x?x16xbf16>, tensor<1x2x?x16xbf16>) -> tensor<1x2x?x16xbf16>
    return %r, %s2 : tensor<1x2x?x16xbf16>, !hone.kv<@kv>
  }
}

// -----

// A model without parts of a transformer rounds where it says so.
// CHECK-LABEL: @without_parts
// CHECK: "onnx.Cast"(%{{.*}}) {to = 10 : i64} : (tensor<4xf32>) -> tensor<4xf16>
func.func @without_parts(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = "onnx.Cast"(%x) {to = 10 : i64} : (tensor<4xf32>) -> tensor<4xf16>
  %b = "onnx.Cast"(%a) {to = 1 : i64} : (tensor<4xf16>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// Convolutions sum in f32, and their weights are f32 once and not in each call.
// CHECK: hone.param @filters : tensor<2x1x3xf32>
// CHECK: func.func @convolved(%[[ARG:.*]]: tensor<1x1x?xf16>) -> tensor<1x2x?xf16>
// CHECK: %[[X:.*]] = "onnx.Cast"(%[[ARG]]) {to = 1 : i64}
// CHECK: %[[Y:.*]] = "onnx.Conv"(%[[X]], %{{.*}}) {{.*}}: (tensor<1x1x?xf32>, tensor<2x1x3xf32>) -> tensor<1x2x?xf32>
// CHECK: "onnx.Cast"(%[[Y]]) {to = 10 : i64}
hone.param @filters : tensor<2x1x3xf16> = dense<0.5> : tensor<2x1x3xf16>
func.func @convolved(%x: tensor<1x1x?xf16>) -> tensor<1x2x?xf16> {
  %w = hone.get_param @filters : tensor<2x1x3xf16>
  %y = "onnx.Conv"(%x, %w) {kernel_shape = array<i64: 3>} : (tensor<1x1x?xf16>, tensor<2x1x3xf16>) -> tensor<1x2x?xf16>
  return %y : tensor<1x2x?xf16>
}
