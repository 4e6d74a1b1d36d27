// RUN: hone-opt %s --hone-separate-sequences --hone-speculate --split-input-file --mlir-print-local-scope | FileCheck %s --enable-var-scope

// After hone-separate-sequences each sequence has a tree: its positions lose what of the tree is not before a token, and then the lag of the
// sequence, which attention knows.

// CHECK-LABEL: func.func @forward(
// CHECK: hone.attention {{.*}} pattern(#hone.causal) scale(5.000000e-01) lags(%{{.*}})
// CHECK-LABEL: func.func @verify(
// CHECK-SAME: %[[TOKENS:.*]]: tensor<?x?xi64> {onnx.dims = ["batch", "sequence"], onnx.name = "input_ids"}
// CHECK-SAME: %[[WORDS:.*]]: tensor<?x?xi64> {onnx.dims = ["batch", "sequence"], onnx.name = "ancestors"}
// CHECK: hrt.check %{{.*}}, "expected a tree of at most 64 tokens, but got {}"
// CHECK: %[[ANCESTORS:.*]] = tensor.expand_shape %[[WORDS]] {{\[\[}}0], [1, 2]] output_shape [%{{.*}}, %{{.*}}, 1] : tensor<?x?xi64> into tensor<?x?x1xi64>
// CHECK: %[[LAGS:.*]] = tensor.generate %{{.*}}, %{{.*}} {
// CHECK: math.ctpop
// CHECK: } : tensor<?x?xi64>
// CHECK: %[[OWN_LAGS:.*]] = tensor.generate %{{.*}} {
// CHECK: hone.kv_lag
// CHECK: } : tensor<?x1xi64>
// CHECK: %[[SEQUENCE_LAGS:.*]] = tensor.generate %{{.*}} {
// CHECK: } : tensor<?xi64>
// CHECK: %[[POSITIONS:.*]] = "onnx.Sub"(%{{.*}}, %{{.*}}) : (tensor<?xi64>, tensor<?x1xi64>) -> tensor<?x?xi64>
// CHECK: %[[BRANCHED:.*]] = "onnx.Sub"(%[[POSITIONS]], %[[LAGS]]) : (tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi64>
// CHECK: %[[OWN:.*]] = "onnx.Sub"(%[[BRANCHED]], %[[OWN_LAGS]]) : (tensor<?x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi64>
// CHECK: "onnx.Gather"(%{{.*}}, %[[OWN]])
// CHECK: hone.attention %{{.*}} pattern(#hone.all_of<#hone.causal, #hone.tree>, %[[ANCESTORS]]) scale(5.000000e-01) lags(%[[SEQUENCE_LAGS]])
module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>, #hone.slot<"value", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64> {onnx.name = "input_ids", onnx.dims = ["batch", "sequence"]}, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>)
      -> (tensor<?x1x?x8xf32>, tensor<?x?x4xf32>, !hone.kv<@kv>) {
    %length = hone.kv_length %state : !hone.kv<@kv>
    %number = arith.index_cast %length : index to i64
    %held = tensor.from_elements %number : tensor<i64>
    %zero = arith.constant 0 : index
    %batch = tensor.dim %tokens, %zero : tensor<?x?xi64>
    %padding = tensor.generate %batch {
    ^bb0(%b: index, %unit: index):
      %own = hone.kv_padding %state[%b] : !hone.kv<@kv>
      %cast = arith.index_cast %own : index to i64
      tensor.yield %cast : i64
    } : tensor<?x1xi64>
    %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %shape = "onnx.Shape"(%tokens) : (tensor<?x?xi64>) -> tensor<2xi64>
    %fresh = "onnx.Gather"(%shape, %one) : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
    %total = "onnx.Add"(%held, %fresh) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %places = "onnx.Range"(%held, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
    %positions = "onnx.Sub"(%places, %padding) : (tensor<?xi64>, tensor<?x1xi64>) -> tensor<?x?xi64>
    %table = "onnx.Constant"() {value = dense<0.5> : tensor<100x4xf32>} : () -> tensor<100x4xf32>
    %rows = "onnx.Gather"(%table, %positions) {axis = 0 : i64} : (tensor<100x4xf32>, tensor<?x?xi64>) -> tensor<?x?x4xf32>
    %s0, %keys = hone.kv_append %state[0], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    %s1, %values = hone.kv_append %s0[1], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    %y = hone.attention %x, %keys, %values pattern(#hone.causal) scale(0.5)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
    return %y, %rows, %s1 : tensor<?x1x?x8xf32>, tensor<?x?x4xf32>, !hone.kv<@kv>
  }
}

// -----

// A window counts from the positions of keys, those of each sequence from its own length on.

// CHECK-LABEL: func.func @verify(
// CHECK: hone.kv_length
// CHECK: %[[POSITIONS:.*]] = tensor.generate %{{.*}}, %{{.*}} {
// CHECK: hone.kv_lag
// CHECK: arith.minsi
// CHECK: } : tensor<?x?xi64>
// CHECK: hone.attention {{.*}} pattern(#hone.all_of<#hone.sliding<window = 4>, #hone.tree>, %{{.*}}) scale(5.000000e-01) lags(%{{.*}}) key_positions(%[[POSITIONS]])
module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>, #hone.slot<"value", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    %s0, %keys = hone.kv_append %state[0], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    %s1, %values = hone.kv_append %s0[1], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    %y = hone.attention %x, %keys, %values pattern(#hone.sliding<window = 4>) scale(0.5)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
    return %y, %s1 : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}
