// RUN: %lower %s | %run_main | FileCheck %s

// Position 0 rotates by a right angle, (u, w) -> (-w, u); position 1 by cos 0.6, sin 0.8; the fifth element is not rotated.
// Pairs (1, 3), (2, 4) of the row [1 2 3 4 5]:
//   position 0: -3, -4, 1, 2      position 1: 0.6 - 2.4, 1.2 - 3.2, 1.8 + 0.8, 2.4 + 1.6
// CHECK: data =
// CHECK-NEXT: [-3, -4, 1, 2, 5]
// CHECK-NEXT: [-1.8, -2, 2.6, 4, 5]
// CHECK: [-3, -4, 1, 2, 5]
// CHECK-NEXT: [-1.8, -2, 2.6, 4, 5]
func.func private @halves(%x: tensor<2x1x2x5xf32>, %cos: tensor<1x2x2xf32>, %sin: tensor<1x2x2xf32>) {
  %0 = hone.rope %x, %cos, %sin : (tensor<2x1x2x5xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) -> tensor<2x1x2x5xf32>
  %1 = tensor.cast %0 : tensor<2x1x2x5xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// Pairs (1, 2), (3, 4):  position 0: -2, 1, -4, 3      position 1: 0.6 - 1.6, 1.2 + 0.8, 1.8 - 3.2, 2.4 + 2.4
// With a table for each sequence: the second has the two rows the other way round.
// CHECK: data =
// CHECK-NEXT: [-2, 1, -4, 3, 5]
// CHECK-NEXT: [-1, 2, -1.4, 4.8, 5]
// CHECK: [-1, 2, -1.4, 4.8, 5]
// CHECK-NEXT: [-2, 1, -4, 3, 5]
func.func private @interleaved(%x: tensor<?x1x?x?xf32>, %cos: tensor<?x?x?xf32>, %sin: tensor<?x?x?xf32>) {
  %0 = hone.rope %x, %cos, %sin interleaved
     : (tensor<?x1x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x1x?x?xf32>
  %1 = tensor.cast %0 : tensor<?x1x?x?xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %row = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
  %e = tensor.empty() : tensor<2x1x2x5xf32>
  %x = linalg.broadcast ins(%row : tensor<5xf32>) outs(%e : tensor<2x1x2x5xf32>) dimensions = [0, 1, 2]
  %cos = arith.constant dense<[[[0.0, 0.0], [0.6, 0.6]]]> : tensor<1x2x2xf32>
  %sin = arith.constant dense<[[[1.0, 1.0], [0.8, 0.8]]]> : tensor<1x2x2xf32>
  call @halves(%x, %cos, %sin) : (tensor<2x1x2x5xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) -> ()

  %cos2 = arith.constant dense<[[[0.0, 0.0], [0.6, 0.6]], [[0.6, 0.6], [0.0, 0.0]]]> : tensor<2x2x2xf32>
  %sin2 = arith.constant dense<[[[1.0, 1.0], [0.8, 0.8]], [[0.8, 0.8], [1.0, 1.0]]]> : tensor<2x2x2xf32>
  %xd = tensor.cast %x : tensor<2x1x2x5xf32> to tensor<?x1x?x?xf32>
  %cd = tensor.cast %cos2 : tensor<2x2x2xf32> to tensor<?x?x?xf32>
  %sd = tensor.cast %sin2 : tensor<2x2x2xf32> to tensor<?x?x?xf32>
  call @interleaved(%xd, %cd, %sd) : (tensor<?x1x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
