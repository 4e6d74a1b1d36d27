// RUN: hone-opt %s --hone-raise-state --hone-raise-attention --split-input-file | FileCheck %s -enable-var-scope

// Caches as tensors may be longer than what they hold: @main keeps the operator. In @forward they are slots, and the window
// counts the query's own position. A cache of the window's size is a whole one there, and its head size is the operator's.

// CHECK: hone.state @kv [#hone.slot<"past.key", tensor<?x2x?x16xf32>, axis = 2>, #hone.slot<"past.value", tensor<?x2x?x16xf32>, axis = 2>]
module {
  // CHECK: func.func @main
  // CHECK: onnx.com.microsoft.GroupQueryAttention
  // CHECK: func.func @forward
  // CHECK: hone.kv_append %{{.*}}[0]
  // CHECK: hone.kv_append %{{.*}}[1]
  // CHECK: hone.attention {{.*}} pattern(#hone.sliding<window = 8>) scale(2.500000e-01) softcap(5.000000e+01) key_begin(%{{.*}})
  // CHECK-NOT: onnx.com.microsoft.GroupQueryAttention
  func.func @main(%ids: tensor<?x?xi64> {onnx.name = "input_ids", onnx.dims = ["batch", "sequence"]},
                  %mask: tensor<?x?xi64> {onnx.name = "attention_mask", onnx.dims = ["batch", "total"]},
                  %pk: tensor<?x2x?x?xf32> {onnx.name = "past.key", onnx.dims = ["batch", "", "past", ""]},
                  %pv: tensor<?x2x?x16xf32> {onnx.name = "past.value", onnx.dims = ["batch", "", "past", ""]})
      -> (tensor<?x?x64xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) {
    %none = "onnx.NoValue"() : () -> none
    %table = "onnx.Constant"() {value = dense<1.0> : tensor<10x128xf32>} : () -> tensor<10x128xf32>
    %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
    %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %x = "onnx.Gather"(%table, %ids) : (tensor<10x128xf32>, tensor<?x?xi64>) -> tensor<?x?x128xf32>
    %sum = "onnx.ReduceSum"(%mask, %axes) {keepdims = 0 : i64} : (tensor<?x?xi64>, tensor<1xi64>) -> tensor<?xi64>
    %last = "onnx.Sub"(%sum, %one) : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
    %lengths = "onnx.Cast"(%last) {to = 6 : i64} : (tensor<?xi64>) -> tensor<?xi32>
    %shape = "onnx.Shape"(%mask) : (tensor<?x?xi64>) -> tensor<2xi64>
    %size = "onnx.Gather"(%shape, %one) : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
    %total = "onnx.Cast"(%size) {to = 6 : i64} : (tensor<i64>) -> tensor<i32>
    %r:3 = "onnx.com.microsoft.GroupQueryAttention"(%x, %none, %none, %pk, %pv, %lengths, %total)
        {num_heads = 4 : i64, kv_num_heads = 2 : i64, local_window_size = 8 : i64, sliding_window_cache = 1 : i64, softcap = 50.0 : f32}
        : (tensor<?x?x128xf32>, none, none, tensor<?x2x?x?xf32>, tensor<?x2x?x16xf32>, tensor<?xi32>, tensor<i32>)
        -> (tensor<?x?x64xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>)
    return %r#0, %r#1, %r#2 : tensor<?x?x64xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>
  }
}

// -----

// Of 16 bits between casts that keep the file's f32: the caches are extended as they are, and attention is of f32.

