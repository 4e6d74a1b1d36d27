// Hidden channels and GQA groups go from everything that holds them: rows, columns, heads, slots and signatures.

// RUN: hone-opt %s -split-input-file -hone-prune-structured="sparsity=0.5 multiple=1" | FileCheck %s --enable-var-scope
// RUN: hone-opt %s -split-input-file -hone-prune-structured="sparsity=0" | FileCheck %s --check-prefix=NOTHING
// NOTHING: tensor<4x2xf32>
// NOTHING: hone.state @kv {{.*}}tensor<?x2x?x2xf32>
// NOTHING-NOT: hone.inputs

// The norms of channels are (gate, up, down) 1 1 1, 0 9 9, 2 2 2, 3 1 1: the second and the first are the smallest.
// CHECK-LABEL: module
// CHECK-DAG: hone.param @gate : tensor<2x2xf32> = {{.*}}
// CHECK-DAG: hone.param @up : tensor<2x2xf32>
// CHECK-DAG: hone.param @up_bias : tensor<2xf32>
// CHECK-DAG: hone.param @down : tensor<1x2xf32, #hone.stored<f32, transposed>> = {{.*}} {hone.inputs = {kept = array<i64: 2, 3>, of = 4 : i64}}
// CHECK: func.func @main(%{{.*}}: tensor<?x2xf32>) -> tensor<?x1xf32>
// CHECK: hone.gated_mlp
// CHECK-SAME: (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<1x2xf32, #hone.stored<f32, transposed>>, tensor<2xf32>)
module {
hone.param @gate : tensor<4x2xf32> = dense<[[1.0, 0.0], [0.0, 0.0], [2.0, 0.0], [3.0, 0.0]]> : tensor<4x2xf32>
hone.param @up : tensor<4x2xf32> = dense<[[1.0, 0.0], [9.0, 0.0], [2.0, 0.0], [1.0, 0.0]]> : tensor<4x2xf32>
hone.param @up_bias : tensor<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
hone.param @down : tensor<1x4xf32, #hone.stored<f32, transposed>> = dense<[[1.0], [9.0], [2.0], [1.0]]> : tensor<4x1xf32>
func.func @main(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  %gate = hone.get_param @gate : tensor<4x2xf32>
  %up = hone.get_param @up : tensor<4x2xf32>
  %bias = hone.get_param @up_bias : tensor<4xf32>
  %down = hone.get_param @down : tensor<1x4xf32, #hone.stored<f32, transposed>>
  %0 = hone.gated_mlp silu %x, gate(%gate), up(%up, %bias), down(%down)
     : (tensor<?x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<1x4xf32, #hone.stored<f32, transposed>>, tensor<4xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

// Two groups of two heads of two numbers. q, k and v are rows of one weight; the first group is the smaller.
// CHECK-LABEL: module
// CHECK: hone.state @kv [#hone.slot<"past.key", tensor<?x1x?x2xf32>, axis = 2>, #hone.slot<"past.value", tensor<?x1x?x2xf32>, axis = 2>]
// CHECK-DAG: hone.param @qkv : tensor<8x1xf32> = dense_resource<[[$QKV:[a-z_]*[0-9]*]]>
// CHECK-DAG: hone.param @o : tensor<1x4xf32> = {{.*}} {hone.inputs = {kept = array<i64: 4, 5, 6, 7>, of = 8 : i64}}
module {
  hone.state @kv [#hone.slot<"past.key", tensor<?x2x?x2xf32>, axis = 2>, #hone.slot<"past.value", tensor<?x2x?x2xf32>, axis = 2>]
hone.param @qkv : tensor<16x1xf32> = dense<[[1.0], [1.0], [1.0], [1.0], [2.0], [2.0], [2.0], [2.0], [1.0], [1.0], [3.0], [3.0], [1.0], [1.0], [4.0], [4.0]]> : tensor<16x1xf32>
hone.param @o : tensor<1x8xf32> = dense<[[1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0]]> : tensor<1x8xf32>

// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %{{.*}}: tensor<?x?x1xf32>, %{{.*}}: !hone.kv<@kv>, %{{.*}}: tensor<?x2x?x?xf32>) -> (tensor<?x?x1xf32>, !hone.kv<@kv>)
// CHECK: hone.linear {{.*}} -> tensor<?x?x8xf32>
// CHECK: "onnx.Constant"() {value = dense<[4, 2, 2]> : tensor<3xi64>}
// CHECK: "onnx.Split"{{.*}} -> (tensor<?x?x4xf32>, tensor<?x?x2xf32>, tensor<?x?x2xf32>)
// CHECK: "onnx.Constant"() {value = dense<2> : tensor<1xi64>}
// CHECK-NEXT: %[[HEADS:.*]] = "onnx.Constant"() {value = dense<2> : tensor<1xi64>}
// CHECK-NEXT: %[[SHAPE:.*]] = "onnx.Concat"(%{{.*}}, %{{.*}}, %[[HEADS]], %{{.*}})
// CHECK-NEXT: "onnx.Reshape"(%{{.*}}, %[[SHAPE]]){{.*}} -> tensor<?x?x2x2xf32>
// CHECK: hone.kv_append {{.*}}[0], {{.*}} : !hone.kv<@kv>, tensor<?x1x?x2xf32> -> tensor<?x1x?x2xf32>
// CHECK: hone.attention {{.*}} bias(%{{.*}}) {{.*}} -> tensor<?x2x?x2xf32>
// CHECK: "onnx.Constant"() {value = dense<[0, 0, 4]> : tensor<3xi64>}
// CHECK: hone.linear {{.*}} : (tensor<?x?x4xf32>, tensor<1x4xf32>) -> tensor<?x?x1xf32>
func.func @forward(%x: tensor<?x?x1xf32>, %state: !hone.kv<@kv>, %bias: tensor<?x4x?x?xf32>) -> (tensor<?x?x1xf32>, !hone.kv<@kv>) {
  %qkv = hone.get_param @qkv : tensor<16x1xf32>
  %0 = hone.linear %x, %qkv : (tensor<?x?x1xf32>, tensor<16x1xf32>) -> tensor<?x?x16xf32>
  %sizes = "onnx.Constant"() {value = dense<[8, 4, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
  %1:3 = "onnx.Split"(%0, %sizes) {axis = 2 : i64} : (tensor<?x?x16xf32>, tensor<3xi64>) -> (tensor<?x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>)
  %zero = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %heads = "onnx.Constant"() {value = dense<4> : tensor<1xi64>} : () -> tensor<1xi64>
  %size = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %shape = "onnx.Concat"(%zero, %zero, %heads, %size) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xi64>
  %2 = "onnx.Reshape"(%1#0, %shape) : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x4x2xf32>
  %q = "onnx.Transpose"(%2) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x4x2xf32>) -> tensor<?x4x?x2xf32>
  %pairs = "onnx.Constant"() {value = dense<[0, 0, -1, 2]> : tensor<4xi64>} : () -> tensor<4xi64>
  %3 = "onnx.Reshape"(%1#1, %pairs) : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x2x2xf32>
  %k = "onnx.Transpose"(%3) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x2xf32>) -> tensor<?x2x?x2xf32>
  %4 = "onnx.Reshape"(%1#2, %pairs) : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x2x2xf32>
  %v = "onnx.Transpose"(%4) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x2xf32>) -> tensor<?x2x?x2xf32>
  %next, %keys = hone.kv_append %state[0], %k : !hone.kv<@kv>, tensor<?x2x?x2xf32> -> tensor<?x2x?x2xf32>
  %last, %values = hone.kv_append %next[1], %v : !hone.kv<@kv>, tensor<?x2x?x2xf32> -> tensor<?x2x?x2xf32>
  %5 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(1.0) bias(%bias)
     : (tensor<?x4x?x2xf32>, tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>, tensor<?x4x?x?xf32>) -> tensor<?x4x?x2xf32>
  %6 = "onnx.Transpose"(%5) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x4x?x2xf32>) -> tensor<?x?x4x2xf32>
  %merged = "onnx.Constant"() {value = dense<[0, 0, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %7 = "onnx.Reshape"(%6, %merged) : (tensor<?x?x4x2xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
  %o = hone.get_param @o : tensor<1x8xf32>
  %8 = hone.linear %7, %o : (tensor<?x?x8xf32>, tensor<1x8xf32>) -> tensor<?x?x1xf32>
  return %8, %last : tensor<?x?x1xf32>, !hone.kv<@kv>
}

// The same weights in another function, with keys and values as arguments and results.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<?x?x1xf32>, %{{.*}}: tensor<?x1x?x2xf32>, %{{.*}}: tensor<?x1x?x2xf32>, %{{.*}}: tensor<?xi32>, %{{.*}}: tensor<i32>)
// CHECK-SAME: -> (tensor<?x?x1xf32>, tensor<?x1x?x2xf32>, tensor<?x1x?x2xf32>)
// CHECK: GroupQueryAttention{{.*}}kv_num_heads = 1 : i64, num_heads = 2 : i64
// CHECK: return
func.func @main(%x: tensor<?x?x1xf32>, %keys: tensor<?x2x?x2xf32>, %values: tensor<?x2x?x2xf32>, %ends: tensor<?xi32>, %total: tensor<i32>) -> (tensor<?x?x1xf32>, tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>) {
  %qkv = hone.get_param @qkv : tensor<16x1xf32>
  %0 = hone.linear %x, %qkv : (tensor<?x?x1xf32>, tensor<16x1xf32>) -> tensor<?x?x16xf32>
  %none = "onnx.NoValue"() : () -> none
  %1:3 = "onnx.com.microsoft.GroupQueryAttention"(%0, %none, %none, %keys, %values, %ends, %total) {kv_num_heads = 2 : i64, num_heads = 4 : i64}
    : (tensor<?x?x16xf32>, none, none, tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>, tensor<?xi32>, tensor<i32>) -> (tensor<?x?x8xf32>, tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>)
  %o = hone.get_param @o : tensor<1x8xf32>
  %2 = hone.linear %1#0, %o : (tensor<?x?x8xf32>, tensor<1x8xf32>) -> tensor<?x?x1xf32>
  return %2, %1#1, %1#2 : tensor<?x?x1xf32>, tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>
}
}

// CHECK: {-#
// CHECK: [[$QKV]]: "0x{{[0-9A-F]*}}0000004000000040000000400000004000004040000040400000804000008040"

// -----

// A weight that is a constant of the graph is cut as a parameter is.
module attributes {onnx.opsets = {"ai.onnx" = 22}} {
hone.param @o : tensor<1x2xf32> = dense<[[1.0, 4.0]]> : tensor<1x2xf32>
// CHECK: func.func @main(
// CHECK: "onnx.Constant"() {value = dense<2.000000e+00> : tensor<1x1xf32>}
// CHECK: "onnx.Constant"() {value = dense<[0, 0, 1, 1]> : tensor<4xi64>}
// CHECK: hone.attention{{.*}} -> tensor<?x1x?x1xf32>
func.func @main(%x: tensor<?x?x1xf32>) -> tensor<?x?x1xf32> {
  %w = "onnx.Constant"() {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %0 = hone.linear %x, %w : (tensor<?x?x1xf32>, tensor<2x1xf32>) -> tensor<?x?x2xf32>
  %shape = "onnx.Constant"() {value = dense<[0, 0, 2, 1]> : tensor<4xi64>} : () -> tensor<4xi64>
  %1 = "onnx.Reshape"(%0, %shape) : (tensor<?x?x2xf32>, tensor<4xi64>) -> tensor<?x?x2x1xf32>
  %h = "onnx.Transpose"(%1) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x1xf32>) -> tensor<?x2x?x1xf32>
  %a = hone.attention %h, %h, %h pattern(#hone.full) scale(1.0)
     : (tensor<?x2x?x1xf32>, tensor<?x2x?x1xf32>, tensor<?x2x?x1xf32>) -> tensor<?x2x?x1xf32>
  %t = "onnx.Transpose"(%a) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x1xf32>) -> tensor<?x?x2x1xf32>
  %flat = "onnx.Constant"() {value = dense<[0, 0, 2]> : tensor<3xi64>} : () -> tensor<3xi64>
  %2 = "onnx.Reshape"(%t, %flat) : (tensor<?x?x2x1xf32>, tensor<3xi64>) -> tensor<?x?x2xf32>
  %o = hone.get_param @o : tensor<1x2xf32>
  %3 = hone.linear %2, %o : (tensor<?x?x2xf32>, tensor<1x2xf32>) -> tensor<?x?x1xf32>
  return %3 : tensor<?x?x1xf32>
}
}
