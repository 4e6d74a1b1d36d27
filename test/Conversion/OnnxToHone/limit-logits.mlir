// RUN: hone-opt %s --hone-limit-logits --split-input-file | FileCheck %s

// The product of each position, capped: only of the last positions that logits_to_keep says.
// CHECK-LABEL: @forward
// CHECK-SAME: -> (tensor<?x?x9xf32> {onnx.dims = ["batch", "logits_to_keep", ""]}, !hone.kv<@kv>)
// CHECK: %[[COUNT:.*]] = tensor.dim %[[X:.*]], %{{.*}} : tensor<?x?x4xf32>
// CHECK: %[[KEPT:.*]] = hone.logits_to_keep %arg1 of %[[COUNT]]
// CHECK: %[[BEGIN:.*]] = arith.subi %[[COUNT]], %[[KEPT]]
// CHECK: %[[ROWS:.*]] = tensor.extract_slice %[[X]][0, %[[BEGIN]], 0] [%{{.*}}, %[[KEPT]], 4] [1, 1, 1]
// CHECK: hone.linear %[[ROWS]]
hone.state @kv []
hone.param @table : tensor<9x4xf32> = dense<1.0> : tensor<9x4xf32>
hone.param @cap : tensor<f32> = dense<30.0> : tensor<f32>
func.func @forward(%ids: tensor<?x?xi64>, %state: !hone.kv<@kv>) -> (tensor<?x?x9xf32> {onnx.dims = ["batch", "sequence", ""]}, !hone.kv<@kv>) {
  %w = hone.get_param @table : tensor<9x4xf32>
  %cap = hone.get_param @cap : tensor<f32>
  %x = hone.embedding %ids, %w : (tensor<?x?xi64>, tensor<9x4xf32>) -> tensor<?x?x4xf32>
  %0 = hone.linear %x, %w : (tensor<?x?x4xf32>, tensor<9x4xf32>) -> tensor<?x?x9xf32>
  %1 = "onnx.Div"(%0, %cap) : (tensor<?x?x9xf32>, tensor<f32>) -> tensor<?x?x9xf32>
  %2 = "onnx.Tanh"(%1) : (tensor<?x?x9xf32>) -> tensor<?x?x9xf32>
  %3 = "onnx.Mul"(%cap, %2) : (tensor<f32>, tensor<?x?x9xf32>) -> tensor<?x?x9xf32>
  return %3, %state : tensor<?x?x9xf32>, !hone.kv<@kv>
}

// -----

// Something else reads the product.
// CHECK-LABEL: @forward
// CHECK-NOT: hone.logits_to_keep
hone.state @kv []
hone.param @table : tensor<9x4xf32> = dense<1.0> : tensor<9x4xf32>
func.func @forward(%ids: tensor<?x?xi64>, %state: !hone.kv<@kv>) -> (tensor<?x?x9xf32>, tensor<?x?x9xf32>, !hone.kv<@kv>) {
  %w = hone.get_param @table : tensor<9x4xf32>
  %x = hone.embedding %ids, %w : (tensor<?x?xi64>, tensor<9x4xf32>) -> tensor<?x?x4xf32>
  %0 = hone.linear %x, %w : (tensor<?x?x4xf32>, tensor<9x4xf32>) -> tensor<?x?x9xf32>
  return %0, %0, %state : tensor<?x?x9xf32>, tensor<?x?x9xf32>, !hone.kv<@kv>
}
