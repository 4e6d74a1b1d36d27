// RUN: %lower %s | %run_main | FileCheck %s

// Rows of equal logits give log 2 each, however large those are; the row [0, 200] gives its second target log 1.
// CHECK: data =
// CHECK-NEXT: [0.462098]
// A target that is no column, negative ones too.
// CHECK: data =
// CHECK-NEXT: [{{-?}}nan]
func.func private @loss(%x: tensor<?x2xf32>, %t: tensor<?xi64>) {
  %0 = hone.cross_entropy %x, %t : (tensor<?x2xf32>, tensor<?xi64>) -> tensor<f32>
  %1 = tensor.cast %0 : tensor<f32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %x = arith.constant dense<[[0.0, 0.0], [200.0, 200.0], [0.0, 200.0]]> : tensor<3x2xf32>
  %xd = tensor.cast %x : tensor<3x2xf32> to tensor<?x2xf32>
  %t = arith.constant dense<[0, 1, 1]> : tensor<3xi64>
  %td = tensor.cast %t : tensor<3xi64> to tensor<?xi64>
  call @loss(%xd, %td) : (tensor<?x2xf32>, tensor<?xi64>) -> ()
  %w = arith.constant dense<[0, 1, -1]> : tensor<3xi64>
  %wd = tensor.cast %w : tensor<3xi64> to tensor<?xi64>
  call @loss(%xd, %wd) : (tensor<?x2xf32>, tensor<?xi64>) -> ()
  return
}

func.func private @printMemrefF32(%x: tensor<*xf32>)
