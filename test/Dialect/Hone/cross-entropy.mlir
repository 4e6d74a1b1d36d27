// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @cross_entropy
func.func @cross_entropy(%logits: tensor<?x?x16xf32>, %targets: tensor<?x?xi64>) -> tensor<f32> {
  // CHECK: hone.cross_entropy %{{.*}}, %{{.*}} : (tensor<?x?x16xf32>, tensor<?x?xi64>) -> tensor<f32>
  %0 = hone.cross_entropy %logits, %targets : (tensor<?x?x16xf32>, tensor<?x?xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: @one
func.func @one(%logits: tensor<?xf32>, %target: tensor<i32>) -> tensor<f32> {
  // CHECK: hone.cross_entropy
  %0 = hone.cross_entropy %logits, %target : (tensor<?xf32>, tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}
