// RUN: %lower %s | %run_main | FileCheck %s

// [3 4] has mean square 12.5; with epsilon 12.5 the root is 5, and the weights are 1 + 1 and 1 + 0.5. The row of zeros stays.
// CHECK: data =
// CHECK-NEXT: [1.2, 1.2]
// CHECK-NEXT: [0, 0]
func.func private @rms_norm(%x: tensor<?x?xf32>, %w: tensor<?xf32>) {
  %0 = hone.rms_norm %x, %w epsilon(12.5) unit_offset : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  %1 = tensor.cast %0 : tensor<?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// [1 3] has mean 2 and variance 1; with epsilon 3 the root is 2: [-0.5 0.5], times [2 4], plus [10 20].
// CHECK: data =
// CHECK-NEXT: [9, 22]
// CHECK-NEXT: [10, 20]
func.func private @layer_norm(%x: tensor<?x2xf32>, %w: tensor<2xf32>, %b: tensor<2xf32>) {
  %0 = hone.layer_norm %x, %w bias(%b) epsilon(3.0) : (tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %1 = tensor.cast %0 : tensor<?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// Squares of 300 exceed f16, which ends at 65504; the mean is made in f32.
// CHECK: data =
// CHECK-NEXT: [1, -1]
func.func private @rms_norm_f16(%x: tensor<2xf16>, %w: tensor<2xf16>) {
  %0 = hone.rms_norm %x, %w epsilon(0.0) : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
  %1 = arith.extf %0 : tensor<2xf16> to tensor<2xf32>
  %2 = tensor.cast %1 : tensor<2xf32> to tensor<*xf32>
  call @printMemrefF32(%2) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %x = arith.constant dense<[[3.0, 4.0], [0.0, 0.0]]> : tensor<2x2xf32>
  %w = arith.constant dense<[1.0, 0.5]> : tensor<2xf32>
  %xd = tensor.cast %x : tensor<2x2xf32> to tensor<?x?xf32>
  %wd = tensor.cast %w : tensor<2xf32> to tensor<?xf32>
  call @rms_norm(%xd, %wd) : (tensor<?x?xf32>, tensor<?xf32>) -> ()

  %y = arith.constant dense<[[1.0, 3.0], [7.0, 7.0]]> : tensor<2x2xf32>
  %v = arith.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %b = arith.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %yd = tensor.cast %y : tensor<2x2xf32> to tensor<?x2xf32>
  call @layer_norm(%yd, %v, %b) : (tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()

  %h = arith.constant dense<[300.0, -300.0]> : tensor<2xf16>
  %one = arith.constant dense<1.0> : tensor<2xf16>
  call @rms_norm_f16(%h, %one) : (tensor<2xf16>, tensor<2xf16>) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
