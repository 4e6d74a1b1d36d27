// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @cross_entropy_c1_rank(%logits: tensor<f32>, %targets: tensor<i64>) {
  // expected-error @below {{expected the dimensions of logits to be at least 1, but got 0}}
  hone.cross_entropy %logits, %targets : (tensor<f32>, tensor<i64>) -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_c2_leading(%logits: tensor<2x3x16xf32>, %targets: tensor<2x4xi64>) {
  // expected-error @below {{expected targets to have the leading dimensions of logits, [2x3], but got [2x4]}}
  hone.cross_entropy %logits, %targets : (tensor<2x3x16xf32>, tensor<2x4xi64>) -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_elements(%logits: tensor<3x16xf16>, %targets: tensor<3xi64>) {
  // expected-error @below {{operand #0 must be plain tensor of f32}}
  hone.cross_entropy %logits, %targets : (tensor<3x16xf16>, tensor<3xi64>) -> tensor<f32>
  return
}
