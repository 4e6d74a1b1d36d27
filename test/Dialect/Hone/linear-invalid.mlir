// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @linear_c1_row(%x: tensor<f32>, %w: tensor<4x8xf32>) {
  // expected-error @below {{expected the dimensions of x to be at least 1, but got 0}}
  hone.linear %x, %w : (tensor<f32>, tensor<4x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @linear_c2_inner_dim(%x: tensor<?x4xf32>, %w: tensor<4x8xf32>) {
  // expected-error @below {{expected the last dimension of x to be 8, but got 4}}
  hone.linear %x, %w : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_c3_bias(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) {
  // expected-error @below {{expected the size of bias to be 4, but got 8}}
  hone.linear %x, %w bias(%b) : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_c4_elements(%x: tensor<?x8xf32>, %w: tensor<4x8xf16>) {
  // expected-error @below {{expected the elements of weight to be 'f32', but got 'f16'}}
  hone.linear %x, %w : (tensor<?x8xf32>, tensor<4x8xf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_result(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<?x4xf32>' are incompatible with return type(s) of operation 'tensor<?x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  hone.linear %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @linear_encoded_activation(%x: tensor<2x8xf32, #hone.stored<f16>>, %w: tensor<4x8xf32>) {
  // expected-error @below {{operand #0 must be plain tensor of f32, f16 or bf16}}
  hone.linear %x, %w : (tensor<2x8xf32, #hone.stored<f16>>, tensor<4x8xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @linear_other_encoding(%x: tensor<2x8xf32>, %w: tensor<4x8xf32, "mine">) {
  // expected-error @below {{operand #1 must be 2D tensor of f32, f16 or bf16, plain or with a weight encoding}}
  hone.linear %x, %w : (tensor<2x8xf32>, tensor<4x8xf32, "mine">) -> tensor<2x4xf32>
  return
}
