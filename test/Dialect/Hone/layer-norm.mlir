// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @layer_norm
func.func @layer_norm(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<?x8xf32> {
  // CHECK: hone.layer_norm %{{.*}}, %{{.*}} bias(%{{.*}}) epsilon(1.250000e-01) : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %0 = hone.layer_norm %x, %w bias(%w) epsilon(0.125) : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  // CHECK: hone.layer_norm %{{.*}}, %{{.*}} epsilon(1.250000e-01) : (tensor<?x8xf32>, tensor<8xf32>)
  %1 = hone.layer_norm %0, %w epsilon(0.125) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
