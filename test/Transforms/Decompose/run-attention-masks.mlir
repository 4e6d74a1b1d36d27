// RUN: %lower %s | %run_main | FileCheck %s

// A query of zeros has the same attention probability for all keys that it sees, so the result is the mean of their values, which
// are 1, 2, 4, 8, and lse is the logarithm of their number.

!q = tensor<1x2x4x1xf32>
!k = tensor<1x1x4x1xf32>
!lse = tensor<1x2x4xf32>

func.func private @print(%0: !q, %1: !lse) {
  %2 = tensor.cast %0 : !q to tensor<*xf32>
  %3 = tensor.cast %1 : !lse to tensor<*xf32>
  call @printMemrefF32(%2) : (tensor<*xf32>) -> ()
  call @printMemrefF32(%3) : (tensor<*xf32>) -> ()
  return
}

// Heads have their lists: the first sees blocks 0, 1, none and 1 of two keys; the second all, and none twice.
func.func private @lists(%q: !q, %k: !k, %sinks: tensor<2xf32>) {
  // CHECK: data =
  // CHECK-NEXT: [1.5]
  // CHECK-NEXT: [6]
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [6]
  // CHECK: [3.75]
  // CHECK-NEXT: [3.75]
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [0]
  // CHECK: data =
  // CHECK: 0.693147, 0.693147, -inf, 0.693147
  // CHECK: 1.38629, 1.38629, -inf, -inf
  %lists = arith.constant dense<[[[[0, -1], [1, -1], [-1, -1], [-1, 1]], [[1, 0], [0, 1], [-1, -1], [-1, -1]]]]> : tensor<1x2x4x2xi64>
  %0, %lse0 = hone.attention %q, %k, %k pattern(#hone.blocks<size = 2>, %lists) scale(1.0)
    : (!q, !k, !k, tensor<1x2x4x2xi64>) -> (!q, !lse)
  call @print(%0, %lse0) : (!q, !lse) -> ()
  // Causality beside it, a list for two queries, and a sink that counts as one key more in the result.
  // CHECK: data =
  // CHECK-NEXT: [0.5]
  // CHECK-NEXT: [1]
  // CHECK-NEXT: [2]
  // CHECK-NEXT: [4]
  // CHECK: data =
  // CHECK: 0, 0.693147, 0, 0.693147
  %pairs = arith.constant dense<[[[[0], [1]]]]> : tensor<1x1x2x1xi64>
  %1, %lse1 = hone.attention %q, %k, %k pattern(#hone.all_of<#hone.causal, #hone.blocks<size = 2, queries = 2>>, %pairs) scale(1.0)
    sinks(%sinks) : (!q, !k, !k, tensor<2xf32>, tensor<1x1x2x1xi64>) -> (!q, !lse)
  call @print(%1, %lse1) : (!q, !lse) -> ()
  return
}

// Three draft tokens, two of them after the first; the key before them is seen by all.
func.func private @tree(%q: tensor<1x1x3x1xf32>, %k: !k) {
  // CHECK: data =
  // CHECK-NEXT: [1.5]
  // CHECK-NEXT: [2.33333]
  // CHECK-NEXT: [3.66667]
  %ancestors = arith.constant dense<[[[1], [3], [5]]]> : tensor<1x3x1xi64>
  %0 = hone.attention %q, %k, %k pattern(#hone.tree, %ancestors) scale(1.0)
    : (tensor<1x1x3x1xf32>, !k, !k, tensor<1x3x1xi64>) -> tensor<1x1x3x1xf32>
  %1 = tensor.cast %0 : tensor<1x1x3x1xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// A cache that was compacted: its second entry is dead, the others are at positions 3, 7 and 8, and so are the queries.
func.func private @positions(%q: !q, %k: !k) {
  %positions = arith.constant dense<[[3, -1, 7, 8]]> : tensor<1x4xi64>
  // CHECK: data =
  // CHECK-NEXT: [1]
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [2.5]
  // CHECK-NEXT: [4.33333]
  // CHECK: data =
  // CHECK: 0, -inf, 0.693147, 1.09861
  %0, %lse0 = hone.attention %q, %k, %k pattern(#hone.causal) scale(1.0) key_positions(%positions)
    : (!q, !k, !k, tensor<1x4xi64>) -> (!q, !lse)
  call @print(%0, %lse0) : (!q, !lse) -> ()
  // CHECK: data =
  // CHECK-NEXT: [1]
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [4]
  // CHECK-NEXT: [6]
  %1, %lse1 = hone.attention %q, %k, %k pattern(#hone.sliding<window = 4>) scale(1.0) key_positions(%positions)
    : (!q, !k, !k, tensor<1x4xi64>) -> (!q, !lse)
  call @print(%1, %lse1) : (!q, !lse) -> ()
  return
}

func.func @main() {
  %q = arith.constant dense<0.0> : !q
  %draft = arith.constant dense<0.0> : tensor<1x1x3x1xf32>
  %k = arith.constant dense<[[[[1.0], [2.0], [4.0], [8.0]]]]> : !k
  %sinks = arith.constant dense<0.0> : tensor<2xf32>
  call @lists(%q, %k, %sinks) : (!q, !k, tensor<2xf32>) -> ()
  call @tree(%draft, %k) : (tensor<1x1x3x1xf32>, !k) -> ()
  call @positions(%q, %k) : (!q, !k) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
