// RUN: hone-opt %s --hone-sparsify-attention="sinks=64 window=128" --split-input-file | FileCheck %s
// RUN: hone-opt %s --hone-sparsify-attention="window=256" --split-input-file --remarks-filter="hone-sparsify-attention" 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not hone-opt %s --hone-sparsify-attention="window=0" 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: expected window and block to be 1 to 16777216 and sinks 0 to 16777216, but got 0, 64 and 64

// One block of sinks and three of the window, of which the first may have a part alone.
// CHECK-LABEL: func @causal
// CHECK:         tensor.empty(%{{.*}}) : tensor<1x1x?x4xi64>
// CHECK:         %[[LISTS:.*]] = linalg.generic
// CHECK:         hone.attention %{{.*}} pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 64>>, %[[LISTS]])
// REMARK-DAG: [Passed] SparseAttention {{.*}}"queries see the first 64 keys and the last 256, in blocks of 64"
func.func @causal(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32> {
  %0 = hone.attention %q, %k, %v pattern(#hone.causal) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  return %0 : tensor<?x4x?x64xf32>
}

// -----

// Padding makes lists those of sequences, and one more block may have sinks.
// CHECK-LABEL: func @padded
// CHECK:         tensor.empty(%{{.*}}, %{{.*}}) : tensor<?x1x?x5xi64>
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<?xi64>)
// CHECK-NOT:     tensor.extract
// CHECK:         hone.attention %{{.*}} pattern(#hone.all_of<#hone.sliding<window = 512>, #hone.blocks<size = 64>>, %{{.*}})
func.func @padded(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x64xf32>, %pad: tensor<?xi64>)
    -> tensor<?x4x?x64xf32> {
  %0 = hone.attention %q, %k, %v pattern(#hone.sliding<window = 512>) scale(0.125) key_begin(%pad)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?xi64>) -> tensor<?x4x?x64xf32>
  return %0 : tensor<?x4x?x64xf32>
}

// -----

// CHECK-LABEL: func @others
// CHECK:         pattern(#hone.full)
// CHECK:         pattern(#hone.sliding<window = 128>)
// CHECK:         pattern(#hone.causal) {{.*}} key_positions
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: it is neither causal nor sliding"
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: its own window is as small"
// REMARK-DAG: [Missed] SparseAttention {{.*}}"attention stays dense: its keys have positions of their own"
func.func @others(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x64xf32>, %at: tensor<?x?xi64>)
    -> tensor<?x4x?x64xf32> {
  %0 = hone.attention %q, %k, %v pattern(#hone.full) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  %1 = hone.attention %0, %k, %v pattern(#hone.sliding<window = 128>) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  %2 = hone.attention %1, %k, %v pattern(#hone.causal) scale(0.125) key_positions(%at)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x?xi64>) -> tensor<?x4x?x64xf32>
  return %2 : tensor<?x4x?x64xf32>
}
