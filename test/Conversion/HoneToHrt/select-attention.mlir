// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cpu --canonicalize | FileCheck %s --enable-var-scope --check-prefixes=CHECK,CPU
// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda --canonicalize | FileCheck %s --enable-var-scope --check-prefixes=CHECK,CUDA

!q = tensor<?x4x?x32xf32>
!k = tensor<?x2x?x32xf32>
!lse = tensor<?x4x?xf32>

// lse is an output beside the result, in front of it.
// CHECK-LABEL: @lse
// CPU: %[[R:.*]]:2 = hrt.kernel "hone.attention.f32" %{{.*}} ints [1, -1, 0, 0] floats {{.*}} outs(%{{.*}}, %{{.*}} : tensor<?x4x?xf32>, tensor<?x4x?x32xf32>)
// CUDA: %[[R:.*]]:2 = hrt.kernel "cuda.attention.f32" %{{.*}} ints [1, -1, 0, 0, 0] floats {{.*}} outs(%{{.*}}, %{{.*}} : tensor<?x4x?xf32>, tensor<?x4x?x32xf32>)
// CHECK: materialize_in_destination %[[R]]#1
// CHECK: materialize_in_destination %[[R]]#0
func.func @lse(%q: !q, %k: !k) -> (!q, !lse) {
  %0, %lse = hone.attention %q, %k, %k pattern(#hone.causal) scale(0.5) : (!q, !k, !k) -> (!q, !lse)
  return %0, %lse : !q, !lse
}

// CHECK-LABEL: @blocks
// CHECK: hrt.input %{{.*}}[2]
// CHECK: %[[LISTS:.*]] = bufferization.to_tensor
// CHECK: hrt.kernel "{{hone|cuda}}.attention.f32" %{{.*}} ints [1, -1, 64, 16{{.*}}] floats {{.*}} %[[LISTS]], %{{.*}}, %{{.*}} : {{.*}}) outs(
func.func @blocks(%q: !q, %k: !k, %lists: tensor<1x2x?x8xi64>) -> !q {
  %0 = hone.attention %q, %k, %k pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 64, queries = 16>>, %lists) scale(0.5)
    : (!q, !k, !k, tensor<1x2x?x8xi64>) -> !q
  return %0 : !q
}

// CHECK-LABEL: @tree
// CHECK: hrt.kernel "{{hone|cuda}}.attention.f32" %{{.*}} ints [0, -1, 0, 0{{.*}}] {{.*}}tensor<?x?xi64>, tensor<f32>, tensor<1x?x?xi64>, tensor<f32>) outs(
func.func @tree(%q: !q, %k: !k, %words: tensor<1x?x?xi64>, %positions: tensor<?x?xi64>) -> !q {
  %0 = hone.attention %q, %k, %k pattern(#hone.tree, %words) scale(0.5) key_positions(%positions)
    : (!q, !k, !k, tensor<?x?xi64>, tensor<1x?x?xi64>) -> !q
  return %0 : !q
}

// Two lists, or integers that are no i64, are no kernel's.
// CHECK-LABEL: @decomposed
// CHECK-NOT: attention.f32
func.func @decomposed(%q: !q, %k: !k, %lists: tensor<1x1x?x8xi64>, %words: tensor<1x1x?x8xi32>) -> !q {
  %0 = hone.attention %q, %k, %k pattern(#hone.all_of<#hone.blocks<size = 64>, #hone.blocks<size = 16>>, %lists, %lists) scale(0.5)
    : (!q, !k, !k, tensor<1x1x?x8xi64>, tensor<1x1x?x8xi64>) -> !q
  %1 = hone.attention %0, %k, %k pattern(#hone.blocks<size = 64>, %words) scale(0.5) : (!q, !k, !k, tensor<1x1x?x8xi32>) -> !q
  return %1 : !q
}
