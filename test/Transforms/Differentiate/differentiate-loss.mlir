// RUN: hone-opt %s --split-input-file --hone-differentiate=loss=cross-entropy --canonicalize --cse --mlir-print-local-scope | FileCheck %s --enable-var-scope

// The loss of a language model, whose targets are rows of a table for the runtime, too.

// CHECK-LABEL: func.func @gradients(
// CHECK-SAME: %[[X:.*]]: tensor<?x?x8xf32>
// CHECK-SAME: %[[TARGETS:.*]]: tensor<?x?xi64> {hone.rows = array<i64: 16, 0>, onnx.dims = ["batch", "sequence"], onnx.name = "targets"})
// CHECK-SAME: -> (tensor<f32> {onnx.name = "loss"}, tensor<16x8xf32> {onnx.name = "w.gradient"})
// CHECK: %[[LOGITS:.*]] = hone.linear %[[X]]
// CHECK: %[[LOSS:.*]] = hone.cross_entropy %[[LOGITS]], %[[TARGETS]]
// CHECK: %[[DW:.*]] = hone.matmul
// CHECK: return %[[LOSS]], %[[DW]] : tensor<f32>, tensor<16x8xf32>
module {
  hone.param @w : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
  func.func @main(%x: tensor<?x?x8xf32>) -> (tensor<?x?x16xf32> {onnx.name = "logits", onnx.dims = ["batch", "sequence", "words"]}) {
    %w = hone.get_param @w : tensor<16x8xf32>
    %y = hone.linear %x, %w : (tensor<?x?x8xf32>, tensor<16x8xf32>) -> tensor<?x?x16xf32>
    return %y : tensor<?x?x16xf32>
  }
}

// -----

// The gradient of the logits overwrites them. Of a table that is the last layer's weight too, the rows that were looked up are added to
// the gradient that the layer gave it.

// CHECK-LABEL: func.func @gradients(
// CHECK: %[[LOGITS:.*]] = hone.linear
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x?xf32>, tensor<?x?xi64>, tensor<f32>) outs(%[[LOGITS]] : tensor<?x?x16xf32>)
// CHECK: %[[DW:.*]] = hone.matmul {{.*}} -> tensor<16x8xf32>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[DW]]) -> (tensor<16x8xf32>)
// CHECK: return %{{.*}}, %[[SUM]] : tensor<f32>, tensor<16x8xf32>
module {
  hone.param @table : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
  func.func @main(%ids: tensor<?x?xi64>) -> (tensor<?x?x16xf32> {onnx.name = "logits"}) {
    %table = hone.get_param @table : tensor<16x8xf32>
    %x = hone.embedding %ids, %table : (tensor<?x?xi64>, tensor<16x8xf32>) -> tensor<?x?x8xf32>
    %y = hone.linear %x, %table : (tensor<?x?x8xf32>, tensor<16x8xf32>) -> tensor<?x?x16xf32>
    return %y : tensor<?x?x16xf32>
  }
}
