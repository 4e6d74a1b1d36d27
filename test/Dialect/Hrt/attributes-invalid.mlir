// RUN: hone-opt %s -split-input-file -verify-diagnostics

// @panels_c1_type
// expected-error @below {{unsupported packed elements f64; supported: f32, f16, bf16, #hone.affine in groups of 0, 32, 64 or 128, 2:4 #hone.nm of these floats and of #hone.affine of 4 bits or of 8 without zero points, #hone.codebook of bf16, #hone.dense_sparse of #hone.affine and of #hone.codebook}}
func.func private @f() -> tensor<4x2xf32, #hrt.panels<f64>>

// -----

// @panels_c1_codebook
// expected-error @below {{unsupported packed elements #hone.codebook<bits = 4, values = f16>}}
func.func private @f() -> tensor<4x2xf32, #hrt.panels<#hone.codebook<bits = 4, values = f16>>>

// -----

// @panels_c2_dimensions
// expected-error @below {{expected a tensor in panels of bf16 to have 2 dimensions and elements of f32 or the same, but got 3 and 'f32'}}
func.func private @f() -> tensor<1x4x2xf32, #hrt.panels<bf16>>

// -----

// @panels_c1_outliers
// expected-error @below {{unsupported packed elements #hone.dense_sparse<of = #hone.affine<bits = 2, group = 16>, outliers = 16>; supported: f32, f16, bf16, #hone.affine in groups of 0, 32, 64 or 128, 2:4 #hone.nm of these floats and of #hone.affine of 4 bits or of 8 without zero points, #hone.codebook of bf16, #hone.dense_sparse of #hone.affine and of #hone.codebook}}
func.func private @f() -> tensor<4x2xf32, #hrt.panels<#hone.dense_sparse<of = #hone.affine<bits = 2, group = 16>, outliers = 16>>>

// -----

// @panels_c1_group
// expected-error @below {{unsupported packed elements #hone.affine<bits = 4, group = 16>; supported: f32, f16, bf16, #hone.affine in groups of 0, 32, 64 or 128, 2:4 #hone.nm of these floats and of #hone.affine of 4 bits or of 8 without zero points, #hone.codebook of bf16, #hone.dense_sparse of #hone.affine and of #hone.codebook}}
func.func private @f() -> tensor<4x2xf32, #hrt.panels<#hone.affine<bits = 4, group = 16>>>

// -----

// @panels_c2_elements
// expected-error @below {{expected a tensor in panels of #hone.affine<bits = 8> to have 2 dimensions and elements of f32, but got 2 and 'f16'}}
func.func private @f() -> tensor<4x2xf16, #hrt.panels<#hone.affine<bits = 8>>>

// -----

// @key_blocks_c1_dimensions
// expected-error @below {{expected keys in blocks to have 4 dimensions and elements of f32, f16 or bf16, but got 3 and 'f32'}}
func.func private @f() -> tensor<2x?x8xf32, #hrt.key_blocks>

// -----

// @value_blocks_c1_elements
// expected-error @below {{expected values in blocks to have 4 dimensions and elements of f32, f16 or bf16, but got 4 and 'i8'}}
func.func private @f() -> tensor<1x2x?x8xi8, #hrt.value_blocks>

// -----

// @key_blocks_c2_bits
// expected-error @below {{unsupported number of bits 3 of numbers in blocks; supported: 0, 4, 8}}
func.func private @f() -> tensor<1x2x?x8xf32, #hrt.key_blocks<bits = 3>>

// -----

// @value_blocks_c2_elements
// expected-error @below {{expected values in blocks of 8 bits to have elements of f32, but got 'bf16'}}
func.func private @f() -> tensor<1x2x?x8xbf16, #hrt.value_blocks<bits = 8>>

// -----

// @panels_c1_nm
// expected-error @below {{unsupported packed elements #hone.nm<1:4, of = bf16>}}
func.func private @f() -> tensor<4x4xf32, #hrt.panels<#hone.nm<1:4, of = bf16>>>

// -----

// @panels_c1_nm_zeros
// expected-error @below {{unsupported packed elements #hone.nm<2:4, of = #hone.affine<bits = 8, hasZeros = true>>}}
func.func private @f() -> tensor<4x4xf32, #hrt.panels<#hone.nm<2:4, of = #hone.affine<bits = 8, hasZeros = true>>>>
