// Layers of least influence go, with their slots, pasts and presents; the slots that stay are numbered anew.

// RUN: %python %S/Inputs/statistics.py %t.other < /dev/null
// RUN: not hone-opt %s -hone-prune-layers="statistics=%t.other" 2>&1 | %python %S/Inputs/statistics.py %t.stats o0=0:4 down0=1:8 o1=2:4 down1=3:8 o2=4:4 down2=5:8
// RUN: hone-opt %s -hone-prune-layers="sparsity=0.33 statistics=%t.stats" --remarks-filter=hone-prune-layers 2>&1 | FileCheck %s --enable-var-scope
// RUN: hone-opt %s -hone-prune-layers="sparsity=0 statistics=%t.stats" | FileCheck %s --check-prefix=NOTHING
// RUN: not hone-opt %s -hone-prune-layers="sparsity=0.9 statistics=%t.stats" 2>&1 | FileCheck %s --check-prefix=MUCH
// RUN: not hone-opt %s -hone-prune-layers="sparsity=0.3" 2>&1 | FileCheck %s --check-prefix=DATA
// DATA: error: expected a file of statistics to choose layers by
// MUCH: error: cannot remove 90.0 % of the parameters: of 3 layers 2 can go, with 32.4 % each

// Layer 1 adds least; the length of the past is that of layer 0's, whose keys the mask is made of.
// CHECK: remark: {{.*}}1 of 3 layers go, 32.4 % of the elements of parameters
// CHECK: remark: {{.*}}layer 0 stays: something else reads its past
// CHECK: remark: {{.*}}layer 1 goes, with a relative influence of
// CHECK: remark: {{.*}}layer 2 stays, with a relative influence of
// CHECK: hone.state @kv [#hone.slot<"past.0", tensor<?x1x?x4xf32>, axis = 2>, #hone.slot<"past.2", tensor<?x1x?x4xf32>, axis = 2>]
// NOTHING-COUNT-3: hone.kv_append

