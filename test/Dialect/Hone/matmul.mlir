// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @repeated
func.func @repeated(%a: tensor<5x1x8x4xf32>, %b: tensor<?x4x2xf32>) -> tensor<5x?x8x2xf32> {
  // CHECK: hone.matmul %{{.*}}, %{{.*}} : (tensor<5x1x8x4xf32>, tensor<?x4x2xf32>) -> tensor<5x?x8x2xf32>
  %0 = hone.matmul %a, %b : (tensor<5x1x8x4xf32>, tensor<?x4x2xf32>) -> tensor<5x?x8x2xf32>
  return %0 : tensor<5x?x8x2xf32>
}

// A dynamic leading dimension equals the other's, which may be known.
// CHECK-LABEL: @equal_at_run_time
func.func @equal_at_run_time(%a: tensor<?x8x4xf32>, %b: tensor<3x4x2xf32>) -> tensor<3x8x2xf32> {
  // CHECK: hone.matmul
  %0 = hone.matmul %a, %b : (tensor<?x8x4xf32>, tensor<3x4x2xf32>) -> tensor<3x8x2xf32>
  return %0 : tensor<3x8x2xf32>
}

// CHECK-LABEL: @accumulated
func.func @accumulated(%a: tensor<?x4xf32>, %b: tensor<4x2xf32>, %c: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // CHECK: hone.matmul %{{.*}}, %{{.*}} addend(%{{.*}}) bf16_products : (tensor<?x4xf32>, tensor<4x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %0 = hone.matmul %a, %b addend(%c) bf16_products : (tensor<?x4xf32>, tensor<4x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
