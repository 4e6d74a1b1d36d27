// RUN: hone-opt %s --hone-raise-state --split-input-file --mlir-print-local-scope | FileCheck %s -enable-var-scope

// A past that is only extended is a slot. The mask and the positions come from the state, the shape of the past too,
// and any part of it.

// CHECK: hone.state @kv [#hone.slot<"past.key", tensor<?x2x?x8xf32>, axis = 2>]
module {
  // CHECK: func.func @main
  func.func @main(%ids: tensor<?x?xi64> {onnx.name = "input_ids", onnx.dims = ["batch", "sequence"]},
                  %mask: tensor<?x?xi64> {onnx.name = "attention_mask", onnx.dims = ["batch", "total"]},
                  %past: tensor<?x2x?x8xf32> {onnx.name = "past.key", onnx.dims = ["batch", "", "past", ""]})
      -> (tensor<?x?x?xf32> {onnx.name = "logits"}, tensor<4xi64>, tensor<?x2x?x8xf32> {onnx.name = "present.key"}) {
    %table = "onnx.Constant"() {value = dense<1.0> : tensor<10x16xf32>} : () -> tensor<10x16xf32>
    %shape = "onnx.Constant"() {value = dense<[0, 0, 2, 8]> : tensor<4xi64>} : () -> tensor<4xi64>
    %x = "onnx.Gather"(%table, %ids) : (tensor<10x16xf32>, tensor<?x?xi64>) -> tensor<?x?x16xf32>
    %split = "onnx.Reshape"(%x, %shape) : (tensor<?x?x16xf32>, tensor<4xi64>) -> tensor<?x?x2x8xf32>
    %k = "onnx.Transpose"(%split) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x8xf32>) -> tensor<?x2x?x8xf32>
    %all = "onnx.Concat"(%past, %k) {axis = -2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
    %sizes = "onnx.Shape"(%past) : (tensor<?x2x?x8xf32>) -> tensor<4xi64>
    %held = "onnx.Shape"(%past) {start = -2 : i64, end = 3 : i64} : (tensor<?x2x?x8xf32>) -> tensor<1xi64>
    %axes = "onnx.Concat"(%held, %sizes) {axis = 0 : i64} : (tensor<1xi64>, tensor<4xi64>) -> tensor<5xi64>
    %real = "onnx.Cast"(%mask) {to = 1 : i64} : (tensor<?x?xi64>) -> tensor<?x?xf32>
    %product = "onnx.MatMul"(%all, %real) : (tensor<?x2x?x8xf32>, tensor<?x?xf32>) -> tensor<?x2x?x?xf32>
    %logits = "onnx.ReduceSum"(%product, %axes) {keepdims = 0 : i64} : (tensor<?x2x?x?xf32>, tensor<5xi64>) -> tensor<?x?x?xf32>
    return %logits, %sizes, %all : tensor<?x?x?xf32>, tensor<4xi64>, tensor<?x2x?x8xf32>
  }
  // CHECK: func.func @forward(%[[IDS:.*]]: tensor<?x?xi64> {{.*}}, %[[STATE:.*]]: !hone.kv<@kv>)
  // CHECK-SAME: -> (tensor<?x?x?xf32> {onnx.name = "logits"}, !hone.kv<@kv>)
  // CHECK: %[[LENGTH:.*]] = hone.kv_length %[[STATE]]
  // CHECK: hone.kv_padding %[[STATE]]
  // CHECK: "onnx.GreaterOrEqual"
  // CHECK: %[[NEXT:.*]], %[[ALL:.*]] = hone.kv_append %[[STATE]][0], %{{.*}} : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
  // CHECK-NOT: hone.kv_view
  // CHECK: return %{{.*}}, %[[NEXT]]
}

// -----

// What an encoder gave is an input of every call.

// CHECK: hone.state @kv [#hone.slot<"past.key"
module {
  func.func @main(%ids: tensor<?x?xi64> {onnx.name = "input_ids", onnx.dims = ["batch", "sequence"]},
                  %encoded: tensor<?x2x?x8xf32> {onnx.name = "past.encoder.key", onnx.dims = ["batch", "", "encoded", ""]},
                  %past: tensor<?x2x?x8xf32> {onnx.name = "past.key", onnx.dims = ["batch", "", "past", ""]},
                  %image: tensor<?x3x4x4xf32> {onnx.name = "pixels", onnx.dims = ["batch", "", "", ""]})
      -> (tensor<?x?x?xf32>, tensor<?x2x?x8xf32>) {
    %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
    %axis = "onnx.Constant"() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
    %all = "onnx.Concat"(%past, %encoded) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
    %rows = "onnx.ReduceSum"(%all, %axes) {keepdims = 0 : i64} : (tensor<?x2x?x8xf32>, tensor<1xi64>) -> tensor<?x?x8xf32>
    %sum = "onnx.ReduceSum"(%image) {keepdims = 0 : i64} : (tensor<?x3x4x4xf32>) -> tensor<f32>
    %logits = "onnx.Add"(%rows, %sum) : (tensor<?x?x8xf32>, tensor<f32>) -> tensor<?x?x?xf32>
    return %logits, %all : tensor<?x?x?xf32>, tensor<?x2x?x8xf32>
  }
  // CHECK: func.func @forward(%{{.*}}: tensor<?x?xi64> {{{.*}}onnx.name = "input_ids"}, %[[ENCODED:.*]]: tensor<?x2x?x8xf32> {{{.*}}onnx.name = "past.encoder.key"},
  // CHECK-SAME: %[[IMAGE:.*]]: tensor<?x3x4x4xf32> {{{.*}}onnx.name = "pixels"}, %[[STATE:.*]]: !hone.kv<@kv>)
  // CHECK: hone.kv_append %[[STATE]][0], %[[ENCODED]]
}

