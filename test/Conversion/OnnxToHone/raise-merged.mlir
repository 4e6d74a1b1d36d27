// RUN: hone-opt %s --hone-raise | FileCheck %s -enable-var-scope

// What is inside of the branch that becomes @forward is recognised there: shapes within an If are not known before.

// CHECK: func.func @forward
// CHECK-NOT: onnx.LayerNormalization
// CHECK: hone.layer_norm
// CHECK-NOT: onnx.LayerNormalization
func.func @main(%ids: tensor<?x?xi64> {onnx.name = "input_ids", onnx.dims = ["batch", "sequence"]},
                %past: tensor<?x2x?x8xf32> {onnx.name = "past.key", onnx.dims = ["batch", "", "past", ""]},
                %flag: tensor<1xi1> {onnx.name = "use_cache_branch"})
    -> (tensor<?x?x?xf32>, tensor<?x2x?x8xf32>) {
  %axes = "onnx.Constant"() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %fresh = "onnx.Constant"() {value = dense<1.0> : tensor<1x2x1x8xf32>} : () -> tensor<1x2x1x8xf32>
  %weight = "onnx.Constant"() {value = dense<2.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %bias = "onnx.Constant"() {value = dense<3.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %r:2 = "onnx.If"(%flag) ({
    %all = "onnx.Concat"(%past, %fresh) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<1x2x1x8xf32>) -> tensor<*xf32>
    %rows = "onnx.ReduceSum"(%all, %axes) {keepdims = 0 : i64} : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
    %norm = "onnx.LayerNormalization"(%rows, %weight, %bias) : (tensor<*xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<*xf32>
    "onnx.Yield"(%norm, %all) : (tensor<*xf32>, tensor<*xf32>) -> ()
  }, {
    %rows = "onnx.ReduceSum"(%fresh, %axes) {keepdims = 0 : i64} : (tensor<1x2x1x8xf32>, tensor<1xi64>) -> tensor<1x1x8xf32>
    "onnx.Yield"(%rows, %fresh) : (tensor<1x1x8xf32>, tensor<1x2x1x8xf32>) -> ()
  }) {onnx.regions = ["then_branch", "else_branch"]} : (tensor<1xi1>) -> (tensor<?x?x?xf32>, tensor<?x2x?x8xf32>)
  return %r#0, %r#1 : tensor<?x?x?xf32>, tensor<?x2x?x8xf32>
}
