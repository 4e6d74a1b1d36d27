// Each rank has its part of heads and hidden channels; sums over them are added up over the ranks, and biases then.

// RUN: hone-opt %s -split-input-file -hone-shard-layers="ranks=2" | FileCheck %s --enable-var-scope

// CHECK-LABEL: module
// CHECK-DAG: shard.grid @ranks(shape = 2)
// Rows before, columns after; a constant of which ranks have parts is a parameter.
// CHECK-DAG: hone.param @constant : tensor<2xf32> = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32> {hone.shards = [dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>, dense<[3.000000e+00, 4.000000e+00]> : tensor<2xf32>]}
// CHECK-DAG: hone.param @gate : tensor<2x2xf32> = #hone.external<"w.bin", 64, 16> {hone.shards = [#hone.external<"w.bin", 64, 16>, #hone.external<"w.bin", 80, 16>]}
// CHECK-DAG: hone.param @up : tensor<2x2xf32, #hone.stored<f32, transposed>> = dense<{{\[\[}}1.000000e+00, 2.000000e+00], [5.000000e+00, 6.000000e+00]]> {{.*}}hone.shards = [dense<{{.*}}>, dense<{{\[\[}}3.000000e+00, 4.000000e+00], [7.000000e+00, 8.000000e+00]]>
// CHECK-DAG: hone.param @down : tensor<1x2xf32> = dense<{{\[\[}}1.000000e+00, 9.000000e+00]]> {{.*}}hone.shards = [dense<{{\[\[}}1.000000e+00, 9.000000e+00]]> : tensor<1x2xf32>, dense<{{\[\[}}2.000000e+00, 3.000000e+00]]> : tensor<1x2xf32>]
// CHECK: hone.param @down_bias : tensor<1xf32> = dense<5.000000e+00> : tensor<1xf32>{{$}}
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x2xf32>) -> tensor<?x1xf32>
// CHECK-DAG: %[[BIAS:.*]] = hone.get_param @down_bias
// CHECK-DAG: %[[PART:.*]] = hone.get_param @constant : tensor<2xf32>
// CHECK: %[[SUM:.*]] = hone.gated_mlp {{ *}}silu %[[X]], gate(%{{.*}}), up(%{{.*}}, %[[PART]]), down(%{{[a-z0-9_]*}}) :
// CHECK: %[[ALL:.*]] = shard.all_reduce %[[SUM]] on @ranks grid_axes = [0] : tensor<?x1xf32> -> tensor<?x1xf32>
// CHECK: %[[Y:.*]] = "onnx.Add"(%[[ALL]], %[[BIAS]]) : (tensor<?x1xf32>, tensor<1xf32>) -> tensor<?x1xf32>
// CHECK: return %[[Y]]
module {
hone.param @gate : tensor<4x2xf32> = #hone.external<"w.bin", 64, 32>
hone.param @up : tensor<4x2xf32, #hone.stored<f32, transposed>> = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>
hone.param @down : tensor<1x4xf32> = dense<[[1.0, 9.0, 2.0, 3.0]]> : tensor<1x4xf32> {hone.channel_scales = array<f32: 1.0, 1.0, 2.0, 1.0>}
hone.param @down_bias : tensor<1xf32> = dense<5.0> : tensor<1xf32>
func.func @main(%x: tensor<?x2xf32>) -> tensor<?x1xf32> {
  %gate = hone.get_param @gate : tensor<4x2xf32>
  %up = hone.get_param @up : tensor<4x2xf32, #hone.stored<f32, transposed>>
  %bias = "onnx.Constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %down = hone.get_param @down : tensor<1x4xf32>
  %down_bias = hone.get_param @down_bias : tensor<1xf32>
  %0 = hone.gated_mlp silu %x, gate(%gate), up(%up, %bias), down(%down, %down_bias)
     : (tensor<?x2xf32>, tensor<4x2xf32>, tensor<4x2xf32, #hone.stored<f32, transposed>>, tensor<1x4xf32>, tensor<4xf32>, tensor<1xf32>) -> tensor<?x1xf32>
  return %0 : tensor<?x1xf32>
}
}

// -----

// Two groups of two heads of two numbers: one group for each rank, of the rows of q, k and v, and of the state. What a function
// takes and gives is whole.
// CHECK-LABEL: module
// CHECK: hone.state @kv [#hone.slot<"past.key", tensor<?x1x?x2xf32>, axis = 2>, #hone.slot<"past.value", tensor<?x1x?x2xf32>, axis = 2>]
// CHECK: hone.param @qkv : tensor<8x1xf32> = dense<{{\[\[}}0.0{{[0-9e+]*}}], [1.0{{[0-9e+]*}}], [2.0{{[0-9e+]*}}], [3.0{{[0-9e+]*}}], [1.0{{0*}}e+01], [1.1{{0*}}e+01], [2.0{{0*}}e+01], [2.1{{0*}}e+01]]>
// CHECK-SAME: {hone.shards = [dense<{{\[\[}}0.0{{[^>]*}}>{{[^>]*}}>, dense<{{\[\[}}4.0{{[0-9e+]*}}], [5.0{{[0-9e+]*}}], [6.0{{[0-9e+]*}}], [7.0{{[0-9e+]*}}], [1.2{{0*}}e+01], [1.3{{0*}}e+01], [2.2{{0*}}e+01], [2.3{{0*}}e+01]]>
// CHECK: hone.param @o : tensor<1x4xf32> = dense<1.000000e+00> {{.*}}hone.shards = [dense<1.000000e+00> : tensor<1x4xf32>, dense<5.000000e+00> : tensor<1x4xf32>]
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x?x1xf32>, %{{.*}}: !hone.kv<@kv>, %[[MASK:[a-z0-9]*]]: tensor<?x4x?x?xf32>) -> (tensor<?x?x1xf32>, !hone.kv<@kv>)
// CHECK: %[[BIAS:.*]] = shard.all_slice %[[MASK]] on @ranks grid_axes = [0] slice_axis = 1 : tensor<?x4x?x?xf32> -> tensor<?x2x?x?xf32>
// CHECK: hone.linear %[[X]], {{.*}} -> tensor<?x?x8xf32>
// CHECK: dense<[4, 2, 2]>
// CHECK: hone.kv_append {{.*}}[0], {{.*}} : !hone.kv<@kv>, tensor<?x1x?x2xf32> -> tensor<?x1x?x2xf32>
// CHECK: hone.attention {{.*}} bias(%[[BIAS]]) {{.*}} -> tensor<?x2x?x2xf32>
// CHECK: %[[SUM:.*]] = hone.linear {{.*}} : (tensor<?x?x4xf32>, tensor<1x4xf32>) -> tensor<?x?x1xf32>
// CHECK-NEXT: %[[ALL:.*]] = shard.all_reduce %[[SUM]] on @ranks
// CHECK-NOT: shard
// CHECK: return %[[ALL]], %{{.*}} : tensor<?x?x1xf32>, !hone.kv<@kv>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<?x?x1xf32>, %[[KEYS:[a-z0-9]*]]: tensor<?x2x?x2xf32>, %{{.*}}: tensor<?x2x?x2xf32>,
// CHECK: %[[PAST:.*]] = shard.all_slice %[[KEYS]] on @ranks grid_axes = [0] slice_axis = 1
// CHECK: %[[RESULTS:.*]]:3 = "onnx.com.microsoft.GroupQueryAttention"(%{{.*}}, %{{.*}}, %{{.*}}, %[[PAST]],
// CHECK: %[[SUM:.*]] = hone.linear %[[RESULTS]]#0
// CHECK: %[[ALL:.*]] = shard.all_reduce %[[SUM]]
// CHECK: %[[PRESENT:.*]] = shard.all_gather %[[RESULTS]]#1 on @ranks grid_axes = [0] gather_axis = 1 : tensor<?x1x?x2xf32> -> tensor<?x2x?x2xf32>
// CHECK: return %[[ALL]], %[[PRESENT]], %{{.*}} : tensor<?x?x1xf32>, tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>
module {
  hone.state @kv [#hone.slot<"past.key", tensor<?x2x?x2xf32>, axis = 2>, #hone.slot<"past.value", tensor<?x2x?x2xf32>, axis = 2>]
hone.param @qkv : tensor<16x1xf32> = dense<[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [10.0], [11.0], [12.0], [13.0], [20.0], [21.0], [22.0], [23.0]]> : tensor<16x1xf32>
hone.param @o : tensor<1x8xf32> = dense<[[1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0]]> : tensor<1x8xf32>
func.func @forward(%x: tensor<?x?x1xf32>, %state: !hone.kv<@kv>, %bias: tensor<?x4x?x?xf32>) -> (tensor<?x?x1xf32>, !hone.kv<@kv>) {
  %qkv = hone.get_param @qkv : tensor<16x1xf32>
  %0 = hone.linear %x, %qkv : (tensor<?x?x1xf32>, tensor<16x1xf32>) -> tensor<?x?x16xf32>
  %sizes = "onnx.Constant"() {value = dense<[8, 4, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
  %1:3 = "onnx.Split"(%0, %sizes) {axis = 2 : i64} : (tensor<?x?x16xf32>, tensor<3xi64>) -> (tensor<?x?x8xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>)
  %heads = "onnx.Constant"() {value = dense<[0, 0, 4, 2]> : tensor<4xi64>} : () -> tensor<4xi64>
  %2 = "onnx.Reshape"(%1#0, %heads) : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x4x2xf32>
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

// -----

// A table that makes logits too: each rank has its rows of a copy, and an embedding looks them all up. Weights of integers are
// parts of their planes.
// CHECK-LABEL: module
// CHECK: hone.param @table : tensor<4x2xf32> = dense<{{.*}}> : tensor<4x2xf32>{{$}}
// CHECK: hone.param @table.outputs : tensor<2x2xf32> = dense<{{\[\[}}1.0{{.*}}hone.shards
// CHECK: hone.param @up : tensor<2x64xf32, #hone.affine<bits = 8>> = {scales = dense<{{\[\[}}1.0{{.*}}], [2.0{{.*}}hone.shards = [{scales = {{.*}}}, {scales = dense<{{\[\[}}3.0{{.*}}], [4.0
// CHECK: hone.param @down : tensor<2x2xf32, #hone.affine<bits = 8>> = {scales = dense<1.0{{.*}}hone.shards = [{scales = dense<1.0{{.*}}}, {scales = dense<1.0
// CHECK-LABEL: func.func @main
// CHECK: %[[LOGITS:.*]] = hone.linear {{.*}} -> tensor<?x2xf32>
// CHECK: %[[ALL:.*]] = shard.all_gather %[[LOGITS]] on @ranks grid_axes = [0] gather_axis = 1 : tensor<?x2xf32> -> tensor<?x4xf32>
// CHECK: return %[[ALL]]
module {
hone.param @table : tensor<4x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
hone.param @up : tensor<4x64xf32, #hone.affine<bits = 8>> = {scales = dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>, values = dense<1> : tensor<4x64xi8>}
hone.param @down : tensor<2x4xf32, #hone.affine<bits = 8>> = {scales = dense<1.0> : tensor<2x1xf32>, values = dense<1> : tensor<2x4xi8>}
func.func @main(%ids: tensor<?xi64>, %x: tensor<?x64xf32>) -> tensor<?x4xf32> {
  %table = hone.get_param @table : tensor<4x2xf32>
  %0 = hone.embedding %ids, %table : (tensor<?xi64>, tensor<4x2xf32>) -> tensor<?x2xf32>
  %up = hone.get_param @up : tensor<4x64xf32, #hone.affine<bits = 8>>
  %down = hone.get_param @down : tensor<2x4xf32, #hone.affine<bits = 8>>
  %1 = hone.mlp relu %x, up(%up), down(%down)
     : (tensor<?x64xf32>, tensor<4x64xf32, #hone.affine<bits = 8>>, tensor<2x4xf32, #hone.affine<bits = 8>>) -> tensor<?x2xf32>
  %2 = "onnx.Add"(%0, %1) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %3 = hone.linear %2, %table : (tensor<?x2xf32>, tensor<4x2xf32>) -> tensor<?x4xf32>
  return %3 : tensor<?x4xf32>
}
}
