// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @kl_divergence_c1_rank(%logits: tensor<f32>) {
  // expected-error @below {{expected the dimensions of logits to be at least 1, but got 0}}
  hone.kl_divergence %logits, %logits {temperature = 1.0 : f32} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @kl_divergence_c2_dimensions(%logits: tensor<3x16xf32>, %reference: tensor<3x17xf32>) {
  // expected-error @below {{expected the shape of reference to be [3x16], but got [3x17]}}
  hone.kl_divergence %logits, %reference {temperature = 1.0 : f32} : (tensor<3x16xf32>, tensor<3x17xf32>) -> tensor<f32>
  return
}

// -----

func.func @kl_divergence_c3_temperature(%logits: tensor<3x16xf32>) {
  // expected-error @below {{expected the temperature to be finite and above 0, but got 0.000000e+00}}
  hone.kl_divergence %logits, %logits {temperature = 0.0 : f32} : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<f32>
  return
}
