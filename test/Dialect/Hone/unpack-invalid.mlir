// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @planes_c1_encoded(%w: tensor<2x3xf32>) {
  // expected-error @below {{expected a tensor with a weight encoding, but got 'tensor<2x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  hone.planes %w : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @planes_result(%w: tensor<2x3xf32, #hone.stored<f16>>) {
  // expected-error @below {{inferred type(s) 'tensor<2x3xf16>' are incompatible with return type(s)}}
  // expected-error @below {{failed to infer returned types}}
  hone.planes %w : (tensor<2x3xf32, #hone.stored<f16>>) -> tensor<2x3xf32>
  return
}

// -----

func.func @unpack_c1_encoded(%w: tensor<2x3xf32>) {
  // expected-error @below {{expected a tensor with a weight encoding, but got 'tensor<2x3xf32>'}}
  hone.unpack %w : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @unpack_c2_result(%w: tensor<2x3xf32, #hone.stored<f16>>) {
  // expected-error @below {{expected the result to be 'tensor<2x3xf32>', but got 'tensor<2x3xf16>'}}
  hone.unpack %w : tensor<2x3xf32, #hone.stored<f16>> -> tensor<2x3xf16>
  return
}
