// RUN: hone-opt %s --pass-pipeline='builtin.module(func.func(hone-expand-gradients))' --split-input-file --verify-diagnostics | FileCheck %s

// Of the sum of a number's square the gradient is twice the number; what y does not depend on has none.

// CHECK-LABEL: @square
// CHECK-SAME: (%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<2xf32>)
// CHECK-NOT: Gradient"
// CHECK: %[[NONE:.*]] = linalg.fill {{.*}} -> tensor<2xf32>
// CHECK: return %{{.*}}, %[[NONE]]
func.func @square(%a: tensor<4xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%x: f32, %out: f32):
    %s = arith.mulf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %0:2 = "onnx.ai.onnx.preview.training.Gradient"(%a, %b, %y) {xs = ["a", "b"], y = "y"} : (tensor<4xf32>, tensor<2xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<2xf32>
}

// -----

// What comes after it is not on its way.

// CHECK-LABEL: @after
// CHECK-NOT: Gradient"
// CHECK: math.cbrt
func.func @after(%a: tensor<f32>) -> (tensor<f32>, f32) {
  %0 = "onnx.ai.onnx.preview.training.Gradient"(%a, %a) {xs = ["a"], y = "a"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %x = tensor.extract %a[] : tensor<f32>
  %root = math.cbrt %x : f32
  return %0, %root : tensor<f32>, f32
}

// -----

func.func @refused(%a: tensor<f32>) -> tensor<f32> {
  %x = tensor.extract %a[] : tensor<f32>
  // expected-error @below {{cannot differentiate math.cbrt: it has no adjoint}}
  %root = math.cbrt %x : f32
  %y = tensor.from_elements %root : tensor<f32>
  %0 = "onnx.ai.onnx.preview.training.Gradient"(%a, %y) {xs = ["a"], y = "y"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
