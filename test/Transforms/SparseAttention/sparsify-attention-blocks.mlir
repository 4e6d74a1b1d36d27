// RUN: hone-opt %s --hone-sparsify-attention="sinks=64 window=128 blocks=4" --split-input-file | FileCheck %s
// RUN: hone-opt %s --hone-sparsify-attention="sinks=64 window=128 blocks=4" --split-input-file --remarks-filter="hone-sparsify-attention" 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: hone-opt %s --hone-sparsify-attention="window=128 blocks=4 bounds=true" --split-input-file --remarks-filter="hone-sparsify-attention" 2>%t.remarks | FileCheck %s --check-prefix=BOUNDS
// RUN: FileCheck %s --check-prefix=BOUNDS-REMARK --input-file=%t.remarks
// RUN: not hone-opt %s --split-input-file --hone-sparsify-attention="window=127 blocks=1" 2>&1 | FileCheck %s --check-prefix=WINDOW
// RUN: not hone-opt %s --split-input-file --hone-sparsify-attention="blocks=-1" 2>&1 | FileCheck %s --check-prefix=COUNT
// WINDOW: expected window to be at least 128, two blocks, but got 127
// COUNT: expected blocks to be 0 to 262144, but got -1

// Pooled keys are a slot of the state, extended where the keys are. A name that is taken is not used.
// CHECK:       hone.state @kv [{{.*}}, #hone.slot<"key.pooled_", tensor<?x2x?x2xf32>, axis = 2>]
// CHECK-LABEL: func @state
// CHECK:         %[[NEXT:.*]], %[[KEYS:.*]] = hone.kv_append %{{.*}}[0]
// CHECK:         %[[FRESH:.*]] = hone.pool_keys %[[KEYS]] of %{{.*}} key_begin(%[[PAD:.*]]) size(64)
// CHECK:         %[[POOLED_NEXT:.*]], %[[POOLED:.*]] = hone.kv_append %[[NEXT]][2], %[[FRESH]]
// CHECK:         %[[LAST:.*]], %[[VALUES:.*]] = hone.kv_append %[[POOLED_NEXT]][1]
// CHECK:         %[[SELECTED:.*]] = hone.select_blocks %[[Q:.*]], %[[POOLED]] from %{{.*}} to %{{.*}} size(64) scale(1.250000e-01) : (tensor<?x4x?x96xf32>, tensor<?x2x?x2xf32>, tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x2x?x4xi64>
// CHECK:         %[[LISTS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x2x?x9xi64>)
// CHECK:           tensor.extract %[[SELECTED]][
// CHECK:         hone.attention %[[Q]], %[[KEYS]], %[[VALUES]] pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 64>>, %[[LISTS]]) scale(1.250000e-01) key_begin(%[[PAD]])
// CHECK:         return %{{.*}}, %[[LAST]]
// REMARK-DAG: [Passed] SparseAttention {{.*}}"queries see the first 64 keys and the last 128, in blocks of 64, and 4 blocks between them by the mean of their keys"
// BOUNDS-REMARK: [Passed] SparseAttention {{.*}}"queries see the first 64 keys and the last 128, in blocks of 64, and 4 blocks between them by bounds of their keys"
// BOUNDS-DAG:  #hone.slot<"key.bounds", tensor<?x2x?x3xf32>, axis = 2>
// BOUNDS-DAG:  hone.pool_keys %{{.*}} of %{{.*}} key_begin(%{{.*}}) size(64) bounds
// BOUNDS-DAG:  hone.select_blocks %{{.*}} size(64) scale(1.250000e-01) bounds : (tensor<?x4x?x96xf32>, tensor<?x2x?x3xf32>
hone.state @kv [#hone.slot<"key", tensor<?x2x?x96xf32>, axis = 2>, #hone.slot<"key.pooled", tensor<?x2x?x96xf32>, axis = 2>]
func.func @state(%q: tensor<?x4x?x96xf32>, %k: tensor<?x2x?x96xf32>, %v: tensor<?x2x?x96xf32>, %pads: tensor<?xi32>, %s: !hone.kv<@kv>)
    -> (tensor<?x4x?x96xf32>, !hone.kv<@kv>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x96xf32> -> tensor<?x2x?x96xf32>
  %1, %values = hone.kv_append %0[1], %v : !hone.kv<@kv>, tensor<?x2x?x96xf32> -> tensor<?x2x?x96xf32>
  %pad = arith.extsi %pads : tensor<?xi32> to tensor<?xi64>
  %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.125) key_begin(%pad)
     : (tensor<?x4x?x96xf32>, tensor<?x2x?x96xf32>, tensor<?x2x?x96xf32>, tensor<?xi64>) -> tensor<?x4x?x96xf32>
  return %2, %1 : tensor<?x4x?x96xf32>, !hone.kv<@kv>
}

// -----

// Without a state all keys are pooled.
// CHECK-LABEL: func @no_state
// CHECK:         %[[POOLED:.*]] = hone.pool_keys %[[KEYS:.*]] of %{{.*}} size(64)
// CHECK:         hone.select_blocks %{{.*}}, %[[POOLED]] from %{{.*}} to %{{.*}} size(64) {{.*}} tensor<1x?xi64>, tensor<1x?xi64>
// CHECK:         hone.attention %{{.*}}, %[[KEYS]], %{{.*}} pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 64>>
func.func @no_state(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32> {
  %0 = hone.attention %q, %k, %v pattern(#hone.causal) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  return %0 : tensor<?x4x?x64xf32>
}

// -----

// CHECK-LABEL: func @others
// CHECK-NOT:     hone.pool_keys
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: it has a window of its own"
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: the size of its heads is not known"
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: its sequences have lengths of their own"
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: it does not extend the keys that it reads"
hone.state @kv [#hone.slot<"key", tensor<?x2x?x64xf32>, axis = 2>]
func.func @others(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %x: tensor<?x2x?x?xf32>, %lags: tensor<?xi64>, %s: !hone.kv<@kv>)
    -> (tensor<?x4x?x64xf32>, tensor<?x2x?x?xf32>) {
  %0 = hone.attention %q, %k, %k pattern(#hone.sliding<window = 512>) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  %1 = hone.attention %x, %x, %x pattern(#hone.causal) scale(0.125)
     : (tensor<?x2x?x?xf32>, tensor<?x2x?x?xf32>, tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %2 = hone.attention %0, %k, %k pattern(#hone.causal) scale(0.125) lags(%lags)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?xi64>) -> tensor<?x4x?x64xf32>
  %view = hone.kv_view %s[0] : !hone.kv<@kv> -> tensor<?x2x?x64xf32>
  %3 = hone.attention %2, %view, %view pattern(#hone.causal) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  return %3, %1 : tensor<?x4x?x64xf32>, tensor<?x2x?x?xf32>
}

// -----

// CHECK-LABEL: func @first_entry
// CHECK-NOT:     hone.pool_keys
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: several entries extend its keys"
hone.state @kv [#hone.slot<"key", tensor<?x2x?x64xf32>, axis = 2>]
func.func @first_entry(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %s: !hone.kv<@kv>) -> (tensor<?x4x?x64xf32>, !hone.kv<@kv>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %1 = hone.attention %q, %keys, %keys pattern(#hone.causal) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  return %1, %0 : tensor<?x4x?x64xf32>, !hone.kv<@kv>
}
func.func @second_entry(%k: tensor<?x2x?x64xf32>, %s: !hone.kv<@kv>) -> !hone.kv<@kv> {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  return %0 : !hone.kv<@kv>
}
