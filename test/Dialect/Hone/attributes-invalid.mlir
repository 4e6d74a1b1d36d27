// RUN: hone-opt %s -split-input-file -verify-diagnostics

// @slot_c1_name
// expected-error @below {{expected the name of a slot not to be empty}}
hone.state @kv [#hone.slot<"", tensor<?xf32>, axis = 0>]

// -----

// @slot_c2_axis
// expected-error @below {{expected the axis of slot 'k' to be a dimension of 'tensor<?xf32>', but got 1}}
hone.state @kv [#hone.slot<"k", tensor<?xf32>, axis = 1>]

// -----

// @slot_c3_dynamic
// expected-error @below {{expected dimension 0 of slot 'k' to be dynamic, but got 'tensor<4x?xf32>'}}
hone.state @kv [#hone.slot<"k", tensor<4x?xf32>, axis = 0>]

// -----

// @slot_c4_beginning
// expected-error @below {{expected slot 'k', which grows, to begin without positions, but got @w}}
hone.state @kv [#hone.slot<"k", tensor<?xf32> = @w, axis = 0>]

// -----

hone.param @w : tensor<2xf32> = dense<1.0> : tensor<2xf32>
// @state_c2_type
// expected-error @below {{expected slot 'k' of type 'tensor<3xf32>' to begin with a parameter of that type, but got 'tensor<2xf32>'}}
hone.state @kv [#hone.slot<"k", tensor<3xf32> = @w>]

// -----

// @state_c2_param
// expected-error @below {{expected slot 'k' to begin with a hone.param, but got @w}}
hone.state @kv [#hone.slot<"k", tensor<3xf32> = @w>]

// -----

// expected-error @below {{expected the names of its slots to be unique, but got 'k' twice}}
hone.state @kv [#hone.slot<"k", tensor<?xf32>, axis = 0>, #hone.slot<"k", tensor<?xf32>, axis = 0>]

// -----

// expected-error @below {{attribute 'slots' failed to satisfy constraint: array of slots}}
hone.state @kv [1]

// -----

// expected-error @below {{expected 'hone.context' to be a unit attribute of a function's argument that is a tensor}}
func.func private @f(!hone.kv<@kv> {hone.context})

// -----

// expected-error @below {{unsupported attribute 'hone.other' of an argument; supported: hone.context, hone.rows}}
func.func private @f(tensor<4xf32> {hone.other})

// -----

// expected-error @below {{expected 'hone.channel_scales' to be an array of f32 on a parameter}}
module attributes {hone.channel_scales = array<f32: 1.0>} {}

// -----

// expected-error @below {{expected 'hone.channel_scales' to have an element for each input, but got 1 for 'tensor<1x2xf32>'}}
hone.param @p : tensor<1x2xf32> = dense<0.0> : tensor<1x2xf32> {hone.channel_scales = array<f32: 1.0>}

// -----

// expected-error @below {{expected 'hone.channel_scales' to be finite and more than 0}}
hone.param @p : tensor<1x2xf32> = dense<0.0> : tensor<1x2xf32> {hone.channel_scales = array<f32: 1.0, 0.0>}

// -----

// expected-error @below {{expected 'hone.model' to be a string on a module}}
module attributes {hone.model = 1} {}

// -----

// expected-error @below {{expected 'hone.input_rotation' to say how the inputs of a matrix were rotated, as {gain = array<f32: …>, seed = …}, with numbers other than 0 for each of them or none, and with block = … where that is a power of two that divides their number}}
hone.param @w : tensor<1x2xf32> = dense<1.0> : tensor<1x2xf32> {hone.input_rotation = {gain = array<f32: 1.0, 0.0>, seed = 1 : i64}}

// -----

// expected-error @below {{and with block = … where that is a power of two that divides their number}}
hone.param @w : tensor<1x6xf32> = dense<1.0> : tensor<1x6xf32> {hone.input_rotation = {block = 4 : i64, gain = array<f32>, seed = 0 : i64}}

// -----

// expected-error @below {{expected 'hone.inputs' to say of the inputs of a matrix which ones of how many they were, as {kept = array<i64: …>, of = …}}}
hone.param @w : tensor<1x2xf32> = dense<1.0> : tensor<1x2xf32> {hone.inputs = {kept = array<i64: 0, 3>, of = 3 : i64}}

// -----

// expected-error @below {{expected 'hone.inputs' to say of the inputs of a matrix which ones of how many they were}}
hone.param @w : tensor<1x2xf32> = dense<1.0> : tensor<1x2xf32> {hone.inputs = {kept = array<i64: 1>, of = 3 : i64}}

// -----

// expected-error @below {{expected 'hone.inputs' to say of the inputs of a matrix which ones of how many they were}}
hone.param @w : tensor<3x2xf32> = dense<1.0> : tensor<3x2xf32> {hone.inputs = {kept = array<i64: 0, 1, 1, 2>, of = 3 : i64}}

// -----

// expected-error @below {{expected 'hone.encoding' to be an encoding on a hone.param}}
hone.param @w : tensor<1xf32> = dense<1.0> : tensor<1xf32> {hone.encoding = "few bits"}

// -----

// expected-error @below {{expected 'hone.limits' to be an array of {most, sizes, table} on a function}}
func.func private @f() attributes {hone.limits = [{most = 3 : i64, table = "t"}]}

// -----

// expected-error @below {{unsupported attribute 'hone.other' of the hone dialect; supported: hone.channel_scales, hone.encoding, hone.input_rotation, hone.inputs, hone.joined, hone.limits, hone.model, hone.retention, hone.shards}}
func.func private @f() attributes {hone.other}

// -----

// @stored_c1_type
// expected-error @below {{unsupported type of stored elements 'f64'; supported: f32, f16, bf16}}
func.func private @f() -> tensor<4x8xf32, #hone.stored<f64>>

// -----

// @stored_c2_elements
// expected-error @below {{expected the elements of a tensor stored as 'f32' to be f32, but got 'f16'}}
func.func private @f() -> tensor<4x8xf16, #hone.stored<f32>>

// -----

// @stored_c2_not_the_same
// expected-error @below {{expected the elements of a tensor stored as 'bf16' to be f32 or the same, but got 'f16'}}
func.func private @f() -> tensor<4x8xf16, #hone.stored<bf16>>

// -----

// @stored_c3_dimensions
// expected-error @below {{expected a tensor that is stored transposed to have at least 2 dimensions, but got 1}}
func.func private @f() -> tensor<8xf32, #hone.stored<f32, transposed>>

// -----

// @external_c1_file
// expected-error @below {{expected the name of the file not to be empty}}
hone.param @p : tensor<1xf32> = #hone.external<"", 0, 4>

// -----

// @external_c2_offset
// expected-error @below {{expected the offset to be 0 or more, but got -4}}
hone.param @p : tensor<1xf32> = #hone.external<"f", -4, 4>

// -----

// @external_c3_bytes
// expected-error @below {{expected the number of bytes to be 0 or more, but got -4}}
hone.param @p : tensor<1xf32> = #hone.external<"f", 0, -4>

// -----

// @sliding_c1_window
// expected-error @below {{expected the window to be positive, but got 0}}
func.func private @f() attributes {pattern = #hone.sliding<window = 0>}

// -----

// @all_of_c1_patterns
// expected-error @below {{expected at least 2 patterns, but got 1}}
func.func private @f() attributes {pattern = #hone.all_of<#hone.full>}

// -----

// @converted_c1_storage
// expected-error @below {{expected the storage that is converted to be dense elements, a resource, #hone.external, #hone.stacked or a dictionary of planes, but got "bytes"}}
hone.param @p : tensor<1x1xf32, #hone.stored<bf16>> = #hone.converted<tensor<1x1xf32> = "bytes">

// -----

// @joined_names
// expected-error @below {{expected 'hone.joined' to be the names of the parameters that one joins, as strings}}
hone.param @p : tensor<3x2xf32> = dense<0.0> : tensor<3x2xf32> {hone.joined = ["a", "b"]}

// -----

// @stacked_c1_size
// expected-error @below {{expected what is stacked to be plain elements of a static shape, but got 'tensor<?x2xf32>'}}
hone.param @p : tensor<2x2xf32> = #hone.stacked<tensor<?x2xf32> = [dense<0.0> : tensor<2x2xf32>]>

// -----

// @stacked_c1_encoding
// expected-error @below {{expected what is stacked to be plain elements of a static shape, but got 'tensor<1x2xf32, #hone.affine<bits = 4>>'}}
hone.param @p : tensor<1x2xf32> = #hone.stacked<tensor<1x2xf32, #hone.affine<bits = 4>> = [dense<0.0> : tensor<1x2xf32>]>

// -----

// @stacked_c2_no_part
// expected-error @below {{expected each of the parts to be the 8 bytes of 'tensor<1x2xf32>', but got []}}
hone.param @p : tensor<1x2xf32> = #hone.stacked<tensor<1x2xf32> = []>

// -----

// @stacked_c2_bytes
// expected-error @below {{expected each of the parts to be the 8 bytes of 'tensor<1x2xf32>', but got}}
hone.param @p : tensor<2x2xf32> = #hone.stacked<tensor<1x2xf32> = [#hone.external<"a", 0, 8>, #hone.external<"a", 8, 4>]>

// -----

// @stacked_c2_elements
// expected-error @below {{expected each of the parts to be the 8 bytes of 'tensor<1x2xf32, #hone.stored<f32, transposed>>', but got}}
hone.param @p : tensor<1x2xf32> = #hone.stacked<tensor<1x2xf32, #hone.stored<f32, transposed>> = [dense<0.0> : tensor<1x2xf32>]>

// -----

// @nm_c1_inputs
// expected-error @below {{expected n of m inputs to be 1 to m - 1 of 2, 4, 8 or 16, but got 2 of 6}}
func.func private @f() -> tensor<4x12xf32, #hone.nm<2:6, of = f32>>

// -----

// @nm_c1_kept
// expected-error @below {{expected n of m inputs to be 1 to m - 1 of 2, 4, 8 or 16, but got 4 of 4}}
func.func private @f() -> tensor<4x8xf32, #hone.nm<4:4, of = f32>>

// -----

// @nm_c2_type
// expected-error @below {{unsupported encoding of kept elements i8; supported: f32, f16, bf16, #hone.affine of 2, 4 or 8 bits that is not transposed}}
func.func private @f() -> tensor<4x8xf32, #hone.nm<2:4, of = i8>>

// -----

// @nm_c2_transposed
// expected-error @below {{unsupported encoding of kept elements #hone.affine<bits = 8, transposed = true>; supported:}}
func.func private @f() -> tensor<4x8xf32, #hone.nm<2:4, of = #hone.affine<bits = 8, transposed = true>>>

// -----

// @nm_c3_dimensions
// expected-error @below {{expected a tensor of which n of m inputs are stored to have 2 dimensions, but got 3}}
func.func private @f() -> tensor<2x4x8xf32, #hone.nm<2:4, of = f32>>

// -----

// @nm_c3_elements
// expected-error @below {{expected the elements of a tensor stored as 'bf16' to be f32 or the same, but got 'f16'}}
func.func private @f() -> tensor<4x8xf16, #hone.nm<2:4, of = bf16>>

// -----

// @nm_c4_inputs
// expected-error @below {{expected the number of inputs to be a multiple of 4, but got 10}}
func.func private @f() -> tensor<4x10xf32, #hone.nm<2:4, of = f32>>

// -----

// @affine_c1_bits
// expected-error @below {{unsupported number of bits 7; supported: 2, 3, 4, 5, 6, 8}}
func.func private @f() -> tensor<4x8xf32, #hone.affine<bits = 7>>

// -----

// @affine_c2_group
// expected-error @below {{expected the codes of a group to fill whole bytes, but got a group of 3}}
func.func private @f() -> tensor<4x8xf32, #hone.affine<bits = 4, group = 3>>

// -----

// @affine_c2_group_of_three_bits
// expected-error @below {{expected the codes of a group to fill whole bytes, but got a group of 4}}
func.func private @f() -> tensor<4x8xf32, #hone.affine<bits = 3, group = 4>>

// -----

// @affine_c2_negative_group
// expected-error @below {{expected the codes of a group to fill whole bytes, but got a group of -8}}
func.func private @f() -> tensor<4x8xf32, #hone.affine<bits = 4, group = -8>>

// -----

// @affine_c3_scales
// expected-error @below {{unsupported type of scales 'bf16'; supported: f32, f16}}
func.func private @f() -> tensor<4x8xf32, #hone.affine<bits = 4, scales = bf16>>

// -----

// @affine_c4_transposed
// expected-error @below {{expected codes that are stored transposed to have 8 bits, but got 4}}
func.func private @f() -> tensor<4x8xf32, #hone.affine<bits = 4, transposed = true>>

// -----

// @affine_c5_activations
// expected-error @below {{unsupported number of bits of activations 16; supported: 0, 8}}
func.func private @f() -> tensor<4x8xf32, #hone.affine<bits = 4, activations = 16>>

// -----

// @affine_c6_group_with_activations
// expected-error @below {{expected groups of at most 512 with rounded activations, but got 1024}}
func.func private @f() -> tensor<4x8xf32, #hone.affine<bits = 4, group = 1024, activations = 8>>

// -----

// @affine_c7_dimensions
// expected-error @below {{expected a tensor of quantized elements to have 2 dimensions and elements of f32, f16 or bf16, but got 1 and 'f32'}}
func.func private @f() -> tensor<4xf32, #hone.affine<bits = 4>>

// -----

// @affine_c8_at_least
// expected-error @below {{expected a number of bits of activations with atLeast}}
func.func private @f() -> tensor<4x8xf32, #hone.affine<bits = 4, atLeast = true>>

// -----

// @dense_sparse_c1_base
// expected-error @below {{unsupported encoding #hone.stored<f16> beside outliers; supported: #hone.affine, with atLeast where it has activations, and #hone.codebook}}
func.func private @f() -> tensor<4x8xf32, #hone.dense_sparse<of = #hone.stored<f16>, outliers = 16>>

// -----

// @dense_sparse_c1_activations
// expected-error @below {{unsupported encoding #hone.affine<bits = 4, group = 4, activations = 8> beside outliers; supported: #hone.affine, with atLeast where it has activations, and #hone.codebook}}
func.func private @f() -> tensor<4x8xf32, #hone.dense_sparse<of = #hone.affine<bits = 4, group = 4, activations = 8>, outliers = 16>>

// -----

// @dense_sparse_c2_none
// expected-error @below {{expected the number of outliers to be a multiple of 16 from 16 to 2147483647, but got 0}}
func.func private @f() -> tensor<4x8xf32, #hone.dense_sparse<of = #hone.affine<bits = 4>, outliers = 0>>

// -----

// @dense_sparse_c2_part
// expected-error @below {{expected the number of outliers to be a multiple of 16 from 16 to 2147483647, but got 24}}
func.func private @f() -> tensor<4x8xf32, #hone.dense_sparse<of = #hone.affine<bits = 4>, outliers = 24>>

// -----

// @dense_sparse_c3_base
// expected-error @below {{expected a tensor of quantized elements to have 2 dimensions and elements of f32, f16 or bf16, but got 1 and 'f32'}}
func.func private @f() -> tensor<4xf32, #hone.dense_sparse<of = #hone.affine<bits = 4>, outliers = 16>>

// -----

// @dense_sparse_c3_columns
// expected-error @below {{expected a tensor with outliers to have at most 65536 columns, but got 65537}}
func.func private @f() -> tensor<4x65537xf32, #hone.dense_sparse<of = #hone.affine<bits = 4>, outliers = 16>>

// -----

// @dense_sparse_c3_elements
// expected-error @below {{expected a tensor with 144 outliers to have as many elements in panels of 16 rows, but got 128}}
func.func private @f() -> tensor<4x8xf32, #hone.dense_sparse<of = #hone.affine<bits = 4>, outliers = 144>>

// -----

// @dense_sparse_c4_elements
// expected-error @below {{expected a tensor with outliers beside a codebook to have elements of f32, but got 'f16'}}
func.func private @f() -> tensor<4x8xf16, #hone.dense_sparse<of = #hone.codebook<bits = 4>, outliers = 16>>

// -----

// @codebook_c1_bits
// expected-error @below {{unsupported number of bits 5 of a codebook; supported: 2, 3, 4}}
func.func private @f() -> tensor<4x8xf32, #hone.codebook<bits = 5>>

// -----

// @codebook_c2_values
// expected-error @below {{unsupported type of centroids 'f64' of a codebook; supported: f32, f16, bf16}}
func.func private @f() -> tensor<4x8xf32, #hone.codebook<bits = 4, values = f64>>

// -----

// @codebook_c3_dimensions
// expected-error @below {{expected a tensor of indices into codebooks to have 2 dimensions and elements of f32, f16 or bf16, but got 1 and 'f32'}}
func.func private @f() -> tensor<4xf32, #hone.codebook<bits = 4>>

// -----

// @quantized_kv_c1_bits
// expected-error @below {{unsupported number of bits 3 of quantized KV; supported: 4, 8}}
func.func private @f() -> tensor<?x4x?x8xf32, #hone.quantized_kv<bits = 3>>

// -----

// @quantized_kv_c2_elements
// expected-error @below {{expected a tensor of quantized KV to have at least 1 dimension and elements of f32, but got 4 and 'bf16'}}
func.func private @f() -> tensor<?x4x?x8xbf16, #hone.quantized_kv<bits = 8>>

// -----

// @blocks_c1_sizes
// expected-error @below {{expected size and queries to be positive, but got 0 and 1}}
func.func private @f() attributes {pattern = #hone.blocks<size = 0>}

// -----

// Verifiers of encodings are called for element types that cannot be read, too.
// @stored_of_unknown_elements
// expected-error @below {{undefined symbol alias id 'f32'}}
func.func private @f() -> tensor<4x16x!f32, #hone.stored<f16>>

// -----

// @affine_of_unknown_elements
// expected-error @below {{undefined symbol alias id 'f32'}}
func.func private @f() -> tensor<4x16x!f32, #hone.affine<bits = 8>>

// -----

// @codebook_of_unknown_elements
// expected-error @below {{undefined symbol alias id 'f32'}}
func.func private @f() -> tensor<4x16x!f32, #hone.codebook<bits = 4>>

// -----

// @quantized_kv_of_unknown_elements
// expected-error @below {{undefined symbol alias id 'f32'}}
func.func private @f() -> tensor<4x16x!f32, #hone.quantized_kv<bits = 8>>

// -----

// @nm_of_unknown_elements
// expected-error @below {{undefined symbol alias id 'f32'}}
func.func private @f() -> tensor<4x16x!f32, #hone.nm<2:4, of = f32>>

// -----

// @dense_sparse_of_unknown_elements
// expected-error @below {{undefined symbol alias id 'f32'}}
func.func private @f() -> tensor<4x16x!f32, #hone.dense_sparse<of = #hone.affine<bits = 4>, outliers = 16>>
