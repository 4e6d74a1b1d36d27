// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @planes
func.func @planes(%w: tensor<4x2xf32, #hone.stored<bf16, transposed>>) -> tensor<2x4xbf16> {
  // CHECK: hone.planes %{{.*}} : (tensor<4x2xf32, #hone.stored<bf16, transposed>>) -> tensor<2x4xbf16>
  %0 = hone.planes %w : (tensor<4x2xf32, #hone.stored<bf16, transposed>>) -> tensor<2x4xbf16>
  return %0 : tensor<2x4xbf16>
}

// CHECK-LABEL: @unpack
func.func @unpack(%w: tensor<?x2xf32, #hone.stored<f16>>) -> tensor<?x2xf32> {
  // CHECK: hone.unpack %{{.*}} : tensor<?x2xf32, #hone.stored<f16>> -> tensor<?x2xf32>
  %0 = hone.unpack %w : tensor<?x2xf32, #hone.stored<f16>> -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
