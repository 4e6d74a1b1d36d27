// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @rms_norm_c1_row(%x: tensor<f32>, %w: tensor<8xf32>) {
  // expected-error @below {{expected the dimensions of x to be at least 1, but got 0}}
  hone.rms_norm %x, %w epsilon(0.0) : (tensor<f32>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @rms_norm_c2_weight(%x: tensor<?x8xf32>, %w: tensor<4xf32>) {
  // expected-error @below {{expected the size of weight to be 8, but got 4}}
  hone.rms_norm %x, %w epsilon(0.0) : (tensor<?x8xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @rms_norm_c3_epsilon(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{expected epsilon to be finite and not negative, but got -1.000000e+00}}
  hone.rms_norm %x, %w epsilon(-1.0) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}
