// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --hone-raise --split-input-file | FileCheck %s
// RUN: hone-opt %s --hone-expand-flex-attention --split-input-file --remarks-filter=hone-expand-flex-attention --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: @grouped
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.full) scale(2.500000e-01)
// CHECK-SAME: (tensor<?x4x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32>
func.func @grouped(%q: tensor<?x4x?x16xf32> {onnx.dims = ["b", "", "s", ""]}, %k: tensor<?x2x?x16xf32> {onnx.dims = ["b", "", "t", ""]},
                   %v: tensor<?x2x?x8xf32> {onnx.dims = ["b", "", "t", ""]}) -> tensor<?x4x?x8xf32> {
  %0 = "onnx.ai.onnx.preview.FlexAttention"(%q, %k, %v) : (tensor<?x4x?x16xf32>, tensor<?x2x?x16xf32>, tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %0 : tensor<?x4x?x8xf32>
}

// -----

// The subgraph caps the scores and then hides later keys.
// CHECK-LABEL: @causal
// CHECK: hone.attention %arg0, %arg1, %arg2 pattern(#hone.causal) scale(5.000000e-01) softcap(2.000000e+01)
func.func @causal(%q: tensor<1x2x?x16xf32> {onnx.dims = ["", "", "s", ""]}, %k: tensor<1x2x?x16xf32> {onnx.dims = ["", "", "s", ""]},
                  %v: tensor<1x2x?x16xf32> {onnx.dims = ["", "", "s", ""]}) -> tensor<1x2x?x16xf32> {
  %0 = "onnx.ai.onnx.preview.FlexAttention"(%q, %k, %v) ({
  ^bb0(%scores: tensor<?x?x?x?xf32>):
    %cap = "onnx.Constant"() {value = dense<2.0e+01> : tensor<f32>} : () -> tensor<f32>
    %low = "onnx.Constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %zero = "onnx.Constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %three = "onnx.Constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %ax = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
    %d = "onnx.Div"(%scores, %cap) : (tensor<?x?x?x?xf32>, tensor<f32>) -> tensor<?x?x?x?xf32>
    %t = "onnx.Tanh"(%d) : (tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
    %m = "onnx.Mul"(%t, %cap) : (tensor<?x?x?x?xf32>, tensor<f32>) -> tensor<?x?x?x?xf32>
    %sizes = "onnx.Shape"(%scores) : (tensor<?x?x?x?xf32>) -> tensor<4xi64>
    %n = "onnx.Gather"(%sizes, %three) {axis = 0 : i64} : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
    %col = "onnx.Range"(%zero, %n, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
    %row = "onnx.Unsqueeze"(%col, %ax) : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
    %seen = "onnx.GreaterOrEqual"(%row, %col) : (tensor<?x1xi64>, tensor<?xi64>) -> tensor<?x?xi1>
    %r = "onnx.Where"(%seen, %m, %low) : (tensor<?x?xi1>, tensor<?x?x?x?xf32>, tensor<f32>) -> tensor<?x?x?x?xf32>
    "onnx.Yield"(%r) : (tensor<?x?x?x?xf32>) -> ()
  }) {onnx.regions = ["score_mod"], scale = 5.000000e-01 : f32} : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %0 : tensor<1x2x?x16xf32>
}

// -----

// What changes probabilities is no attention of the dialect.
// CHECK-LABEL: @probabilities
// CHECK: onnx.Softmax
// CHECK-NEXT: onnx.Relu
// CHECK-NEXT: onnx.MatMul
func.func @probabilities(%q: tensor<1x2x3x16xf32>) -> tensor<1x2x3x16xf32> {
  %0 = "onnx.ai.onnx.preview.FlexAttention"(%q, %q, %q) ({
  ^bb0(%p: tensor<1x2x3x3xf32>):
    %r = "onnx.Relu"(%p) : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
    "onnx.Yield"(%r) : (tensor<1x2x3x3xf32>) -> ()
  }) {onnx.regions = ["prob_mod"]} : (tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>, tensor<1x2x3x16xf32>) -> tensor<1x2x3x16xf32>
  return %0 : tensor<1x2x3x16xf32>
}

// -----

// CHECK-LABEL: @heads
// CHECK: onnx.ai.onnx.preview.FlexAttention
// REMARK: the numbers or sizes of its heads are not known
func.func @heads(%q: tensor<1x?x3x16xf32>) -> tensor<1x?x3x16xf32> {
  %0 = "onnx.ai.onnx.preview.FlexAttention"(%q, %q, %q) : (tensor<1x?x3x16xf32>, tensor<1x?x3x16xf32>, tensor<1x?x3x16xf32>) -> tensor<1x?x3x16xf32>
  return %0 : tensor<1x?x3x16xf32>
}

// -----

// Where queries and keys may differ in number, the lowering has to check that.
// CHECK-LABEL: @transposed
// CHECK-NOT: onnx.Softmax
// CHECK: onnx.ai.onnx.preview.FlexAttention
// CHECK-NOT: onnx.MatMul
// REMARK: it is not known that its subgraphs keep the shapes of their inputs
func.func @transposed(%q: tensor<1x2x?x16xf32> {onnx.dims = ["", "", "s", ""]}, %k: tensor<1x2x?x16xf32> {onnx.dims = ["", "", "t", ""]})
    -> tensor<1x2x?x16xf32> {
  %0 = "onnx.ai.onnx.preview.FlexAttention"(%q, %k, %k) ({
  ^bb0(%p: tensor<?x?x?x?xf32>):
    %r = "onnx.Transpose"(%p) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
    "onnx.Yield"(%r) : (tensor<?x?x?x?xf32>) -> ()
  }) {onnx.regions = ["score_mod"]} : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %0 : tensor<1x2x?x16xf32>
}
