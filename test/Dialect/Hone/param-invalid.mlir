// RUN: hone-opt %s -split-input-file -verify-diagnostics

// @param_c1_static_shape
// expected-error @below {{expected the type to have a static shape, but got 'tensor<?xf32>'}}
hone.param @p : tensor<?xf32> = dense<0.0> : tensor<1xf32>

// -----

// @param_c2_form_of_storage
// expected-error @below {{expected the storage of plane 'values' to be dense elements, a resource, #hone.external or #hone.stacked}}
hone.param @p : tensor<1xf32> = "0.0"

// -----

// @param_c2_missing_plane
// expected-error @below {{expected the storage to have the planes 'values', but got {}}}
hone.param @p : tensor<1xf32> = {}

// -----

// @param_c2_unknown_plane
// expected-error @below {{expected the storage to have the planes 'values', but got}}
hone.param @p : tensor<1xf32> = {scales = dense<0.0> : tensor<1xf32>}

// -----

// @param_c3_type_of_elements
// expected-error @below {{expected the elements of plane 'values' to be of type 'tensor<2x1xf16>', but got 'tensor<1x2xf16>'}}
hone.param @p : tensor<1x2xf32, #hone.stored<f16, transposed>> = dense<0.0> : tensor<1x2xf16>

// -----

// @param_c3_type_of_what_is_stacked
// expected-error @below {{expected the parts of plane 'values' to be joined to 'tensor<3x2xf32>', but got 'tensor<4x2xf32>'}}
hone.param @p : tensor<3x2xf32> = #hone.stacked<tensor<2x2xf32> = [dense<0.0> : tensor<2x2xf32>, dense<0.0> : tensor<2x2xf32>]>

// -----

// @param_c4_bytes
// expected-error @below {{expected the size of plane 'values' to be 16 bytes, but got 32}}
hone.param @p : tensor<4x2xf32, #hone.stored<bf16>> = #hone.external<"model.safetensors", 0, 32>

// -----

// @param_c4_more_bytes_than_can_be_counted
// expected-error @below {{unsupported type 'tensor<4611686018427387904x8xf32>' of plane 'values'; supported: sizes of less than 2^63 bytes}}
hone.param @p : tensor<4611686018427387904x8xf32> = #hone.external<"model.safetensors", 0, 0>

// -----

// @param_c5_shape_of_what_is_converted
// expected-error @below {{expected what is converted to be 'tensor<2x3xf32>' in some encoding, but got 'tensor<3x2xf32>'}}
hone.param @p : tensor<2x3xf32, #hone.stored<bf16>> = #hone.converted<tensor<3x2xf32> = dense<0.0> : tensor<3x2xf32>>

// -----

// @param_c6_nothing_to_convert_to
// expected-error @below {{expected the type of what is converted to have an encoding, but got 'tensor<2x3xf32>'}}
hone.param @p : tensor<2x3xf32> = #hone.converted<tensor<2x3xf32> = dense<0.0> : tensor<2x3xf32>>
