// RUN: hone-opt %s --hone-raise-linear-attention --split-input-file | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --hone-raise-linear-attention --split-input-file --remarks-filter=hone-raise-linear-attention 2>&1 | FileCheck %s --check-prefix=REMARK

// Heads are split, query heads share states; the scale follows from the size of keys.
// CHECK-LABEL: @gated_delta
// CHECK-SAME: (%[[Q:.*]]: tensor<?x?x64xf32> {{.*}}, %[[K:.*]]: tensor<?x?x32xf32> {{.*}}, %[[V:.*]]: tensor<?x?x48xf32> {{.*}}, %[[S:.*]]: tensor<?x2x16x24xf32> {{.*}}, %[[G:.*]]: tensor<?x?x32xf32> {{.*}}, %[[B:.*]]: tensor<?x?x1xf32>
// CHECK-DAG: %[[QUERY:.*]] = "onnx.Reshape"(%[[Q]], %{{.*}}) : {{.*}} -> tensor<?x?x4x16xf32>
// CHECK-DAG: %[[KEY:.*]] = "onnx.Reshape"(%[[K]], %{{.*}}) : {{.*}} -> tensor<?x?x2x16xf32>
// CHECK-DAG: %[[VALUE:.*]] = "onnx.Reshape"(%[[V]], %{{.*}}) : {{.*}} -> tensor<?x?x2x24xf32>
// CHECK-DAG: %[[DECAY:.*]] = "onnx.Reshape"(%[[G]], %{{.*}}) : {{.*}} -> tensor<?x?x2x16xf32>
// CHECK: %[[R:.*]], %[[N:.*]] = hone.linear_attention %[[QUERY]], %[[KEY]], %[[VALUE]] decay(%[[DECAY]]) beta(%[[B]]) state(%[[S]]) scale(2.500000e-01)
// CHECK: %[[O:.*]] = "onnx.Reshape"(%[[R]], %{{.*}}) : {{.*}} -> tensor<?x?x96xf32>
// CHECK: return %[[O]], %[[N]]
// REMARK: [Passed] LinearAttention | {{.*}} | Remark="raised with ", Remark=4, Remark=" query heads, ", Remark=2
func.func @gated_delta(%q: tensor<?x?x64xf32> {onnx.dims = ["b", "t", ""]}, %k: tensor<?x?x32xf32> {onnx.dims = ["b", "t", ""]},
                       %v: tensor<?x?x48xf32> {onnx.dims = ["b", "t", ""]}, %s: tensor<?x2x16x24xf32> {onnx.dims = ["b", "", "", ""]},
                       %g: tensor<?x?x32xf32> {onnx.dims = ["b", "t", ""]}, %beta: tensor<?x?x1xf32> {onnx.dims = ["b", "t", ""]})
    -> (tensor<?x?x96xf32>, tensor<?x2x16x24xf32>) {
  %r, %n = "onnx.LinearAttention"(%q, %k, %v, %s, %g, %beta) {q_num_heads = 4 : i64, kv_num_heads = 2 : i64}
    : (tensor<?x?x64xf32>, tensor<?x?x32xf32>, tensor<?x?x48xf32>, tensor<?x2x16x24xf32>, tensor<?x?x32xf32>, tensor<?x?x1xf32>)
    -> (tensor<?x?x96xf32>, tensor<?x2x16x24xf32>)
  return %r, %n : tensor<?x?x96xf32>, tensor<?x2x16x24xf32>
}

// The state is f32; what the operator gives is f16.
// CHECK-LABEL: @half
// CHECK: hone.linear_attention {{.*}} scale(3.000000e-01) : (tensor<1x3x2x8xf16>, tensor<1x3x2x8xf16>, tensor<1x3x2x8xf16>) -> (tensor<1x3x2x8xf16>, tensor<1x2x8x8xf32>)
// CHECK: "onnx.Cast"(%{{.*}}) {to = 10 : i64} : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf16>
func.func @half(%q: tensor<1x3x16xf16>) -> (tensor<1x3x16xf16>, tensor<1x2x8x8xf16>) {
  %r, %n = "onnx.com.microsoft.LinearAttention"(%q, %q, %q) {update_rule = "linear", q_num_heads = 2 : i64, kv_num_heads = 2 : i64, scale = 0.3 : f32}
    : (tensor<1x3x16xf16>, tensor<1x3x16xf16>, tensor<1x3x16xf16>) -> (tensor<1x3x16xf16>, tensor<1x2x8x8xf16>)
  return %r, %n : tensor<1x3x16xf16>, tensor<1x2x8x8xf16>
}

