// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK: #hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>
// CHECK-SAME: #hone.slot<"0.conv", tensor<?x?xbf16>, axis = 0>
// CHECK-SAME: #hone.slot<"gain", tensor<2xf32> = @gain>
module {
  hone.param @gain : tensor<2xf32> = dense<1.0> : tensor<2xf32>
  hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>,
                  #hone.slot<"0.conv", tensor<?x?xbf16>, axis = 0>, #hone.slot<"gain", tensor<2xf32> = @gain>]
  // CHECK: tensor<4x8xf32, #hone.stored<f32>>
  func.func private @plain() -> tensor<4x8xf32, #hone.stored<f32>>
  // CHECK: tensor<2x4x8xf32, #hone.stored<bf16, transposed>>
  func.func private @swapped() -> tensor<2x4x8xf32, #hone.stored<bf16, transposed>>
  // CHECK: tensor<4x8xf16, #hone.stored<f16, transposed>>
  func.func private @half() -> tensor<4x8xf16, #hone.stored<f16, transposed>>
  // CHECK: tensor<4x8xf32, #hone.nm<2:4, of = bf16>>
  func.func private @kept() -> tensor<4x8xf32, #hone.nm<2:4, of = bf16>>
  // CHECK: tensor<4x8xf32, #hone.nm<1:8, of = #hone.affine<bits = 4, group = 4>>>
  func.func private @kept_codes() -> tensor<4x8xf32, #hone.nm<1:8, of = #hone.affine<bits = 4, group = 4>>>
  // CHECK: tensor<4x8xf32, #hone.affine<bits = 8, transposed = true>>
  func.func private @bytes() -> tensor<4x8xf32, #hone.affine<bits = 8, scales = f32, transposed = true>>
  // CHECK: tensor<4x8xf32, #hone.dense_sparse<of = #hone.affine<bits = 2, group = 4>, outliers = 48>>
  func.func private @outliers() -> tensor<4x8xf32, #hone.dense_sparse<outliers = 48, of = #hone.affine<bits = 2, group = 4>>>
  // CHECK: tensor<4x8xf32, #hone.affine<bits = 4, group = 4, scales = f16, hasZeros = true, activations = 8, atLeast = true>>
  func.func private @nibbles() -> tensor<4x8xf32, #hone.affine<atLeast = true, activations = 8, hasZeros = true, group = 4, scales = f16, bits = 4>>
  // CHECK: tensor<4x8xf32, #hone.codebook<bits = 4>>
  func.func private @indices() -> tensor<4x8xf32, #hone.codebook<bits = 4, values = bf16>>
  // CHECK: tensor<4x8xf16, #hone.codebook<bits = 3, values = f16>>
  func.func private @halves() -> tensor<4x8xf16, #hone.codebook<values = f16, bits = 3>>
  // CHECK: tensor<4x8xf32, #hone.dense_sparse<of = #hone.codebook<bits = 3>, outliers = 16>>
  func.func private @missing() -> tensor<4x8xf32, #hone.dense_sparse<of = #hone.codebook<bits = 3>, outliers = 16>>
  // CHECK: tensor<4x9xf32, #hone.affine<bits = 3, group = 8>>
  func.func private @straddling() -> tensor<4x9xf32, #hone.affine<bits = 3, group = 8>>
  // CHECK: tensor<?x4x?x8xf32, #hone.quantized_kv<bits = 8>>
  func.func private @quantized_kv() -> tensor<?x4x?x8xf32, #hone.quantized_kv<bits = 8>>
  // CHECK: #hone.external<"a \22quoted\22 name", 0, 0>
  func.func private @nowhere() attributes {where = #hone.external<"a \22quoted\22 name", 0, 0>}
  // CHECK: #hone.all_of<#hone.full, #hone.causal, #hone.sliding<window = 8>, #hone.prefix_causal>
  func.func private @pattern() attributes {
    pattern = #hone.all_of<#hone.full, #hone.causal, #hone.sliding<window = 8>, #hone.prefix_causal>
  }
  // CHECK: #hone.all_of<#hone.blocks<size = 64>, #hone.blocks<size = 16, queries = 8>, #hone.tree>
  func.func private @lists() attributes {
    pattern = #hone.all_of<#hone.blocks<size = 64, queries = 1>, #hone.blocks<queries = 8, size = 16>, #hone.tree>
  }
}
