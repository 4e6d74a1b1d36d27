// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --hone-absorb-latents | FileCheck %s

// Two heads over latents of 4, whose keys have 2 elements of the latent and 2 rotated ones, and whose values have 3.
// CHECK: hone.param @w.values : tensor<2x4x3xf32>
// CHECK: hone.param @w.keys : tensor<2x2x4xf32>
// CHECK: hone.state @kv [#hone.slot<"latent", tensor<?x1x?x4xf32>, axis = 2>, #hone.slot<"rotated", tensor<?x1x?x6xf32>, axis = 2>]
hone.state @kv [#hone.slot<"latent", tensor<?x1x?x4xf32>, axis = 2>, #hone.slot<"rotated", tensor<?x1x?x2xf32>, axis = 2>]
hone.param @w : tensor<10x4xf32> = dense<1.0> : tensor<10x4xf32>

// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x?x4xf32>, %[[C:.*]]: tensor<1x1x?x4xf32>, %[[R:.*]]: tensor<1x1x?x2xf32>
func.func @forward(%q: tensor<1x2x?x4xf32>, %c: tensor<1x1x?x4xf32>, %r: tensor<1x1x?x2xf32>, %s: !hone.kv<@kv>)
    -> (tensor<1x2x?x3xf32>, tensor<?x1x?x2xf32>, !hone.kv<@kv>) {
  %0 = hone.get_param @w : tensor<10x4xf32>
  %next, %latents = hone.kv_append %s[0], %c : !hone.kv<@kv>, tensor<1x1x?x4xf32> -> tensor<?x1x?x4xf32>
  // CHECK: %{{.*}}, %[[LATENTS:.*]] = hone.kv_append %{{.*}}[0], %[[C]]
  // CHECK: %[[KEY:.*]] = "onnx.Concat"(%[[C]], %[[R]]) {axis = 3 : i64}
  // CHECK: %{{.*}}, %[[KEYS:.*]] = hone.kv_append %{{.*}}[1], %[[KEY]]
  // What reads the rotated part still does.
  // CHECK: %[[ROTATED:.*]] = "onnx.Slice"(%[[KEYS]]
  %last, %rotated = hone.kv_append %next[1], %r : !hone.kv<@kv>, tensor<1x1x?x2xf32> -> tensor<?x1x?x2xf32>
  %both = hone.linear %latents, %0 : (tensor<?x1x?x4xf32>, tensor<10x4xf32>) -> tensor<?x1x?x10xf32>
  %shape = "onnx.Constant"() {value = dense<[1, -1, 2, 5]> : tensor<4xi64>} : () -> tensor<4xi64>
  %rows = "onnx.Reshape"(%both, %shape) : (tensor<?x1x?x10xf32>, tensor<4xi64>) -> tensor<1x?x2x5xf32>
  %heads = "onnx.Transpose"(%rows) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x?x2x5xf32>) -> tensor<1x2x?x5xf32>
  %sizes = "onnx.Constant"() {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %parts:2 = "onnx.Split"(%heads, %sizes) {axis = 3 : i64} : (tensor<1x2x?x5xf32>, tensor<2xi64>) -> (tensor<1x2x?x2xf32>, tensor<1x2x?x3xf32>)
  %wide = "onnx.Constant"() {value = dense<[1, 2, 1, 1]> : tensor<4xi64>} : () -> tensor<4xi64>
  %shared = "onnx.Expand"(%rotated, %wide) : (tensor<?x1x?x2xf32>, tensor<4xi64>) -> tensor<1x2x?x2xf32>
  %keys = "onnx.Concat"(%parts#0, %shared) {axis = 3 : i64} : (tensor<1x2x?x2xf32>, tensor<1x2x?x2xf32>) -> tensor<1x2x?x4xf32>
  // CHECK: %[[ABSORBED:.*]] = "onnx.MatMul"(%{{.*}}, %{{.*}}) : (tensor<1x2x?x2xf32>, tensor<2x2x4xf32>) -> tensor<1x2x?x4xf32>
  // CHECK: %[[QUERIES:.*]] = "onnx.Concat"(%[[ABSORBED]], %{{.*}}) {axis = 3 : i64} : {{.*}} -> tensor<1x2x?x6xf32>
  // CHECK: %[[RESULT:.*]] = hone.attention %[[QUERIES]], %[[KEYS]], %[[LATENTS]] pattern(#hone.causal) scale(5.000000e-01)
  // CHECK-SAME: -> tensor<1x2x?x4xf32>
  // CHECK: %[[VALUES:.*]] = "onnx.MatMul"(%[[RESULT]], %{{.*}}) : (tensor<1x2x?x4xf32>, tensor<2x4x3xf32>) -> tensor<1x2x?x3xf32>
  // CHECK-NOT: hone.linear
  // CHECK: return %[[VALUES]], %[[ROTATED]]
  %1 = hone.attention %q, %keys, %parts#1 pattern(#hone.causal) scale(0.5)
     : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>) -> tensor<1x2x?x3xf32>
  return %1, %rotated, %last : tensor<1x2x?x3xf32>, tensor<?x1x?x2xf32>, !hone.kv<@kv>
}
