// RUN: hone-opt %s -split-input-file -verify-diagnostics

// @panels_c1_type
// expected-error @below {{unsupported type of packed elements 'f64'; supported: f32, f16, bf16}}
func.func private @f() -> tensor<4x2xf32, #hrt.panels<f64>>

// -----

// @panels_c2_dimensions
// expected-error @below {{expected a tensor in panels of 'bf16' to have 2 dimensions and elements of f32 or the same, but got 3 and 'f32'}}
func.func private @f() -> tensor<1x4x2xf32, #hrt.panels<bf16>>
