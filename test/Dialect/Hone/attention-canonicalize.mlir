// RUN: hone-opt %s -canonicalize | FileCheck %s

!q = tensor<1x2x3x4xf32>

// Operands of zeros add nothing.
// CHECK-LABEL: @drop_zeros
// CHECK: hone.attention %arg0, %arg0, %arg0 pattern(#hone.full) scale(1.000000e+00) :
func.func @drop_zeros(%q: !q) -> !q {
  %bias = arith.constant dense<0.0> : tensor<1x1x1x3xf32>
  %alibi = arith.constant dense<0.0> : tensor<2xf32>
  %begin = arith.constant dense<0> : tensor<1xi64>
  %0 = hone.attention %q, %q, %q pattern(#hone.full) scale(1.0) bias(%bias) alibi(%alibi) key_begin(%begin)
     : (!q, !q, !q, tensor<1x1x1x3xf32>, tensor<2xf32>, tensor<1xi64>) -> !q
  return %0 : !q
}

// An end of 0 hides every key, a sink of 0 takes weight, and not every element of this bias is 0.
// CHECK-LABEL: @keep_what_acts
// CHECK: hone.attention {{.*}} bias({{.*}}) sinks({{.*}}) key_end({{.*}})
func.func @keep_what_acts(%q: !q) -> !q {
  %bias = arith.constant dense<[[[[0.0, 1.0, 0.0]]]]> : tensor<1x1x1x3xf32>
  %sinks = arith.constant dense<0.0> : tensor<2xf32>
  %end = arith.constant dense<0> : tensor<1xi64>
  %0 = hone.attention %q, %q, %q pattern(#hone.full) scale(1.0) bias(%bias) sinks(%sinks) key_end(%end)
     : (!q, !q, !q, tensor<1x1x1x3xf32>, tensor<2xf32>, tensor<1xi64>) -> !q
  return %0 : !q
}

// CHECK-LABEL: @wide_window
// CHECK: pattern(#hone.causal)
func.func @wide_window(%q: !q) -> !q {
  %0 = hone.attention %q, %q, %q pattern(#hone.sliding<window = 3>) scale(1.0) : (!q, !q, !q) -> !q
  return %0 : !q
}

// CHECK-LABEL: @narrow_window
// CHECK: pattern(#hone.sliding<window = 2>)
func.func @narrow_window(%q: !q) -> !q {
  %0 = hone.attention %q, %q, %q pattern(#hone.sliding<window = 2>) scale(1.0) : (!q, !q, !q) -> !q
  return %0 : !q
}

// CHECK-LABEL: @window_of_unknown_keys
// CHECK: pattern(#hone.sliding<window = 3>)
func.func @window_of_unknown_keys(%q: !q, %k: tensor<1x2x?x4xf32>) -> !q {
  %0 = hone.attention %q, %k, %k pattern(#hone.sliding<window = 3>) scale(1.0)
     : (!q, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> !q
  return %0 : !q
}
