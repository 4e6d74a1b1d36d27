// RUN: hone-opt %s --hone-raise-mlp --split-input-file | FileCheck %s -enable-var-scope

// The matrices of each row's experts are gathered; gate and up lie in one. The router stays, and so do the bytes of the matrices,
// which are rows one below the other now.
// CHECK: hone.param @w1 : tensor<48x8xf32> = dense<1.000000e+00> : tensor<48x8xf32>
// CHECK-LABEL: @gathered
// CHECK-DAG: %[[TWO:.*]]:2 = "onnx.TopK"(%arg1
// CHECK-DAG: %[[UP:.*]] = hone.get_param @w1 : tensor<48x8xf32>
// CHECK-DAG: %[[DOWN:.*]] = hone.get_param @constant.experts : tensor<32x6xf32>
// CHECK-DAG: %[[IDS:.*]] = "onnx.Reshape"(%[[TWO]]#1, {{.*}}) : (tensor<?x2xi64>, tensor<2xi64>) -> tensor<?x2xi64>
// CHECK: hone.moe silu %arg0, experts(%[[IDS]], %{{.*}}), up(%[[UP]]), down(%[[DOWN]]) fused halves
// CHECK-NOT: onnx.MatMul
hone.param @w1 : tensor<4x12x8xf32> = dense<1.0> : tensor<4x12x8xf32>
func.func @gathered(%x: tensor<?x8xf32> {onnx.dims = ["rows", ""]}, %logits: tensor<?x4xf32> {onnx.dims = ["rows", ""]}) -> tensor<?x8xf32> {
  %w1 = hone.get_param @w1 : tensor<4x12x8xf32>
  %w2 = "onnx.Constant"() {value = dense<1.0> : tensor<4x8x6xf32>} : () -> tensor<4x8x6xf32>
  %last = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %k = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %twice = "onnx.Constant"() {value = dense<[1, 2, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %flat = "onnx.Constant"() {value = dense<[-1, 8]> : tensor<2xi64>} : () -> tensor<2xi64>
  %fold = "onnx.Constant"() {value = dense<[-1, 2, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %best:2 = "onnx.TopK"(%logits, %k) {axis = -1 : i64, largest = 1 : i64, sorted = 1 : i64} : (tensor<?x4xf32>, tensor<1xi64>) -> (tensor<?x2xf32>, tensor<?x2xi64>)
  %x1 = "onnx.Unsqueeze"(%x, %one) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1x8xf32>
  %x2 = "onnx.Expand"(%x1, %twice) : (tensor<?x1x8xf32>, tensor<3xi64>) -> tensor<?x2x8xf32>
  %rows = "onnx.Reshape"(%x2, %flat) : (tensor<?x2x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
  %ids = "onnx.Reshape"(%best#1, %last) : (tensor<?x2xi64>, tensor<1xi64>) -> tensor<?xi64>
  %tuples = "onnx.Unsqueeze"(%ids, %last) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %m1 = "onnx.GatherND"(%w1, %tuples) {batch_dims = 0 : i64} : (tensor<4x12x8xf32>, tensor<?x1xi64>) -> tensor<?x12x8xf32>
  %c1 = "onnx.Unsqueeze"(%rows, %last) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x8x1xf32>
  %p1 = "onnx.MatMul"(%m1, %c1) : (tensor<?x12x8xf32>, tensor<?x8x1xf32>) -> tensor<?x12x1xf32>
  %r1 = "onnx.Squeeze"(%p1, %last) : (tensor<?x12x1xf32>, tensor<1xi64>) -> tensor<?x12xf32>
  %h:2 = "onnx.Split"(%r1) {axis = 1 : i64, num_outputs = 2 : i64} : (tensor<?x12xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>)
  %s = "onnx.Sigmoid"(%h#0) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %a = "onnx.Mul"(%h#0, %s) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %g = "onnx.Mul"(%a, %h#1) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %m2 = "onnx.GatherND"(%w2, %tuples) {batch_dims = 0 : i64} : (tensor<4x8x6xf32>, tensor<?x1xi64>) -> tensor<?x8x6xf32>
  %c2 = "onnx.Unsqueeze"(%g, %last) : (tensor<?x6xf32>, tensor<1xi64>) -> tensor<?x6x1xf32>
  %p2 = "onnx.MatMul"(%m2, %c2) : (tensor<?x8x6xf32>, tensor<?x6x1xf32>) -> tensor<?x8x1xf32>
  %r2 = "onnx.Squeeze"(%p2, %last) : (tensor<?x8x1xf32>, tensor<1xi64>) -> tensor<?x8xf32>
  %w = "onnx.Reshape"(%best#0, %last) : (tensor<?x2xf32>, tensor<1xi64>) -> tensor<?xf32>
  %wc = "onnx.Unsqueeze"(%w, %last) : (tensor<?xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %weighted = "onnx.Mul"(%r2, %wc) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %terms = "onnx.Reshape"(%weighted, %fold) : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<?x2x8xf32>
  %sum = "onnx.ReduceSum"(%terms, %one) {keepdims = 0 : i64} : (tensor<?x2x8xf32>, tensor<1xi64>) -> tensor<?x8xf32>
  return %sum : tensor<?x8xf32>
}

// -----

// A plain block, with matrices by Gather and a bias; but the rows are of other tokens than their experts.
// CHECK-LABEL: @not_repeated
// CHECK-NOT: hone.moe
func.func @not_repeated(%rows: tensor<?x8xf32>, %ids: tensor<?xi64>, %w: tensor<?x1xf32>) -> tensor<?x8xf32> {
  %w1 = "onnx.Constant"() {value = dense<1.0> : tensor<4x6x8xf32>} : () -> tensor<4x6x8xf32>
  %b1 = "onnx.Constant"() {value = dense<1.0> : tensor<4x6xf32>} : () -> tensor<4x6xf32>
  %w2 = "onnx.Constant"() {value = dense<1.0> : tensor<4x8x6xf32>} : () -> tensor<4x8x6xf32>
  %last = "onnx.Constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %fold = "onnx.Constant"() {value = dense<[-1, 2, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %m1 = "onnx.Gather"(%w1, %ids) : (tensor<4x6x8xf32>, tensor<?xi64>) -> tensor<?x6x8xf32>
  %c1 = "onnx.Unsqueeze"(%rows, %last) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x8x1xf32>
  %p1 = "onnx.MatMul"(%m1, %c1) : (tensor<?x6x8xf32>, tensor<?x8x1xf32>) -> tensor<?x6x1xf32>
  %r1 = "onnx.Squeeze"(%p1, %last) : (tensor<?x6x1xf32>, tensor<1xi64>) -> tensor<?x6xf32>
  %b = "onnx.Gather"(%b1, %ids) : (tensor<4x6xf32>, tensor<?xi64>) -> tensor<?x6xf32>
  %r = "onnx.Add"(%r1, %b) : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %g = "onnx.Relu"(%r) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %m2 = "onnx.Gather"(%w2, %ids) : (tensor<4x8x6xf32>, tensor<?xi64>) -> tensor<?x8x6xf32>
  %c2 = "onnx.Unsqueeze"(%g, %last) : (tensor<?x6xf32>, tensor<1xi64>) -> tensor<?x6x1xf32>
  %p2 = "onnx.MatMul"(%m2, %c2) : (tensor<?x8x6xf32>, tensor<?x6x1xf32>) -> tensor<?x8x1xf32>
  %r2 = "onnx.Squeeze"(%p2, %last) : (tensor<?x8x1xf32>, tensor<1xi64>) -> tensor<?x8xf32>
  %weighted = "onnx.Mul"(%r2, %w) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %terms = "onnx.Reshape"(%weighted, %fold) : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<?x2x8xf32>
  %sum = "onnx.ReduceSum"(%terms, %one) {keepdims = 0 : i64} : (tensor<?x2x8xf32>, tensor<1xi64>) -> tensor<?x8xf32>
  return %sum : tensor<?x8xf32>
}

// -----

// com.microsoft.MoE: fc1 is the gate where there is an fc3; the weights are a softmax over the chosen.
// CHECK-LABEL: @operator
// CHECK-DAG: %[[BEST:.*]]:2 = "onnx.TopK"(%arg1
// CHECK-DAG: %[[WEIGHTS:.*]] = "onnx.Softmax"(%[[BEST]]#0)
// CHECK-DAG: %[[UP:.*]] = "onnx.Reshape"(%arg4, {{.*}}) : (tensor<4x6x8xf32>, {{.*}}) -> tensor<24x8xf32>
// CHECK-DAG: %[[GATE:.*]] = "onnx.Reshape"(%arg2, {{.*}}) : (tensor<4x6x8xf32>, {{.*}}) -> tensor<24x8xf32>
// CHECK-DAG: %[[DOWN:.*]] = "onnx.Reshape"(%arg3, {{.*}}) : (tensor<4x8x6xf32>, {{.*}}) -> tensor<32x6xf32>
// CHECK: hone.moe silu %{{.*}}, experts(%[[BEST]]#1, %[[WEIGHTS]]), up(%[[UP]]), down(%[[DOWN]]) gate(%[[GATE]])
func.func @operator(%x: tensor<?x?x8xf32>, %router: tensor<?x4xf32>, %w1: tensor<4x6x8xf32>, %w2: tensor<4x8x6xf32>, %w3: tensor<4x6x8xf32>) -> tensor<?x?x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  %r = "onnx.com.microsoft.MoE"(%x, %router, %w1, %none, %w2, %none, %w3) {activation_type = "silu", k = 2 : i64, normalize_routing_weights = 1 : i64}
      : (tensor<?x?x8xf32>, tensor<?x4xf32>, tensor<4x6x8xf32>, none, tensor<4x8x6xf32>, none, tensor<4x6x8xf32>) -> tensor<?x?x8xf32>
  return %r : tensor<?x?x8xf32>
}

// -----

// A fused SwiGLU has gate and up in alternate rows of fc1; the weights are a softmax over all experts.
// CHECK-LABEL: @fused_operator
// CHECK-DAG: "onnx.GatherElements"
// CHECK-DAG: %[[UP:.*]] = "onnx.Reshape"(%arg2, {{.*}}) : {{.*}} -> tensor<48x8xf32>
// CHECK: hone.moe silu %arg0, {{.*}} up(%[[UP]], %arg3), down(%{{.*}}) fused alternate
func.func @fused_operator(%x: tensor<?x8xf32>, %router: tensor<?x4xf32>, %w1: tensor<4x12x8xf32>, %b1: tensor<4x12xf32>, %w2: tensor<4x8x6xf32>) -> tensor<?x8xf32> {
  %r = "onnx.com.microsoft.MoE"(%x, %router, %w1, %b1, %w2) {activation_type = "swiglu", swiglu_fusion = 1 : i64, activation_beta = 0.0 : f32, activation_alpha = 1.0 : f32, k = 2 : i64}
      : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<4x12x8xf32>, tensor<4x12xf32>, tensor<4x8x6xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: @sparse_mixer
// CHECK: onnx.com.microsoft.MoE
func.func @sparse_mixer(%x: tensor<?x8xf32>, %router: tensor<?x4xf32>, %w1: tensor<4x6x8xf32>, %w2: tensor<4x8x6xf32>) -> tensor<?x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  %r = "onnx.com.microsoft.MoE"(%x, %router, %w1, %none, %w2) {k = 2 : i64, use_sparse_mixer = 1 : i64}
      : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<4x6x8xf32>, none, tensor<4x8x6xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// -----

// Integers and scales stay as they are: 4 bits, one scale an output, and 8 bits with zero points, in groups of 16 inputs.
// CHECK-DAG: hone.param @w1 : tensor<48x8xf32, #hone.affine<bits = 4>> = {scales = dense<1.000000e+00> : tensor<48x1xf32>, values = dense<17> : tensor<48x4xi8>}
// CHECK-DAG: hone.param @w2 : tensor<32x6xf32, #hone.affine<bits = 4>>
// CHECK-LABEL: @integers
// CHECK: hone.moe silu {{.*}} fused alternate
hone.param @w1 : tensor<4x12x4xui8> = dense<17> : tensor<4x12x4xui8>
hone.param @s1 : tensor<4x12xf32> = dense<1.0> : tensor<4x12xf32>
hone.param @w2 : tensor<4x8x3xui8> = dense<18> : tensor<4x8x3xui8>
hone.param @s2 : tensor<4x8xf32> = dense<1.0> : tensor<4x8xf32>
func.func @integers(%x: tensor<?x8xf32>, %router: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %none = "onnx.NoValue"() : () -> none
  %w1 = hone.get_param @w1 : tensor<4x12x4xui8>
  %s1 = hone.get_param @s1 : tensor<4x12xf32>
  %w2 = hone.get_param @w2 : tensor<4x8x3xui8>
  %s2 = hone.get_param @s2 : tensor<4x8xf32>
  %r = "onnx.com.microsoft.QMoE"(%x, %router, %w1, %s1, %none, %w2, %s2) {activation_type = "swiglu", swiglu_fusion = 1 : i64, activation_beta = 0.0 : f32, activation_alpha = 1.0 : f32, k = 2 : i64, expert_weight_bits = 4 : i64}
      : (tensor<?x8xf32>, tensor<?x4xf32>, tensor<4x12x4xui8>, tensor<4x12xf32>, none, tensor<4x8x3xui8>, tensor<4x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