module {
  hone.state @kv [#hone.slot<"past.0", tensor<?x1x?x4xf32>, axis = 2>, #hone.slot<"past.1", tensor<?x1x?x4xf32>, axis = 2>, #hone.slot<"past.2", tensor<?x1x?x4xf32>, axis = 2>]
hone.param @table : tensor<2x4xf32> = dense<0.1> : tensor<2x4xf32>
hone.param @q0 : tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
hone.param @o0 : tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
hone.param @up0 : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
hone.param @down0 : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
hone.param @q1 : tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
hone.param @o1 : tensor<4x4xf32> = dense<0.01> : tensor<4x4xf32>
hone.param @up1 : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
hone.param @down1 : tensor<4x8xf32> = dense<0.01> : tensor<4x8xf32>
hone.param @q2 : tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
hone.param @o2 : tensor<4x4xf32> = dense<1.0> : tensor<4x4xf32>
hone.param @up2 : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
hone.param @down2 : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>

// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: tensor<?x?xi64>, %[[STATE:.*]]: !hone.kv<@kv>)
// CHECK: %[[X:.*]] = hone.embedding
// CHECK: %[[NEXT:.*]], %{{.*}} = hone.kv_append %[[STATE]][0]
// CHECK: %[[LAST:.*]], %{{.*}} = hone.kv_append %[[NEXT]][1]
// CHECK: %[[O:.*]] = hone.get_param @o2
// CHECK: return %{{.*}}, %[[LAST]]
func.func @forward(%ids: tensor<?x?xi64>, %s0: !hone.kv<@kv>) -> (tensor<?x?x4xf32>, !hone.kv<@kv>) {
  %shape = "onnx.Constant"() {value = dense<[0, 0, 1, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
  %merged = "onnx.Constant"() {value = dense<[0, 0, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
  %table = hone.get_param @table : tensor<2x4xf32>
  %x = hone.embedding %ids, %table : (tensor<?x?xi64>, tensor<2x4xf32>) -> tensor<?x?x4xf32>
  %q0 = hone.get_param @q0 : tensor<4x4xf32>
  %query0 = hone.linear %x, %q0 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %split0 = "onnx.Reshape"(%query0, %shape) : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %heads0 = "onnx.Transpose"(%split0) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
  %s1, %keys0 = hone.kv_append %s0[0], %heads0 : !hone.kv<@kv>, tensor<?x1x?x4xf32> -> tensor<?x1x?x4xf32>
  %a0 = hone.attention %heads0, %keys0, %keys0 pattern(#hone.causal) scale(1.0) : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %back0 = "onnx.Transpose"(%a0) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x1x?x4xf32>) -> tensor<?x?x1x4xf32>
  %flat0 = "onnx.Reshape"(%back0, %merged) : (tensor<?x?x1x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>
  %o0 = hone.get_param @o0 : tensor<4x4xf32>
  %out0 = hone.linear %flat0, %o0 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %mid0 = "onnx.Add"(%x, %out0) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %up0 = hone.get_param @up0 : tensor<8x4xf32>
  %down0 = hone.get_param @down0 : tensor<4x8xf32>
  %mlp0 = hone.mlp relu %mid0, up(%up0), down(%down0) : (tensor<?x?x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<?x?x4xf32>
  %h0 = "onnx.Add"(%mlp0, %mid0) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %q1 = hone.get_param @q1 : tensor<4x4xf32>
  %query1 = hone.linear %h0, %q1 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %split1 = "onnx.Reshape"(%query1, %shape) : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %heads1 = "onnx.Transpose"(%split1) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
  %s2, %keys1 = hone.kv_append %s1[1], %heads1 : !hone.kv<@kv>, tensor<?x1x?x4xf32> -> tensor<?x1x?x4xf32>
  %a1 = hone.attention %heads1, %keys1, %keys1 pattern(#hone.causal) scale(1.0) : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %back1 = "onnx.Transpose"(%a1) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x1x?x4xf32>) -> tensor<?x?x1x4xf32>
  %flat1 = "onnx.Reshape"(%back1, %merged) : (tensor<?x?x1x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>
  %o1 = hone.get_param @o1 : tensor<4x4xf32>
  %out1 = hone.linear %flat1, %o1 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %mid1 = "onnx.Add"(%h0, %out1) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %up1 = hone.get_param @up1 : tensor<8x4xf32>
  %down1 = hone.get_param @down1 : tensor<4x8xf32>
  %mlp1 = hone.mlp relu %mid1, up(%up1), down(%down1) : (tensor<?x?x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<?x?x4xf32>
  %h1 = "onnx.Add"(%mlp1, %mid1) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %q2 = hone.get_param @q2 : tensor<4x4xf32>
  %query2 = hone.linear %h1, %q2 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %split2 = "onnx.Reshape"(%query2, %shape) : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %heads2 = "onnx.Transpose"(%split2) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
  %s3, %keys2 = hone.kv_append %s2[2], %heads2 : !hone.kv<@kv>, tensor<?x1x?x4xf32> -> tensor<?x1x?x4xf32>
  %a2 = hone.attention %heads2, %keys2, %keys2 pattern(#hone.causal) scale(1.0) : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %back2 = "onnx.Transpose"(%a2) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x1x?x4xf32>) -> tensor<?x?x1x4xf32>
  %flat2 = "onnx.Reshape"(%back2, %merged) : (tensor<?x?x1x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>
  %o2 = hone.get_param @o2 : tensor<4x4xf32>
  %out2 = hone.linear %flat2, %o2 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %mid2 = "onnx.Add"(%h1, %out2) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %up2 = hone.get_param @up2 : tensor<8x4xf32>
  %down2 = hone.get_param @down2 : tensor<4x8xf32>
  %mlp2 = hone.mlp relu %mid2, up(%up2), down(%down2) : (tensor<?x?x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<?x?x4xf32>
  %h2 = "onnx.Add"(%mlp2, %mid2) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  return %h2, %s3 : tensor<?x?x4xf32>, !hone.kv<@kv>
}

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{.*}}: tensor<?x?xi64>, %[[FIRST:.*]]: tensor<?x1x?x4xf32> {onnx.name = "past.0"}, %[[THIRD:.*]]: tensor<?x1x?x4xf32> {onnx.name = "past.2"})
// CHECK-SAME: -> (tensor<?x?x4xf32>, tensor<4xi64>, tensor<?x1x?x4xf32> {onnx.name = "present.0"}, tensor<?x1x?x4xf32> {onnx.name = "present.2"})
// CHECK: %[[P0:.*]] = "onnx.Concat"(%[[FIRST]],
// CHECK: %[[P2:.*]] = "onnx.Concat"(%[[THIRD]],
// CHECK: return %{{.*}}, %{{.*}}, %[[P0]], %[[P2]] :
func.func @main(%ids: tensor<?x?xi64>, %past0: tensor<?x1x?x4xf32> {onnx.name = "past.0"}, %past1: tensor<?x1x?x4xf32> {onnx.name = "past.1"}, %past2: tensor<?x1x?x4xf32> {onnx.name = "past.2"})
    -> (tensor<?x?x4xf32>, tensor<4xi64>, tensor<?x1x?x4xf32> {onnx.name = "present.0"}, tensor<?x1x?x4xf32> {onnx.name = "present.1"}, tensor<?x1x?x4xf32> {onnx.name = "present.2"}) {
  %shape = "onnx.Constant"() {value = dense<[0, 0, 1, 4]> : tensor<4xi64>} : () -> tensor<4xi64>
  %merged = "onnx.Constant"() {value = dense<[0, 0, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
  %table = hone.get_param @table : tensor<2x4xf32>
  %x = hone.embedding %ids, %table : (tensor<?x?xi64>, tensor<2x4xf32>) -> tensor<?x?x4xf32>
  %length = "onnx.Shape"(%past1) : (tensor<?x1x?x4xf32>) -> tensor<4xi64>
  %abs = "onnx.Abs"(%past0) : (tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %q0 = hone.get_param @q0 : tensor<4x4xf32>
  %query0 = hone.linear %x, %q0 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %split0 = "onnx.Reshape"(%query0, %shape) : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %heads0 = "onnx.Transpose"(%split0) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
  %keys0 = "onnx.Concat"(%past0, %heads0) {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %a0 = hone.attention %heads0, %keys0, %keys0 pattern(#hone.causal) scale(1.0) : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %back0 = "onnx.Transpose"(%a0) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x1x?x4xf32>) -> tensor<?x?x1x4xf32>
  %flat0 = "onnx.Reshape"(%back0, %merged) : (tensor<?x?x1x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>
  %o0 = hone.get_param @o0 : tensor<4x4xf32>
  %out0 = hone.linear %flat0, %o0 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %mid0 = "onnx.Add"(%x, %out0) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %up0 = hone.get_param @up0 : tensor<8x4xf32>
  %down0 = hone.get_param @down0 : tensor<4x8xf32>
  %mlp0 = hone.mlp relu %mid0, up(%up0), down(%down0) : (tensor<?x?x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<?x?x4xf32>
  %h0 = "onnx.Add"(%mlp0, %mid0) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %q1 = hone.get_param @q1 : tensor<4x4xf32>
  %query1 = hone.linear %h0, %q1 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %split1 = "onnx.Reshape"(%query1, %shape) : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %heads1 = "onnx.Transpose"(%split1) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
  %keys1 = "onnx.Concat"(%past1, %heads1) {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %a1 = hone.attention %heads1, %keys1, %keys1 pattern(#hone.causal) scale(1.0) : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %back1 = "onnx.Transpose"(%a1) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x1x?x4xf32>) -> tensor<?x?x1x4xf32>
  %flat1 = "onnx.Reshape"(%back1, %merged) : (tensor<?x?x1x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>
  %o1 = hone.get_param @o1 : tensor<4x4xf32>
  %out1 = hone.linear %flat1, %o1 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %mid1 = "onnx.Add"(%h0, %out1) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %up1 = hone.get_param @up1 : tensor<8x4xf32>
  %down1 = hone.get_param @down1 : tensor<4x8xf32>
  %mlp1 = hone.mlp relu %mid1, up(%up1), down(%down1) : (tensor<?x?x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<?x?x4xf32>
  %h1 = "onnx.Add"(%mlp1, %mid1) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %q2 = hone.get_param @q2 : tensor<4x4xf32>
  %query2 = hone.linear %h1, %q2 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %split2 = "onnx.Reshape"(%query2, %shape) : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %heads2 = "onnx.Transpose"(%split2) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
  %keys2 = "onnx.Concat"(%past2, %heads2) {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %a2 = hone.attention %heads2, %keys2, %keys2 pattern(#hone.causal) scale(1.0) : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %back2 = "onnx.Transpose"(%a2) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x1x?x4xf32>) -> tensor<?x?x1x4xf32>
  %flat2 = "onnx.Reshape"(%back2, %merged) : (tensor<?x?x1x4xf32>, tensor<3xi64>) -> tensor<?x?x4xf32>
  %o2 = hone.get_param @o2 : tensor<4x4xf32>
  %out2 = hone.linear %flat2, %o2 : (tensor<?x?x4xf32>, tensor<4x4xf32>) -> tensor<?x?x4xf32>
  %mid2 = "onnx.Add"(%h1, %out2) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %up2 = hone.get_param @up2 : tensor<8x4xf32>
  %down2 = hone.get_param @down2 : tensor<4x8xf32>
  %mlp2 = hone.mlp relu %mid2, up(%up2), down(%down2) : (tensor<?x?x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<?x?x4xf32>
  %h2 = "onnx.Add"(%mlp2, %mid2) : (tensor<?x?x4xf32>, tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  return %h2, %length, %keys0, %keys1, %keys2 : tensor<?x?x4xf32>, tensor<4xi64>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>
}
}
