// RUN: hone-opt %s --hone-sparsify-attention="sinks=64 window=128 means share=0.9 least=0.25 similarity=0.5" | FileCheck %s
// RUN: hone-opt %s --hone-sparsify-attention="sinks=64 window=128 means share=0.9 least=0.25 similarity=0.5" --remarks-filter="hone-sparsify-attention" 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not hone-opt %s --hone-sparsify-attention="means least=1.5" 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: not hone-opt %s --hone-sparsify-attention="means similarity=2" 2>&1 | FileCheck %s --check-prefix=SIMILARITY
// RUN: hone-opt %s --hone-sparsify-attention="sinks=64 window=128 means share=0.9 blocks=3 bounds" | FileCheck %s --check-prefix=BOTH
// RUN: hone-opt %s --hone-sparsify-attention="sinks=64 window=128 means share=0.9 blocks=3 bounds" --remarks-filter="hone-sparsify-attention" 2>&1 | FileCheck %s --check-prefix=BOTH-REMARK
// LEAST: expected least to be 0 to 1 and similarity -1 to 1, but got 1.50 and 0.10
// SIMILARITY: expected least to be 0 to 1 and similarity -1 to 1, but got 0.00 and 2.00

// A hundred and twenty-eight queries share a list: one block of sinks, five of the window, and as many as there are of what is selected.
// CHECK-LABEL: func @state
// CHECK:         %[[NEXT:.*]], %[[KEYS:.*]] = hone.kv_append %{{.*}}[0]
// CHECK:         %[[THRESHOLDS:.*]] = arith.constant dense<{{\[}}[2.500000e-01, 0.899999976, 5.000000e-01]]> : tensor<1x3xf32>
// CHECK:         %[[SELECTED:.*]] = hone.select_means %[[Q:.*]], %[[KEYS]] by %[[THRESHOLDS]] from %{{.*}} to %{{.*}} size(64) queries(128) scale(1.250000e-01) : (tensor<?x4x?x96xf32>, tensor<?x2x?x96xf32>, tensor<1x3xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x?xi64>
// CHECK:         %[[LISTS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x2x?x?xi64>)
// CHECK:           tensor.extract %[[SELECTED]][
// CHECK:         hone.attention %[[Q]], %[[KEYS]], %{{.*}} pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 64, queries = 128>>, %[[LISTS]])
// REMARK: [Passed] SparseAttention {{.*}}"queries see the first 64 keys and the last 128, in blocks of 64, and in prompts the blocks between them that have 90% of their attention by mean keys, 25% of all blocks at least, and those whose keys have a mean cosine below 0.50"

// With blocks, each query has a list of its own, that of its block of queries or of itself; the latter have no candidates where there are many queries.
// BOTH-LABEL: func @state
// BOTH:         %[[MANY:.*]] = hone.select_means
// BOTH:         arith.cmpi sle, %{{.*}}, %c64
// BOTH:         %[[FEW:.*]] = hone.select_blocks {{.*}} bounds
// BOTH-SAME:      -> tensor<?x2x?x3xi64>
// BOTH:         %[[LISTS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x2x?x?xi64>)
// BOTH-COUNT-2:   tensor.extract
// BOTH:           arith.select
// BOTH:         hone.attention %{{.*}} pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 64>>, %{{.*}})
// BOTH-REMARK: in prompts the blocks between them that have 90% of their attention by mean keys, 0% of all blocks at least, and those whose keys have a mean cosine below 0.10, and after prompts 3 blocks between them by bounds of their keys"
hone.state @kv [#hone.slot<"key", tensor<?x2x?x96xf32>, axis = 2>]
func.func @state(%q: tensor<?x4x?x96xf32>, %k: tensor<?x2x?x96xf32>, %s: !hone.kv<@kv>) -> (tensor<?x4x?x96xf32>, !hone.kv<@kv>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x96xf32> -> tensor<?x2x?x96xf32>
  %1 = hone.attention %q, %keys, %keys pattern(#hone.causal) scale(0.125)
     : (tensor<?x4x?x96xf32>, tensor<?x2x?x96xf32>, tensor<?x2x?x96xf32>) -> tensor<?x4x?x96xf32>
  return %1, %0 : tensor<?x4x?x96xf32>, !hone.kv<@kv>
}
