// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @kl_divergence
func.func @kl_divergence(%logits: tensor<?x?x16xf32>, %reference: tensor<?x?x16xf32>) -> tensor<f32> {
  // CHECK: hone.kl_divergence %{{.*}}, %{{.*}} {temperature = 2.000000e+00 : f32} : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<f32>
  %0 = hone.kl_divergence %logits, %reference {temperature = 2.0 : f32} : (tensor<?x?x16xf32>, tensor<?x?x16xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
