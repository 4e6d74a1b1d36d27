// RUN: %lower %s | %run_main | FileCheck %s

// CHECK: data =
// CHECK-NEXT: [8, 23]
// CHECK-NEXT: [10, 20]
func.func private @linear(%x: tensor<?x?x3xf32>, %w: tensor<2x3xf32>, %b: tensor<2xf32>) {
  %0 = hone.linear %x, %w bias(%b) : (tensor<?x?x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<?x?x2xf32>
  %1 = tensor.cast %0 : tensor<?x?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// 256 + 1 + 1 is 258 in f32, and bf16 has it; summed in bf16, 256 + 1 is 256 again. 256 + 1 rounds to 256.
// CHECK: data =
// CHECK-NEXT: [258, 256]
func.func private @linear_bf16(%x: tensor<3xbf16>, %w: tensor<2x3xbf16>) {
  %0 = hone.linear %x, %w : (tensor<3xbf16>, tensor<2x3xbf16>) -> tensor<2xbf16>
  %1 = arith.extf %0 : tensor<2xbf16> to tensor<2xf32>
  %2 = tensor.cast %1 : tensor<2xf32> to tensor<*xf32>
  call @printMemrefF32(%2) : (tensor<*xf32>) -> ()
  return
}

// a is repeated over the second leading dimension, b over the first: [1 2] and [3 4] by [1 1], [10 0], [0 100] as columns.
// CHECK: data =
// CHECK-NEXT: [3]
// CHECK: [10]
// CHECK: [200]
// CHECK: [7]
// CHECK: [30]
// CHECK: [400]
func.func private @matmul(%a: tensor<2x1x?x2xf32>, %b: tensor<3x2x?xf32>) {
  %0 = hone.matmul %a, %b : (tensor<2x1x?x2xf32>, tensor<3x2x?xf32>) -> tensor<2x3x?x?xf32>
  %1 = tensor.cast %0 : tensor<2x3x?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// Rows 2, the last, 0, none, none, none of three.
// CHECK: data =
// CHECK-NEXT: [5, 6]
// CHECK-NEXT: [5, 6]
// CHECK-NEXT: [1, 2]
// CHECK-NEXT: [nan, nan]
// CHECK-NEXT: [nan, nan]
// CHECK-NEXT: [nan, nan]
func.func private @embedding(%ids: tensor<?xi64>, %t: tensor<?x?xf32>) {
  %0 = hone.embedding %ids, %t : (tensor<?xi64>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = tensor.cast %0 : tensor<?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %x = arith.constant dense<[[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]]> : tensor<1x2x3xf32>
  %w = arith.constant dense<[[1.0, 0.0, -1.0], [0.5, 0.5, 0.5]]> : tensor<2x3xf32>
  %b = arith.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %xd = tensor.cast %x : tensor<1x2x3xf32> to tensor<?x?x3xf32>
  call @linear(%xd, %w, %b) : (tensor<?x?x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> ()

  %xh = arith.constant dense<[256.0, 1.0, 1.0]> : tensor<3xbf16>
  %wh = arith.constant dense<[[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]> : tensor<2x3xbf16>
  call @linear_bf16(%xh, %wh) : (tensor<3xbf16>, tensor<2x3xbf16>) -> ()

  %ma = arith.constant dense<[[[[1.0, 2.0]]], [[[3.0, 4.0]]]]> : tensor<2x1x1x2xf32>
  %mb = arith.constant dense<[[[1.0], [1.0]], [[10.0], [0.0]], [[0.0], [100.0]]]> : tensor<3x2x1xf32>
  %mad = tensor.cast %ma : tensor<2x1x1x2xf32> to tensor<2x1x?x2xf32>
  %mbd = tensor.cast %mb : tensor<3x2x1xf32> to tensor<3x2x?xf32>
  call @matmul(%mad, %mbd) : (tensor<2x1x?x2xf32>, tensor<3x2x?xf32>) -> ()

  %ids = arith.constant dense<[2, -1, 0, 3, -4, 4611686018427387904]> : tensor<6xi64>
  %t = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %idsd = tensor.cast %ids : tensor<6xi64> to tensor<?xi64>
  %td = tensor.cast %t : tensor<3x2xf32> to tensor<?x?xf32>
  call @embedding(%idsd, %td) : (tensor<?xi64>, tensor<?x?xf32>) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
