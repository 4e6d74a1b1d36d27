// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @linear
func.func @linear(%x: tensor<?x?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x?x4xf32> {
  // CHECK: hone.linear %{{.*}}, %{{.*}} : (tensor<?x?x8xf32>, tensor<4x8xf32>) -> tensor<?x?x4xf32>
  %0 = hone.linear %x, %w : (tensor<?x?x8xf32>, tensor<4x8xf32>) -> tensor<?x?x4xf32>
  return %0 : tensor<?x?x4xf32>
}

// CHECK-LABEL: @encoded_with_bias
func.func @encoded_with_bias(%x: tensor<8xf32>, %w: tensor<4x8xf32, #hone.stored<bf16, transposed>>, %b: tensor<4xf32>)
    -> tensor<4xf32> {
  // CHECK: hone.linear %{{.*}}, %{{.*}} bias(%{{.*}}) : (tensor<8xf32>, tensor<4x8xf32, #hone.stored<bf16, transposed>>, tensor<4xf32>)
  %0 = hone.linear %x, %w bias(%b)
     : (tensor<8xf32>, tensor<4x8xf32, #hone.stored<bf16, transposed>>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A written type may know less, or more, than follows from the operands.
// CHECK-LABEL: @other_sizes
func.func @other_sizes(%x: tensor<?x8xf32>, %w: tensor<?x?xf32>) -> tensor<3x?xf32> {
  // CHECK: hone.linear {{.*}} -> tensor<3x?xf32>
  %0 = hone.linear %x, %w : (tensor<?x8xf32>, tensor<?x?xf32>) -> tensor<3x?xf32>
  return %0 : tensor<3x?xf32>
}
