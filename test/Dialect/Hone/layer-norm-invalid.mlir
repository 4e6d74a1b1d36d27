// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @layer_norm_c1_row(%x: tensor<f32>, %w: tensor<8xf32>) {
  // expected-error @below {{expected the dimensions of x to be at least 1, but got 0}}
  hone.layer_norm %x, %w epsilon(0.0) : (tensor<f32>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @layer_norm_c2_weight(%x: tensor<?x8xf32>, %w: tensor<4xf32>) {
  // expected-error @below {{expected the size of weight to be 8, but got 4}}
  hone.layer_norm %x, %w epsilon(0.0) : (tensor<?x8xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @layer_norm_c2_bias(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %b: tensor<1xf32>) {
  // expected-error @below {{expected the size of bias to be 8, but got 1}}
  hone.layer_norm %x, %w bias(%b) epsilon(0.0) : (tensor<?x8xf32>, tensor<8xf32>, tensor<1xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @layer_norm_c3_epsilon(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{expected epsilon to be finite and not negative, but got}}
  hone.layer_norm %x, %w epsilon(0x7F800000) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return
}
