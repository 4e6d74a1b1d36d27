// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: hone-opt %s --hone-convert-onnx-to-linalg | FileCheck %s

module attributes {onnx.opsets = {ai.onnx = 23 : i64, com.microsoft = 1 : i64}} {
// The query heads of one key head are the rows of one matrix; the past comes before the keys.
// CHECK-LABEL: @grouped
// CHECK: tensor.insert_slice %arg3 into
// CHECK: tensor.insert_slice %arg1 into
// CHECK: hone.matmul {{.*}} : (tensor<1x2x6x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x6x8xf32>
// CHECK: arith.cmpi sle
// CHECK: math.exp
// CHECK: hone.matmul
func.func @grouped(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x8xf32>,
                   %pk: tensor<1x2x5x8xf32>, %pv: tensor<1x2x5x8xf32>) -> tensor<1x4x3x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.Attention"(%q, %k, %v, %none, %pk, %pv) {is_causal = 1 : i64} : (tensor<1x4x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>, none, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %0 : tensor<1x4x3x8xf32>
}

// CHECK-LABEL: @rope
// CHECK: hone.rope {{.*}} interleaved
func.func @rope(%x: tensor<1x2x3x8xf32>, %c: tensor<16x4xf32>, %s: tensor<16x4xf32>, %p: tensor<1x3xi64>) -> tensor<1x2x3x8xf32> {
  %0 = "onnx.RotaryEmbedding"(%x, %c, %s, %p) {interleaved = 1 : i64} : (tensor<1x2x3x8xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<1x3xi64>) -> tensor<1x2x3x8xf32>
  return %0 : tensor<1x2x3x8xf32>
}

// CHECK-LABEL: @moe
// CHECK-DAG: %[[GATE:.*]] = tensor.collapse_shape %arg2 {{.*}} into tensor<24x8xf32>
// CHECK: hone.moe silu
// CHECK-SAME: gate(%[[GATE]])
func.func @moe(%x: tensor<3x8xf32>, %r: tensor<3x4xf32>, %g: tensor<4x6x8xf32>, %d: tensor<4x8x6xf32>, %u: tensor<4x6x8xf32>) -> tensor<3x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  %0 = "onnx.com.microsoft.MoE"(%x, %r, %g, %none, %d, %none, %u) {k = 2 : i64, activation_type = "silu", normalize_routing_weights = 1 : i64} : (tensor<3x8xf32>, tensor<3x4xf32>, tensor<4x6x8xf32>, none, tensor<4x8x6xf32>, none, tensor<4x6x8xf32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

// What kernels read together is checked to have as many rows, where types do not say it.
// CHECK-LABEL: @checked
// CHECK: hrt.check {{.*}}"expected the batches of query and key to be equal"
// CHECK: hrt.check {{.*}}"expected the batches of key and value to be equal"
// CHECK: hrt.check {{.*}}"expected the rows of key and value to be equal"
// CHECK: hrt.check {{.*}}"expected the sizes of the first keys and [batch] to be equal"
// CHECK: hrt.check {{.*}}"expected the sizes of a mask and of the scores to be equal"
// CHECK-NOT: hrt.check
// CHECK: hone.attention
func.func @checked(%q: tensor<?x2x3x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>, %m: tensor<1x1x3x?xf32>, %begin: tensor<?xi64>) -> tensor<?x2x3x8xf32> {
  %0 = hone.attention %q, %k, %v pattern(#hone.full) scale(5.000000e-01) bias(%m) key_begin(%begin)
    : (tensor<?x2x3x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<1x1x3x?xf32>, tensor<?xi64>) -> tensor<?x2x3x8xf32>
  return %0 : tensor<?x2x3x8xf32>
}
}
