// RUN: %lower %s | %run_main | FileCheck %s

// One query with the keys 0 and log 3, whose weights are therefore as 1 to 3, and the values 4 and 8: (4 + 24) / 4 = 7.

!q = tensor<1x1x1x1xf32>
!k = tensor<1x1x2x1xf32>

func.func private @print(%0: !q) {
  %1 = tensor.cast %0 : !q to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func private @logits(%q: !q, %k: !k, %v: !k, %bias: tensor<1x1x1x2xf32>, %hide: tensor<1x1x1x2xf32>,
                          %hide_all: tensor<1x1x1x2xf32>, %slope: tensor<1xf32>, %sink: tensor<1xf32>) {
  // CHECK: data =
  // CHECK-NEXT: [7]
  %plain = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) : (!q, !k, !k) -> !q
  call @print(%plain) : (!q) -> ()
  // Twice the logits, weights 1 to 9: (4 + 72) / 10.
  // CHECK: data =
  // CHECK-NEXT: [7.6]
  %scaled = hone.attention %q, %k, %v pattern(#hone.full) scale(2.0) : (!q, !k, !k) -> !q
  call @print(%scaled) : (!q) -> ()
  // The bias of log 3 on key 0 makes the weights alike.
  // CHECK: data =
  // CHECK-NEXT: [6]
  %biased = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) bias(%bias) : (!q, !k, !k, tensor<1x1x1x2xf32>) -> !q
  call @print(%biased) : (!q) -> ()
  // A bias of minus infinity hides key 1, or both.
  // CHECK: data =
  // CHECK-NEXT: [4]
  %one = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) bias(%hide) : (!q, !k, !k, tensor<1x1x1x2xf32>) -> !q
  call @print(%one) : (!q) -> ()
  // CHECK: data =
  // CHECK-NEXT: [0]
  %none = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) bias(%hide_all) : (!q, !k, !k, tensor<1x1x1x2xf32>) -> !q
  call @print(%none) : (!q) -> ()
  // The query is at position 1, so the slope log 3 takes log 3 from key 0: weights 1 to 9.
  // CHECK: data =
  // CHECK-NEXT: [7.6]
  %alibi = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) alibi(%slope) : (!q, !k, !k, tensor<1xf32>) -> !q
  call @print(%alibi) : (!q) -> ()
  // A sink of log 4 takes half of the weight.
  // CHECK: data =
  // CHECK-NEXT: [3.5]
  %sunk = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) sinks(%sink) : (!q, !k, !k, tensor<1xf32>) -> !q
  call @print(%sunk) : (!q) -> ()
  // Nothing visible, only the sink: 0.
  // CHECK: data =
  // CHECK-NEXT: [0]
  %sunk_none = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) bias(%hide_all) sinks(%sink)
    : (!q, !k, !k, tensor<1x1x1x2xf32>, tensor<1xf32>) -> !q
  call @print(%sunk_none) : (!q) -> ()
  // A cap of 1e-6 makes the logits all but alike; the scale of 1000 comes before it.
  // CHECK: data =
  // CHECK-NEXT: [6]
  %capped = hone.attention %q, %k, %v pattern(#hone.full) scale(1000.0) softcap(1.0e-6) : (!q, !k, !k) -> !q
  call @print(%capped) : (!q) -> ()
  // The cap comes before the bias: capped to nearly nothing, the bias alone gives probabilities of 3 to 1, (12 + 8) / 4.
  // CHECK: data =
  // CHECK-NEXT: [5]
  %capped_bias = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0) softcap(1.0e-6) bias(%bias)
    : (!q, !k, !k, tensor<1x1x1x2xf32>) -> !q
  call @print(%capped_bias) : (!q) -> ()
  // Logits of 1099 would overflow exp if the greatest were not subtracted.
  // CHECK: data =
  // CHECK-NEXT: [8]
  %large = hone.attention %q, %k, %v pattern(#hone.full) scale(1000.0) : (!q, !k, !k) -> !q
  call @print(%large) : (!q) -> ()
  return
}

// Four query heads read two key heads: 0 and 1 the first, 2 and 3 the second. The bias hides key 0 from heads 1 and 2.
// CHECK: data =
// CHECK-NEXT: [1.5]
// CHECK: [2]
// CHECK: [8]
// CHECK: [6]
func.func private @grouped(%q: tensor<?x?x1x1xf32>, %v: tensor<?x?x2x1xf32>, %bias: tensor<1x?x1x2xf32>) {
  %0 = hone.attention %q, %v, %v pattern(#hone.full) scale(0.0) bias(%bias)
     : (tensor<?x?x1x1xf32>, tensor<?x?x2x1xf32>, tensor<?x?x2x1xf32>, tensor<1x?x1x2xf32>) -> tensor<?x?x1x1xf32>
  %1 = tensor.cast %0 : tensor<?x?x1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %q = arith.constant dense<1.0> : !q
  %k = arith.constant dense<[[[[0.0], [1.0986123]]]]> : !k
  %v = arith.constant dense<[[[[4.0], [8.0]]]]> : !k
  %bias = arith.constant dense<[[[[1.0986123, 0.0]]]]> : tensor<1x1x1x2xf32>
  %hide = arith.constant dense<[[[[0.0, 0xFF800000]]]]> : tensor<1x1x1x2xf32>
  %hide_all = arith.constant dense<0xFF800000> : tensor<1x1x1x2xf32>
  %slope = arith.constant dense<1.0986123> : tensor<1xf32>
  %sink = arith.constant dense<1.3862944> : tensor<1xf32>
  call @logits(%q, %k, %v, %bias, %hide, %hide_all, %slope, %sink)
    : (!q, !k, !k, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>, tensor<1xf32>, tensor<1xf32>) -> ()

  %gq = arith.constant dense<0.0> : tensor<1x4x1x1xf32>
  %gv = arith.constant dense<[[[[1.0], [2.0]], [[4.0], [8.0]]]]> : tensor<1x2x2x1xf32>
  %gb = arith.constant dense<[[[[0.0, 0.0]], [[0xFF800000, 0.0]], [[0xFF800000, 0.0]], [[0.0, 0.0]]]]> : tensor<1x4x1x2xf32>
  %gqd = tensor.cast %gq : tensor<1x4x1x1xf32> to tensor<?x?x1x1xf32>
  %gvd = tensor.cast %gv : tensor<1x2x2x1xf32> to tensor<?x?x2x1xf32>
  %gbd = tensor.cast %gb : tensor<1x4x1x2xf32> to tensor<1x?x1x2xf32>
  call @grouped(%gqd, %gvd, %gbd) : (tensor<?x?x1x1xf32>, tensor<?x?x2x1xf32>, tensor<1x?x1x2xf32>) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
