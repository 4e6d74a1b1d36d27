// RUN: %lower %s | %run_main | FileCheck %s

// A query of zeros has the same attention probability for all keys that it sees, so the result is the mean of their values, which are 1, 2, 4, 8.

!q = tensor<?x1x?x1xf32>
!l = tensor<?xi64>

func.func private @print(%0: !q) {
  %1 = tensor.cast %0 : !q to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func private @patterns(%q: !q, %last: !q, %v: !q, %prefix: !l, %begin: !l, %end: !l) {
  // CHECK: data =
  // CHECK-NEXT: [3.75]
  // CHECK-NEXT: [3.75]
  // CHECK-NEXT: [3.75]
  // CHECK-NEXT: [3.75]
  %full = hone.attention %q, %v, %v pattern(#hone.full) scale(1.0) : (!q, !q, !q) -> !q
  call @print(%full) : (!q) -> ()
  // CHECK: data =
  // CHECK-NEXT: [1]
  // CHECK-NEXT: [1.5]
  // CHECK-NEXT: [2.33333]
  // CHECK-NEXT: [3.75]
  %causal = hone.attention %q, %v, %v pattern(#hone.causal) scale(1.0) : (!q, !q, !q) -> !q
  call @print(%causal) : (!q) -> ()
  // Two queries over four keys are at positions 2 and 3.
  // CHECK: data =
  // CHECK-NEXT: [2.33333]
  // CHECK-NEXT: [3.75]
  %late = hone.attention %last, %v, %v pattern(#hone.causal) scale(1.0) : (!q, !q, !q) -> !q
  call @print(%late) : (!q) -> ()
  // CHECK: data =
  // CHECK-NEXT: [1]
  // CHECK-NEXT: [1.5]
  // CHECK-NEXT: [3]
  // CHECK-NEXT: [6]
  %sliding = hone.attention %q, %v, %v pattern(#hone.sliding<window = 2>) scale(1.0) : (!q, !q, !q) -> !q
  call @print(%sliding) : (!q) -> ()
  // A prefix of 3.
  // CHECK: data =
  // CHECK-NEXT: [2.33333]
  // CHECK-NEXT: [2.33333]
  // CHECK-NEXT: [2.33333]
  // CHECK-NEXT: [3.75]
  %prefixed = hone.attention %q, %v, %v pattern(#hone.prefix_causal, %prefix) scale(1.0) : (!q, !q, !q, !l) -> !q
  call @print(%prefixed) : (!q) -> ()
  // Keys 2 and 3 are after the end of 2, key 0 before the begin of 1: the first query sees none.
  // CHECK: data =
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [2]
  // CHECK-NEXT: [2]
  // CHECK-NEXT: [2]
  %bounded = hone.attention %q, %v, %v pattern(#hone.causal) scale(1.0) key_begin(%begin) key_end(%end)
    : (!q, !q, !q, !l, !l) -> !q
  call @print(%bounded) : (!q) -> ()
  // A sequence whose last key is none of its own: the queries are those of the keys before.
  // CHECK: data =
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [1]
  // CHECK-NEXT: [1.5]
  // CHECK-NEXT: [2.33333]
  %known = arith.constant dense<1> : tensor<1xi64>
  %one = tensor.cast %known : tensor<1xi64> to !l
  %lagging = hone.attention %q, %v, %v pattern(#hone.causal) scale(1.0) lags(%one) : (!q, !q, !q, !l) -> !q
  call @print(%lagging) : (!q) -> ()
  // Prefix and window at once.
  // CHECK: data =
  // CHECK-NEXT: [1]
  // CHECK-NEXT: [1.5]
  // CHECK-NEXT: [3]
  // CHECK-NEXT: [6]
  %both = hone.attention %q, %v, %v pattern(#hone.all_of<#hone.prefix_causal, #hone.sliding<window = 2>>, %prefix) scale(1.0)
      : (!q, !q, !q, !l) -> !q
  call @print(%both) : (!q) -> ()
  return
}

// Without keys every query sees none.
func.func private @no_keys(%q: !q, %k: !q) {
  // CHECK: data =
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [0]
  %0 = hone.attention %q, %k, %k pattern(#hone.full) scale(1.0) : (!q, !q, !q) -> !q
  call @print(%0) : (!q) -> ()
  return
}

func.func @main() {
  %q = arith.constant dense<0.0> : tensor<1x1x4x1xf32>
  %last = arith.constant dense<0.0> : tensor<1x1x2x1xf32>
  %v = arith.constant dense<[[[[1.0], [2.0], [4.0], [8.0]]]]> : tensor<1x1x4x1xf32>
  %n = arith.constant dense<0.0> : tensor<1x1x0x1xf32>
  %prefix = arith.constant dense<3> : tensor<1xi64>
  %begin = arith.constant dense<1> : tensor<1xi64>
  %end = arith.constant dense<2> : tensor<1xi64>
  %qd = tensor.cast %q : tensor<1x1x4x1xf32> to !q
  %lastd = tensor.cast %last : tensor<1x1x2x1xf32> to !q
  %vd = tensor.cast %v : tensor<1x1x4x1xf32> to !q
  %nd = tensor.cast %n : tensor<1x1x0x1xf32> to !q
  %prefixd = tensor.cast %prefix : tensor<1xi64> to !l
  %begind = tensor.cast %begin : tensor<1xi64> to !l
  %endd = tensor.cast %end : tensor<1xi64> to !l
  call @patterns(%qd, %lastd, %vd, %prefixd, %begind, %endd) : (!q, !q, !q, !l, !l, !l) -> ()
  call @no_keys(%lastd, %nd) : (!q, !q) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
