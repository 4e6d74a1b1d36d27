// RUN: hone-opt %s --hone-separate-sequences --split-input-file --mlir-print-local-scope | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --hone-separate-sequences --split-input-file --remarks-filter=hone-separate-sequences 2>&1 | FileCheck %s --check-prefix=REMARK

// Positions of tokens lose the lag of their sequence, and attention over the state knows it.

// REMARK: [Passed] Sequences {{.*}}"1 attentions and 1 tensors of positions go by the length of each sequence"
// CHECK-LABEL: func.func @forward(
// CHECK: %[[ALIGNED:.*]] = tensor.generate %{{.*}} {
// CHECK: hone.kv_lag %{{.*}}[%{{.*}}]
// CHECK: } : tensor<?x1xi64>
// CHECK: %[[LAGS:.*]] = tensor.generate %{{.*}} {
// CHECK: hone.kv_lag %{{.*}}[%{{.*}}]
// CHECK: } : tensor<?xi64>
// CHECK: %[[PLACES:.*]] = "onnx.Range"
// CHECK: %[[POSITIONS:.*]] = "onnx.Sub"(%[[PLACES]], %{{.*}}) : (tensor<?xi64>, tensor<?x1xi64>) -> tensor<?x?xi64>
// CHECK: %[[OWN:.*]] = "onnx.Sub"(%[[POSITIONS]], %[[ALIGNED]]) : (tensor<?x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi64>
// CHECK: "onnx.Gather"(%{{.*}}, %[[OWN]])
// CHECK: hone.attention %{{.*}} pattern(#hone.causal) scale(5.000000e-01) lags(%[[LAGS]])
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