// -----

// Keys may have another number of tokens: what is lowered instead checks it.
// CHECK-LABEL: @other_tokens
// CHECK: onnx.LinearAttention
// REMARK: [Missed] LinearAttention | {{.*}}="its keys or values may have other sizes than its queries"
func.func @other_tokens(%q: tensor<?x?x16xf32> {onnx.dims = ["b", "t", ""]}, %k: tensor<?x?x16xf32> {onnx.dims = ["b", "s", ""]}) -> tensor<?x?x16xf32> {
  %r, %n = "onnx.LinearAttention"(%q, %k, %q) {update_rule = "linear", q_num_heads = 2 : i64, kv_num_heads = 2 : i64}
    : (tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> (tensor<?x?x16xf32>, tensor<?x2x8x8xf32>)
  return %r : tensor<?x?x16xf32>
}

// CHECK-LABEL: @no_decay
// CHECK: onnx.LinearAttention
// REMARK: "its inputs are not those of its update rule"
func.func @no_decay(%q: tensor<1x3x16xf32>) -> tensor<1x3x16xf32> {
  %r, %n = "onnx.LinearAttention"(%q, %q, %q) {update_rule = "gated", q_num_heads = 2 : i64, kv_num_heads = 2 : i64}
    : (tensor<1x3x16xf32>, tensor<1x3x16xf32>, tensor<1x3x16xf32>) -> (tensor<1x3x16xf32>, tensor<1x2x8x8xf32>)
  return %r : tensor<1x3x16xf32>
}

// CHECK-LABEL: @wide_beta
// CHECK: onnx.LinearAttention
// REMARK: "its beta is neither one for a token nor one for each head"
func.func @wide_beta(%q: tensor<1x3x16xf32>, %b: tensor<1x3x4xf32>) -> tensor<1x3x16xf32> {
  %none = "onnx.NoValue"() : () -> none
  %r, %n = "onnx.LinearAttention"(%q, %q, %q, %none, %none, %b) {update_rule = "delta", q_num_heads = 2 : i64, kv_num_heads = 2 : i64}
    : (tensor<1x3x16xf32>, tensor<1x3x16xf32>, tensor<1x3x16xf32>, none, none, tensor<1x3x4xf32>) -> (tensor<1x3x16xf32>, tensor<1x2x8x8xf32>)
  return %r : tensor<1x3x16xf32>
}

// CHECK-LABEL: @dynamic_heads
// CHECK: onnx.LinearAttention
// REMARK: "the sizes of its heads are not known"
func.func @dynamic_heads(%q: tensor<1x3x?xf32>) -> tensor<1x3x?xf32> {
  %r, %n = "onnx.LinearAttention"(%q, %q, %q) {update_rule = "linear", q_num_heads = 2 : i64, kv_num_heads = 2 : i64}
    : (tensor<1x3x?xf32>, tensor<1x3x?xf32>, tensor<1x3x?xf32>) -> (tensor<1x3x?xf32>, tensor<1x2x?x?xf32>)
  return %r : tensor<1x3x?xf32>
}

// CHECK-LABEL: @other_state
// CHECK: onnx.LinearAttention
// REMARK: "its state may have other sizes"
func.func @other_state(%q: tensor<?x3x16xf32> {onnx.dims = ["b", "", ""]}, %s: tensor<?x2x8x8xf32> {onnx.dims = ["other", "", "", ""]}) -> tensor<?x3x16xf32> {
  %r, %n = "onnx.LinearAttention"(%q, %q, %q, %s) {update_rule = "linear", q_num_heads = 2 : i64, kv_num_heads = 2 : i64}
    : (tensor<?x3x16xf32>, tensor<?x3x16xf32>, tensor<?x3x16xf32>, tensor<?x2x8x8xf32>) -> (tensor<?x3x16xf32>, tensor<?x2x8x8xf32>)
  return %r : tensor<?x3x16xf32>
}
