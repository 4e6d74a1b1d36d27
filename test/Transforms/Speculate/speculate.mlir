// RUN: hone-opt %s --hone-speculate --split-input-file --mlir-print-local-scope | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --hone-speculate --split-input-file --remarks-filter=hone-speculate 2>&1 | FileCheck %s --check-prefix=REMARK

// Rotations go by positions in the tree, and attention sees ancestors. @forward stays.

// REMARK: [Passed] Verify {{.*}}"1 attentions see the ancestors of a token, 1 tensors of positions go by them"
// CHECK-LABEL: func.func @forward(
// CHECK-NOT: hone.tree
// CHECK-LABEL: func.func @verify(
// CHECK-SAME: %[[TOKENS:.*]]: tensor<?x?xi64> {onnx.dims = ["batch", "sequence"], onnx.name = "input_ids"}
// CHECK-SAME: %[[WORDS:.*]]: tensor<?xi64> {onnx.dims = ["sequence"], onnx.name = "ancestors"}
// CHECK-SAME: %{{.*}}: tensor<?x1x?x8xf32>, %{{.*}}: !hone.kv<@kv>
// CHECK: %[[COUNT:.*]] = tensor.dim %[[TOKENS]], %{{c1[_0-9]*}} : tensor<?x?xi64>
// CHECK: hrt.check %{{.*}}, "expected a tree of at most 64 tokens, but got {}"(%[[COUNT]])
// CHECK: %[[ANCESTORS:.*]] = tensor.expand_shape %[[WORDS]] {{\[\[}}0, 1, 2]] output_shape [1, %[[COUNT]], 1] : tensor<?xi64> into tensor<1x?x1xi64>
// CHECK: %[[LAGS:.*]] = tensor.generate %[[COUNT]] {
// CHECK: math.ctpop
// CHECK: %[[PLACES:.*]] = "onnx.Range"
// CHECK: %[[OWN:.*]] = "onnx.Sub"(%[[PLACES]], %[[LAGS]]) : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>
// CHECK: "onnx.Gather"(%{{.*}}, %[[OWN]])
// CHECK: hone.attention %{{.*}} pattern(#hone.all_of<#hone.causal, #hone.tree>, %[[ANCESTORS]]) scale
// CHECK-NOT: key_positions
module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>, #hone.slot<"value", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64> {onnx.name = "input_ids", onnx.dims = ["batch", "sequence"]}, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>)
      -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    %length = hone.kv_length %state : !hone.kv<@kv>
    %number = arith.index_cast %length : index to i64
    %held = tensor.from_elements %number : tensor<i64>
    %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %shape = "onnx.Shape"(%tokens) : (tensor<?x?xi64>) -> tensor<2xi64>
    %fresh = "onnx.Gather"(%shape, %one) : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
    %total = "onnx.Add"(%held, %fresh) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %places = "onnx.Range"(%held, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
    %table = "onnx.Constant"() {value = dense<0.5> : tensor<100x4xf32>} : () -> tensor<100x4xf32>
    %rows = "onnx.Gather"(%table, %places) {axis = 0 : i64} : (tensor<100x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
    %axes = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
    %cos = "onnx.Unsqueeze"(%rows, %axes) : (tensor<?x4xf32>, tensor<1xi64>) -> tensor<1x?x4xf32>
    %q = hone.rope %x, %cos, %cos : (tensor<?x1x?x8xf32>, tensor<1x?x4xf32>, tensor<1x?x4xf32>) -> tensor<?x1x?x8xf32>
    %s0, %keys = hone.kv_append %state[0], %q : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    %s1, %values = hone.kv_append %s0[1], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    %y = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.5)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
    return %y, %s1 : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// A window counts from positions, which keys then have, and so does alibi; attention over what an encoder gave stays as it is.

// REMARK: [Passed] Verify {{.*}}"2 attentions see the ancestors of a token, 0 tensors of positions go by them"
// CHECK-LABEL: func.func @verify(%{{.*}}: tensor<?x?xi64> {onnx.dims = ["", "sequence"]},
// CHECK: %[[POSITIONS:.*]] = tensor.generate %{{.*}}, %{{.*}} {
// CHECK: } : tensor<?x?xi64>
// CHECK: hone.attention {{.*}} pattern(#hone.all_of<#hone.sliding<window = 4>, #hone.tree>, %[[ANCESTORS:.*]]) scale(5.000000e-01) key_positions(%[[POSITIONS]])
// CHECK: hone.attention {{.*}} pattern(#hone.all_of<#hone.causal, #hone.tree>, %[[ANCESTORS]]) scale(5.000000e-01) alibi(%{{.*}}) key_positions(%[[POSITIONS]])
// CHECK: hone.attention {{.*}} pattern(#hone.full) scale
module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>, #hone.slot<"value", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %slopes: tensor<1xf32>, %encoded: tensor<?x1x?x8xf32> {hone.context}, %state: !hone.kv<@kv>)
      -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    %s0, %keys = hone.kv_append %state[0], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    %s1, %values = hone.kv_append %s0[1], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    %y = hone.attention %x, %keys, %values pattern(#hone.sliding<window = 4>) scale(0.5)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
    %z = hone.attention %y, %keys, %values pattern(#hone.causal) scale(0.5) alibi(%slopes)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<1xf32>) -> tensor<?x1x?x8xf32>
    %cross = hone.attention %z, %encoded, %encoded pattern(#hone.full) scale(0.5)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
    return %cross, %s1 : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}
