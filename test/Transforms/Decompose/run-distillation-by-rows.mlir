// RUN: hone-opt %s '--hone-differentiate=entry=forward loss=cross-entropy most-logits=10 of=w teacher=teacher distill-weight=0.25 temperature=2' -o %t.gradients
// RUN: sed -e '/private @later/d' -e 's/@later/@gradients/' %t.gradients > %t.mlir
// RUN: %lower %t.mlir | %run_main | FileCheck %s
// RUN: hone-opt %s '--hone-differentiate=entry=forward loss=cross-entropy of=w teacher=teacher distill-weight=0.25 temperature=2' -o %t.gradients
// RUN: sed -e '/private @later/d' -e 's/@later/@gradients/' %t.gradients > %t.mlir
// RUN: %lower %t.mlir | %run_main | FileCheck %s

// The loss of distillation and that without the teacher, of seven rows, and the gradient of the weight, are those of numpy.

// CHECK: data =
// CHECK-NEXT: [1.953{{[0-9]*}}]
// CHECK: data =
// CHECK-NEXT: [2.550{{[0-9]*}}]
// CHECK: data =
// CHECK-NEXT: [0.1915{{[0-9]*}}, 0.2025{{[0-9]*}}, -0.2249{{[0-9]*}}]
// CHECK-NEXT: [-0.2364{{[0-9]*}}, 0.2328{{[0-9]*}}, -0.01827{{[0-9]*}}]
// CHECK-NEXT: [0.02118{{[0-9]*}}, -0.1256{{[0-9]*}}, 0.1642{{[0-9]*}}]
// CHECK-NEXT: [0.003189{{[0-9]*}}, -0.2499{{[0-9]*}}, 0.08105{{[0-9]*}}]
// CHECK-NEXT: [0.02044{{[0-9]*}}, -0.05981{{[0-9]*}}, -0.002120{{[0-9]*}}]

func.func @forward(%x: tensor<?x3xf32> {onnx.name = "x"}, %w: tensor<5x3xf32> {onnx.name = "w"}) -> tensor<?x5xf32> {
  %y = hone.linear %x, %w : (tensor<?x3xf32>, tensor<5x3xf32>) -> tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}

func.func private @teacher(%x: tensor<?x3xf32> {onnx.name = "x"}) -> tensor<?x5xf32> {
  %w = arith.constant dense<[[0.5, 0.5, -0.5], [0.0, 1.0, 1.0], [-1.0, 0.0, 1.0], [0.5, -1.0, 0.0], [1.0, 0.0, 1.0]]> : tensor<5x3xf32>
  %y = hone.linear %x, %w : (tensor<?x3xf32>, tensor<5x3xf32>) -> tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}

func.func private @later(tensor<?x3xf32>, tensor<5x3xf32>, tensor<?xi64>) -> (tensor<f32>, tensor<f32>, tensor<5x3xf32>)

func.func @main() {
  %x = arith.constant dense<[[0.5, -1.0, 2.0], [1.0, 0.0, -0.5], [-1.5, 0.25, 1.0], [0.0, 1.0, 1.0], [2.0, -2.0, 0.5], [0.75, 0.5, -1.0],
                             [-1.0, -1.0, -1.0]]> : tensor<7x3xf32>
  %w = arith.constant dense<[[1.0, 0.5, -1.0], [0.0, 1.0, 0.5], [-0.5, 0.0, 1.0], [0.25, -1.0, 0.0], [1.0, 1.0, 1.0]]> : tensor<5x3xf32>
  %t = arith.constant dense<[0, 3, 2, 4, 1, 2, 0]> : tensor<7xi64>
  %xd = tensor.cast %x : tensor<7x3xf32> to tensor<?x3xf32>
  %td = tensor.cast %t : tensor<7xi64> to tensor<?xi64>
  %0:3 = call @later(%xd, %w, %td) : (tensor<?x3xf32>, tensor<5x3xf32>, tensor<?xi64>) -> (tensor<f32>, tensor<f32>, tensor<5x3xf32>)
  %p0 = tensor.cast %0#0 : tensor<f32> to tensor<*xf32>
  call @printMemrefF32(%p0) : (tensor<*xf32>) -> ()
  %p1 = tensor.cast %0#1 : tensor<f32> to tensor<*xf32>
  call @printMemrefF32(%p1) : (tensor<*xf32>) -> ()
  %p2 = tensor.cast %0#2 : tensor<5x3xf32> to tensor<*xf32>
  call @printMemrefF32(%p2) : (tensor<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
