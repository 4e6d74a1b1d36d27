// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @observe_c1_row(%x: tensor<f32>) {
  // expected-error @below {{expected the dimensions of values to be at least 1, but got 0}}
  hone.observe %x site 0 : tensor<f32>
  return
}

// -----

func.func @observe_site(%x: tensor<8xf32>) {
  // expected-error @below {{attribute 'site' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  hone.observe %x site -1 : tensor<8xf32>
  return
}

// -----

func.func @observe_values(%x: tensor<8xi64>) {
  // expected-error @below {{operand #0 must be plain tensor of f32, f16 or bf16, but got 'tensor<8xi64>'}}
  hone.observe %x site 0 : tensor<8xi64>
  return
}
