// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @l2_norm_c1_rank(%x: tensor<f32>, %w: tensor<4xf32>) -> tensor<f32> {
  // expected-error @+1 {{expected the dimensions of x to be at least 1, but got 0}}
  %0 = hone.l2_norm %x, %w epsilon(1.0e-6) : (tensor<f32>, tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @l2_norm_c2_weight(%x: tensor<?x4xf32>, %w: tensor<3xf32>) -> tensor<?x4xf32> {
  // expected-error @+1 {{expected the size of weight to be 4, but got 3}}
  %0 = hone.l2_norm %x, %w epsilon(1.0e-6) : (tensor<?x4xf32>, tensor<3xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
