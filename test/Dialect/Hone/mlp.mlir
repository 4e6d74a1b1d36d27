// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @mlp
func.func @mlp(%x: tensor<?x4xf32>, %u: tensor<6x4xf32>, %d: tensor<5x6xf32>, %i: tensor<6xf32>, %n: tensor<5xf32>) {
  // CHECK: hone.mlp gelu %{{.*}}, up(%{{.*}}), down(%{{.*}}) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<5x6xf32>) -> tensor<?x5xf32>
  hone.mlp gelu %x, up(%u), down(%d) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<5x6xf32>) -> tensor<?x5xf32>
  // CHECK: hone.mlp relu %{{.*}}, up(%{{.*}}, %{{.*}}), down(%{{.*}}, %{{.*}}) : (
  hone.mlp relu %x, up(%u, %i), down(%d, %n)
    : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<5x6xf32>, tensor<6xf32>, tensor<5xf32>) -> tensor<?x5xf32>
  return
}