// -----

// A merged decoder: the branch that extends the past becomes @forward.

// CHECK: hone.state @kv [#hone.slot<"past.key"
module {
  // CHECK: func.func @main
  // CHECK: "onnx.If"
  func.func @main(%ids: tensor<?x?xi64> {onnx.name = "input_ids", onnx.dims = ["batch", "sequence"]},
                  %past: tensor<?x2x?x8xf32> {onnx.name = "past.key", onnx.dims = ["batch", "", "past", ""]},
                  %flag: tensor<1xi1> {onnx.name = "use_cache_branch"})
      -> (tensor<?x?x?xf32>, tensor<?x2x?x8xf32>) {
    %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
    %fresh = "onnx.Constant"() {value = dense<1.0> : tensor<1x2x1x8xf32>} : () -> tensor<1x2x1x8xf32>
    %r:2 = "onnx.If"(%flag) ({
      %all = "onnx.Concat"(%past, %fresh) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<1x2x1x8xf32>) -> tensor<?x2x?x8xf32>
      %rows = "onnx.ReduceSum"(%all, %axes) {keepdims = 0 : i64} : (tensor<?x2x?x8xf32>, tensor<1xi64>) -> tensor<?x?x8xf32>
      "onnx.Yield"(%rows, %all) : (tensor<?x?x8xf32>, tensor<?x2x?x8xf32>) -> ()
    }, {
      %rows = "onnx.ReduceSum"(%fresh, %axes) {keepdims = 0 : i64} : (tensor<1x2x1x8xf32>, tensor<1xi64>) -> tensor<1x1x8xf32>
      "onnx.Yield"(%rows, %fresh) : (tensor<1x1x8xf32>, tensor<1x2x1x8xf32>) -> ()
    }) {onnx.regions = ["then_branch", "else_branch"]} : (tensor<1xi1>) -> (tensor<?x?x?xf32>, tensor<?x2x?x8xf32>)
    return %r#0, %r#1 : tensor<?x?x?xf32>, tensor<?x2x?x8xf32>
  }
  // CHECK: func.func @forward(%{{.*}}: tensor<?x?xi64> {{.*}}, %[[STATE:.*]]: !hone.kv<@kv>)
  // CHECK-NOT: "onnx.If"
  // CHECK: hone.kv_append %[[STATE]][0]
  // CHECK-NOT: func.func private
}

// -----

// An input of which nobody knows what the state should give for it.

// CHECK-NOT: hone.state
// CHECK-NOT: func.func @forward
module {
  func.func @main(%ids: tensor<?x?xi64> {onnx.name = "input_ids", onnx.dims = ["batch", "sequence"]},
                  %kinds: tensor<?x?xi64> {onnx.name = "token_type_ids", onnx.dims = ["batch", "sequence"]},
                  %past: tensor<?x2x?x8xf32> {onnx.name = "past.key", onnx.dims = ["batch", "", "past", ""]})
      -> (tensor<?x?x?xf32>, tensor<?x2x?x8xf32>) {
    %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
    %fresh = "onnx.Constant"() {value = dense<1.0> : tensor<1x2x1x8xf32>} : () -> tensor<1x2x1x8xf32>
    %all = "onnx.Concat"(%past, %fresh) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<1x2x1x8xf32>) -> tensor<?x2x?x8xf32>
    %rows = "onnx.ReduceSum"(%all, %axes) {keepdims = 0 : i64} : (tensor<?x2x?x8xf32>, tensor<1xi64>) -> tensor<?x?x8xf32>
    %real = "onnx.Cast"(%kinds) {to = 1 : i64} : (tensor<?x?xi64>) -> tensor<?x?xf32>
    %sum = "onnx.ReduceSum"(%real) {keepdims = 0 : i64} : (tensor<?x?xf32>) -> tensor<f32>
    %logits = "onnx.Add"(%rows, %sum) : (tensor<?x?x8xf32>, tensor<f32>) -> tensor<?x?x?xf32>
    return %logits, %all : tensor<?x?x?xf32>, tensor<?x2x?x8xf32>
  }
}
