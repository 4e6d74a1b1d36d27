// RUN: %lower %s | %run_main | FileCheck %s

// At temperature 2 the reference [0, 2 log 3] has the probabilities 1/4 and 3/4, and equal logits, however large, 1/2 each: the mean with a row
// that agrees is half of 1/4 log 1/2 + 3/4 log 3/2.
// CHECK: data =
// CHECK-NEXT: [0.06540
func.func private @divergence(%x: tensor<?x2xf32>, %r: tensor<?x2xf32>) {
  %0 = hone.kl_divergence %x, %r {temperature = 2.0 : f32} : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<f32>
  %1 = tensor.cast %0 : tensor<f32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %x = arith.constant dense<[[200.0, 200.0], [1.0, 5.0]]> : tensor<2x2xf32>
  %xd = tensor.cast %x : tensor<2x2xf32> to tensor<?x2xf32>
  %r = arith.constant dense<[[0.0, 2.1972246], [-3.0, 1.0]]> : tensor<2x2xf32>
  %rd = tensor.cast %r : tensor<2x2xf32> to tensor<?x2xf32>
  call @divergence(%xd, %rd) : (tensor<?x2xf32>, tensor<?x2xf32>) -> ()
  return
}

func.func private @printMemrefF32(%x: tensor<*xf32>)
