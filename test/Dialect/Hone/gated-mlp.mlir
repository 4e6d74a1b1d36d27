// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @activations
func.func @activations(%x: tensor<?x4xf32>, %g: tensor<6x4xf32>, %d: tensor<4x6xf32>) {
  // CHECK: hone.gated_mlp silu %{{.*}}, gate(%{{.*}}), up(%{{.*}}), down(%{{.*}}) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<?x4xf32>
  hone.gated_mlp silu %x, gate(%g), up(%g), down(%d) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<?x4xf32>
  // CHECK: hone.gated_mlp gelu %
  hone.gated_mlp gelu %x, gate(%g), up(%g), down(%d) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<?x4xf32>
  // CHECK: hone.gated_mlp gelu_tanh %
  hone.gated_mlp gelu_tanh %x, gate(%g), up(%g), down(%d) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<?x4xf32>
  // CHECK: hone.gated_mlp relu %
  hone.gated_mlp relu %x, gate(%g), up(%g), down(%d) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: @biases
func.func @biases(%x: tensor<2x?x4xf32>, %g: tensor<6x4xf32, #hone.stored<f16>>, %d: tensor<5x6xf32>, %i: tensor<6xf32>,
                  %n: tensor<5xf32>) -> tensor<2x?x5xf32> {
  // CHECK: hone.gated_mlp silu %{{.*}}, gate(%[[G:.*]], %[[I:.*]]), up(%[[G]], %[[I]]), down(%{{.*}}, %{{.*}}) : (
  %0 = hone.gated_mlp silu %x, gate(%g, %i), up(%g, %i), down(%d, %n)
     : (tensor<2x?x4xf32>, tensor<6x4xf32, #hone.stored<f16>>, tensor<6x4xf32, #hone.stored<f16>>, tensor<5x6xf32>,
        tensor<6xf32>, tensor<6xf32>, tensor<5xf32>) -> tensor<2x?x5xf32>
  return %0 : tensor<2x?x5xf32>
}
