// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @matmul_c1_matrices(%a: tensor<4xf32>, %b: tensor<4x2xf32>) {
  // expected-error @below {{expected the dimensions of a to be at least 2, but got 1}}
  hone.matmul %a, %b : (tensor<4xf32>, tensor<4x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @matmul_c2_inner_dim(%a: tensor<8x4xf32>, %b: tensor<3x2xf32>) {
  // expected-error @below {{expected the last but one dimension of b to be 4, but got 3}}
  hone.matmul %a, %b : (tensor<8x4xf32>, tensor<3x2xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @matmul_c3_leading(%a: tensor<3x8x4xf32>, %b: tensor<5x4x2xf32>) {
  // expected-error @below {{expected the leading dimensions of a and b to be equal or 1, but got [3x8x4] and [5x4x2]}}
  hone.matmul %a, %b : (tensor<3x8x4xf32>, tensor<5x4x2xf32>) -> tensor<3x8x2xf32>
  return
}

// -----

func.func @matmul_c4_elements(%a: tensor<8x4xf32>, %b: tensor<4x2xbf16>) {
  // expected-error @below {{expected the elements of b to be 'f32', but got 'bf16'}}
  hone.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xbf16>) -> tensor<8x2xf32>
  return
}

// -----

func.func @matmul_c5_shape(%a: tensor<8x4xf32>, %b: tensor<4x2xf32>, %c: tensor<8x3xf32>) {
  // expected-error @below {{expected the shape of the addend to be [8x2], but got [8x3]}}
  hone.matmul %a, %b addend(%c) : (tensor<8x4xf32>, tensor<4x2xf32>, tensor<8x3xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @matmul_c5_elements(%a: tensor<8x4xf32>, %b: tensor<4x2xf32>, %c: tensor<8x2xbf16>) {
  // expected-error @below {{expected the elements of the addend to be 'f32', but got 'bf16'}}
  hone.matmul %a, %b addend(%c) : (tensor<8x4xf32>, tensor<4x2xf32>, tensor<8x2xbf16>) -> tensor<8x2xf32>
  return
}
