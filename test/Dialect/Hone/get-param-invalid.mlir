// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @get_param_c1_is_param() {
  // expected-error @below {{expected @get_param_c1_is_param to be a hone.param of this module}}
  hone.get_param @get_param_c1_is_param : tensor<2xf32>
  return
}

// -----

func.func @get_param_c1_exists() {
  // expected-error @below {{expected @nothing to be a hone.param of this module}}
  hone.get_param @nothing : tensor<2xf32>
  return
}

// -----

// expected-note @below {{the parameter is here}}
hone.param @w : tensor<2xf32> = dense<1.0> : tensor<2xf32>
func.func @get_param_c2_type() {
  // expected-error @below {{expected the type of @w to be 'tensor<2xf32>', but got 'tensor<3xf32>'}}
  hone.get_param @w : tensor<3xf32>
  return
}
