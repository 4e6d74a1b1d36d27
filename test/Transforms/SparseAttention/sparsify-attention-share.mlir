// RUN: hone-opt %s --hone-sparsify-attention="sinks=64 window=128 share=0.9" --split-input-file | FileCheck %s
// RUN: hone-opt %s --hone-sparsify-attention="sinks=64 window=128 share=0.9" --split-input-file --remarks-filter="hone-sparsify-attention" 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not hone-opt %s --split-input-file --hone-sparsify-attention="share=1.1" 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: not hone-opt %s --split-input-file --hone-sparsify-attention="share=0.5 block=40" 2>&1 | FileCheck %s --check-prefix=BLOCK
// SHARE: expected share to be 0 to 1, but got 1.10
// BLOCK: expected block to be a multiple of 16 with share, but got 40

// Sixty-four queries share a list: two blocks of sinks, as the first may begin in one, four of the window, and as many as there are of what is selected.
// CHECK-LABEL: func @state
// CHECK:         %[[NEXT:.*]], %[[KEYS:.*]] = hone.kv_append %{{.*}}[0]
// CHECK:         arith.ceildivsi
// CHECK:         %[[SELECTED:.*]] = hone.select_antidiagonals %[[Q:.*]], %[[KEYS]] from %{{.*}} to %{{.*}} key_begin(%{{.*}}) size(64) queries(64) stride(16) scale(1.250000e-01) share(0.899999976) : (tensor<?x4x?x96xf32>, tensor<?x2x?x96xf32>, tensor<?x?xi64>, tensor<?x?xi64>, tensor<?xi64>) -> tensor<?x2x?x?xi64>
// CHECK:         %[[LISTS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x2x?x?xi64>)
// CHECK:           tensor.extract %[[SELECTED]][
// CHECK:         hone.attention %[[Q]], %[[KEYS]], %{{.*}} pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 64, queries = 64>>, %[[LISTS]])
// REMARK-DAG: [Passed] SparseAttention {{.*}}"queries see the first 64 keys and the last 128, in blocks of 64, and in prompts the blocks between them that have 90% of their attention"
hone.state @kv [#hone.slot<"key", tensor<?x2x?x96xf32>, axis = 2>]
func.func @state(%q: tensor<?x4x?x96xf32>, %k: tensor<?x2x?x96xf32>, %pad: tensor<?xi64>, %s: !hone.kv<@kv>) -> (tensor<?x4x?x96xf32>, !hone.kv<@kv>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x96xf32> -> tensor<?x2x?x96xf32>
  %1 = hone.attention %q, %keys, %keys pattern(#hone.causal) scale(0.125) key_begin(%pad)
     : (tensor<?x4x?x96xf32>, tensor<?x2x?x96xf32>, tensor<?x2x?x96xf32>, tensor<?xi64>) -> tensor<?x4x?x96xf32>
  return %1, %0 : tensor<?x4x?x96xf32>, !hone.kv<@kv>
}

// -----

// CHECK-LABEL: func @others
// CHECK-NOT:     hone.select_antidiagonals
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: it has a window of its own"
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: its sequences have lengths of their own"
func.func @others(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %pad: tensor<?xi64>) -> tensor<?x4x?x64xf32> {
  %0 = hone.attention %q, %k, %k pattern(#hone.sliding<window = 512>) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  %1 = hone.attention %0, %k, %k pattern(#hone.causal) scale(0.125) lags(%pad)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?xi64>) -> tensor<?x4x?x64xf32>
  return %1 : tensor<?x4x?x64xf32>
}
