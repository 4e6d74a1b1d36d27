// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @mlp_c1_row(%x: tensor<f32>, %u: tensor<6x4xf32>, %d: tensor<5x6xf32>) {
  // expected-error @below {{expected the dimensions of x to be at least 1, but got 0}}
  hone.mlp relu %x, up(%u), down(%d) : (tensor<f32>, tensor<6x4xf32>, tensor<5x6xf32>) -> tensor<f32>
  return
}

// -----

func.func @mlp_c1_inner_dim(%x: tensor<?x3xf32>, %u: tensor<6x4xf32>, %d: tensor<5x6xf32>) {
  // expected-error @below {{expected the last dimension of x to be 4, but got 3}}
  hone.mlp relu %x, up(%u), down(%d) : (tensor<?x3xf32>, tensor<6x4xf32>, tensor<5x6xf32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @mlp_c2_down(%x: tensor<?x4xf32>, %u: tensor<6x4xf32>, %d: tensor<5x7xf32>) {
  // expected-error @below {{expected the last dimension of down to be 6, but got 7}}
  hone.mlp relu %x, up(%u), down(%d) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<5x7xf32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @mlp_c3_up_bias(%x: tensor<?x4xf32>, %u: tensor<6x4xf32>, %d: tensor<5x6xf32>, %ub: tensor<5xf32>) {
  // expected-error @below {{expected the size of up_bias to be 6, but got 5}}
  hone.mlp relu %x, up(%u, %ub), down(%d) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<5x6xf32>, tensor<5xf32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @mlp_c3_down_bias(%x: tensor<?x4xf32>, %u: tensor<6x4xf32>, %d: tensor<5x6xf32>, %db: tensor<6xf32>) {
  // expected-error @below {{expected the size of down_bias to be 5, but got 6}}
  hone.mlp relu %x, up(%u), down(%d, %db) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<5x6xf32>, tensor<6xf32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @mlp_c4_up(%x: tensor<?x4xf32>, %u: tensor<6x4xf16>, %d: tensor<5x6xf32>) {
  // expected-error @below {{expected the elements of up to be 'f32', but got 'f16'}}
  hone.mlp relu %x, up(%u), down(%d) : (tensor<?x4xf32>, tensor<6x4xf16>, tensor<5x6xf32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @mlp_c4_down(%x: tensor<?x4xf32>, %u: tensor<6x4xf32>, %d: tensor<5x6xf16>) {
  // expected-error @below {{expected the elements of down to be 'f32', but got 'f16'}}
  hone.mlp relu %x, up(%u), down(%d) : (tensor<?x4xf32>, tensor<6x4xf32>, tensor<5x6xf16>) -> tensor<?x5xf32>
  return
}
