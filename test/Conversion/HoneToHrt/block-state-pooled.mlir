// RUN: hone-opt %s -hone-block-state -split-input-file | FileCheck %s
// RUN: hone-opt %s -hone-block-state -hone-convert-hone-to-hrt -split-input-file | FileCheck %s --check-prefix=HRT

// Keys that are pooled too are in blocks, unless the kernel does not know the type of key_begin; pooled keys stay as they are.
// CHECK:       hone.state @pooled [#hone.slot<"key", tensor<?x2x?x8xf32, #hrt.key_blocks>, axis = 2>, #hone.slot<"pooled", tensor<?x2x?x1xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xf32, #hrt.value_blocks>, axis = 2>]
// HRT-LABEL: @pooled_keys
// HRT:         hrt.kernel "hone.pool_keys.blocks.f32"
// HRT:         hrt.kernel "hone.attention.blocks.f32"
// HRT:         hrt.kernel "hone.select_blocks.f32"
hone.state @pooled [#hone.slot<"key", tensor<?x2x?x8xf32>, axis = 2>, #hone.slot<"pooled", tensor<?x2x?x1xf32>, axis = 2>,
                    #hone.slot<"value", tensor<?x2x?x8xf32>, axis = 2>]
func.func @pooled_keys(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %begin: tensor<1x?xi64>, %s: !hone.kv<@pooled>)
    -> (tensor<?x2x?x8xf32>, tensor<?x2x?x3xi64>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@pooled>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
  %two = arith.constant 2 : index
  %fresh = tensor.dim %k, %two : tensor<?x2x?x8xf32>
  %rows = hone.pool_keys %keys of %fresh size(64) : (tensor<?x2x?x8xf32>, index) -> tensor<?x2x?x1xf32>
  %1, %pooled = hone.kv_append %0[1], %rows : !hone.kv<@pooled>, tensor<?x2x?x1xf32> -> tensor<?x2x?x1xf32>
  %2, %values = hone.kv_append %1[2], %k : !hone.kv<@pooled>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
  %3 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(1.0)
     : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %4 = hone.select_blocks %q, %pooled from %begin to %begin size(64) scale(1.0)
     : (tensor<?x2x?x8xf32>, tensor<?x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x3xi64>
  return %3, %4 : tensor<?x2x?x8xf32>, tensor<?x2x?x3xi64>
}

// -----

// CHECK:       hone.state @narrow [#hone.slot<"key", tensor<?x2x?x8xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xf32>, axis = 2>]
// HRT-LABEL: @narrow_begin
// HRT-NOT:     hone.pool_keys
// HRT:         hrt.kernel "hone.attention.f32"
hone.state @narrow [#hone.slot<"key", tensor<?x2x?x8xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xf32>, axis = 2>]
func.func @narrow_begin(%q: tensor<?x2x?x8xf32>, %pad: tensor<?xi32>, %s: !hone.kv<@narrow>)
    -> (tensor<?x2x?x8xf32>, tensor<?x2x?x1xf32>) {
  %0, %keys = hone.kv_append %s[0], %q : !hone.kv<@narrow>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
  %1, %values = hone.kv_append %0[1], %q : !hone.kv<@narrow>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
  %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(1.0)
     : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %two = arith.constant 2 : index
  %fresh = tensor.dim %q, %two : tensor<?x2x?x8xf32>
  %3 = hone.pool_keys %keys of %fresh key_begin(%pad) size(64) : (tensor<?x2x?x8xf32>, index, tensor<?xi32>) -> tensor<?x2x?x1xf32>
  return %2, %3 : tensor<?x2x?x8xf32>, tensor<?x2x?x1xf32>
}
