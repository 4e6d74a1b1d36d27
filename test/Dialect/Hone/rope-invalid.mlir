// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @rope_c1_shape_of_sin(%x: tensor<1x2x3x8xf32>, %cos: tensor<1x3x4xf32>, %sin: tensor<1x3x3xf32>) {
  // expected-error @below {{expected the shape of sin to be [1x3x4], but got [1x3x3]}}
  hone.rope %x, %cos, %sin : (tensor<1x2x3x8xf32>, tensor<1x3x4xf32>, tensor<1x3x3xf32>) -> tensor<1x2x3x8xf32>
  return
}

// -----

func.func @rope_c1_elements_of_sin(%x: tensor<1x2x3x8xf32>, %cos: tensor<1x3x4xf32>, %sin: tensor<1x3x4xf16>) {
  // expected-error @below {{expected the elements of sin to be 'f32', but got 'f16'}}
  hone.rope %x, %cos, %sin : (tensor<1x2x3x8xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf16>) -> tensor<1x2x3x8xf32>
  return
}

// -----

func.func @rope_c2_batch(%x: tensor<3x2x3x8xf32>, %cos: tensor<2x3x4xf32>) {
  // expected-error @below {{expected the first dimension of the tables to be 3, but got 2}}
  hone.rope %x, %cos, %cos : (tensor<3x2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<3x2x3x8xf32>
  return
}

// -----

func.func @rope_c2_positions(%x: tensor<3x2x3x8xf32>, %cos: tensor<1x4x4xf32>) {
  // expected-error @below {{expected the second dimension of the tables to be 3, but got 4}}
  hone.rope %x, %cos, %cos : (tensor<3x2x3x8xf32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<3x2x3x8xf32>
  return
}

// -----

func.func @rope_c3_pairs(%x: tensor<3x2x3x9xf32>, %cos: tensor<1x3x5xf32>) {
  // expected-error @below {{expected the last dimension of the tables to be at most 4, but got 5}}
  hone.rope %x, %cos, %cos : (tensor<3x2x3x9xf32>, tensor<1x3x5xf32>, tensor<1x3x5xf32>) -> tensor<3x2x3x9xf32>
  return
}