// CHECK: hone.state @kv [#hone.slot<"past.key", tensor<?x2x?x16xf32>, axis = 2>, #hone.slot<"past.value", tensor<?x2x?x16xf32>, axis = 2>]
module {
  // CHECK: func.func @main
  // CHECK: onnx.com.microsoft.GroupQueryAttention{{.*}}(tensor<?x?x128xf32>, none, none, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>
  // CHECK: func.func @forward
  // CHECK: hone.kv_append %{{.*}}[0], %{{.*}} : !hone.kv<@kv>, tensor<?x2x?x16xf32>
  // CHECK: hone.kv_append %{{.*}}[1], %{{.*}} : !hone.kv<@kv>, tensor<?x2x?x16xf32>
  // CHECK: hone.attention {{.*}} -> tensor<?x4x?x16xf32>
  // CHECK: "onnx.Cast"(%{{.*}}) {to = 10 : i64} : (tensor<?x?x64xf32>) -> tensor<?x?x64xf16>
  func.func @main(%ids: tensor<?x?xi64> {onnx.name = "input_ids", onnx.dims = ["batch", "sequence"]},
                  %pk: tensor<?x2x?x16xf32> {onnx.name = "past.key", onnx.dims = ["batch", "", "past", ""]},
                  %pv: tensor<?x2x?x16xf32> {onnx.name = "past.value", onnx.dims = ["batch", "", "past", ""]})
      -> (tensor<?x?x64xf16>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) {
    %none = "onnx.NoValue"() : () -> none
    %table = "onnx.Constant"() {value = dense<1.0> : tensor<10x128xf16>} : () -> tensor<10x128xf16>
    %last = "onnx.Constant"() {value = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
    %total = "onnx.Constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %x = "onnx.Gather"(%table, %ids) : (tensor<10x128xf16>, tensor<?x?xi64>) -> tensor<?x?x128xf16>
    %k = "onnx.Cast"(%pk) {to = 10 : i64} : (tensor<?x2x?x16xf32>) -> tensor<?x2x?x16xf16>
    %v = "onnx.Cast"(%pv) {to = 10 : i64} : (tensor<?x2x?x16xf32>) -> tensor<?x2x?x16xf16>
    %r:3 = "onnx.com.microsoft.GroupQueryAttention"(%x, %none, %none, %k, %v, %last, %total) {num_heads = 4 : i64, kv_num_heads = 2 : i64}
        : (tensor<?x?x128xf16>, none, none, tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>, tensor<1xi32>, tensor<i32>)
        -> (tensor<?x?x64xf16>, tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>)
    %pkn = "onnx.Cast"(%r#1) {to = 1 : i64} : (tensor<?x2x?x16xf16>) -> tensor<?x2x?x16xf32>
    %pvn = "onnx.Cast"(%r#2) {to = 1 : i64} : (tensor<?x2x?x16xf16>) -> tensor<?x2x?x16xf32>
    return %r#0, %pkn, %pvn : tensor<?x?x64xf16>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>
  }
}

// -----

// Without a cache there is nothing to hold. A bias whose sizes are not proven is expanded; a smooth softmax is a sink of 0.
// CHECK-LABEL: @without_cache
// CHECK: %[[SINKS:.*]] = "onnx.Constant"() {value = dense<0.000000e+00> : tensor<4xf32>}
// CHECK: hone.attention {{.*}} pattern(#hone.causal) {{.*}} bias(%{{.*}}) sinks(%[[SINKS]])
func.func @without_cache(%x: tensor<?x?x128xf32>, %bias: tensor<?x4x?x?xf32>, %lengths: tensor<?xi32>, %total: tensor<i32>) -> tensor<?x?x64xf32> {
  %none = "onnx.NoValue"() : () -> none
  %r = "onnx.com.microsoft.GroupQueryAttention"(%x, %none, %none, %none, %none, %lengths, %total, %none, %none, %none, %bias)
      {num_heads = 4 : i64, kv_num_heads = 2 : i64, smooth_softmax = 1 : i64}
      : (tensor<?x?x128xf32>, none, none, none, none, tensor<?xi32>, tensor<i32>, none, none, none, tensor<?x4x?x?xf32>) -> tensor<?x?x64xf32>
  return %r : tensor<?x?x64xf32>
}

// -----

// CHECK-LABEL: @every_key
// CHECK: hone.attention {{.*}} pattern(#hone.full)
func.func @every_key(%x: tensor<?x?x128xf32>, %lengths: tensor<?xi32>, %total: tensor<i32>) -> tensor<?x?x64xf32> {
  %none = "onnx.NoValue"() : () -> none
  %r = "onnx.com.microsoft.GroupQueryAttention"(%x, %none, %none, %none, %none, %lengths, %total)
      {num_heads = 4 : i64, kv_num_heads = 2 : i64, causal = 0 : i64}
      : (tensor<?x?x128xf32>, none, none, none, none, tensor<?xi32>, tensor<i32>) -> tensor<?x?x64xf32>
  return %r : tensor<?x?x64xf32>
}

// -----

// Keys of which nothing is known stay with the operator.
// CHECK-LABEL: @unknown_keys
// CHECK: onnx.com.microsoft.GroupQueryAttention
func.func @unknown_keys(%q: tensor<?x?x64xf32>, %k: tensor<*xf32>, %v: tensor<*xf32>, %lengths: tensor<?xi32>, %total: tensor<i32>) -> tensor<?x?x64xf32> {
  %none = "onnx.NoValue"() : () -> none
  %r = "onnx.com.microsoft.GroupQueryAttention"(%q, %k, %v, %none, %none, %lengths, %total)
      {num_heads = 4 : i64, kv_num_heads = 2 : i64}
      : (tensor<?x?x64xf32>, tensor<*xf32>, tensor<*xf32>, none, none, tensor<?xi32>, tensor<i32>) -> tensor<?x?x64xf32>
  return %r : tensor<?x?x64xf32>
}
