// RUN: hone-opt %s '--hone-differentiate=entry=forward loss=cross-entropy most-logits=10 of=x,w' -o %t.gradients
// RUN: sed -e '/private @later/d' -e 's/@later/@gradients/' %t.gradients > %t.mlir
// RUN: %lower %t.mlir | %run_main | FileCheck %s
// RUN: hone-opt %s '--hone-differentiate=entry=forward loss=cross-entropy of=x,w' -o %t.gradients
// RUN: sed -e '/private @later/d' -e 's/@later/@gradients/' %t.gradients > %t.mlir
// RUN: %lower %t.mlir | %run_main | FileCheck %s

// The loss of seven rows and its gradients, of all at once and of two at a time, are those of numpy.

// CHECK: data =
// CHECK-NEXT: [2.550{{[0-9]*}}]
// CHECK: data =
// CHECK-NEXT: [-0.1180{{[0-9]*}}, -0.04702{{[0-9]*}}, 0.2476{{[0-9]*}}]
// CHECK-NEXT: [0.06886{{[0-9]*}}, 0.1993{{[0-9]*}}, -0.03463{{[0-9]*}}]
// CHECK-NEXT: [0.04261{{[0-9]*}}, 0.03705{{[0-9]*}}, -0.02740{{[0-9]*}}]
// CHECK-NEXT: [-0.08109{{[0-9]*}}, -0.03448{{[0-9]*}}, -0.03508{{[0-9]*}}]
// CHECK-NEXT: [0.05306{{[0-9]*}}, -0.2266{{[0-9]*}}, -0.06533{{[0-9]*}}]
// CHECK-NEXT: [0.1884{{[0-9]*}}, 0.07033{{[0-9]*}}, -0.214{{[56][0-9]*}}]
// CHECK-NEXT: [-0.1078{{[0-9]*}}, -0.1325{{[0-9]*}}, 0.1492{{[0-9]*}}]
// CHECK: data =
// CHECK-NEXT: [0.2239{{[0-9]*}}, 0.2868{{[0-9]*}}, -0.2864{{[0-9]*}}]
// CHECK-NEXT: [-0.3124{{[0-9]*}}, 0.3199{{[0-9]*}}, -0.005912{{[0-9]*}}]
// CHECK-NEXT: [-0.002024{{[0-9]*}}, -0.1499{{[0-9]*}}, 0.1994{{[0-9]*}}]
// CHECK-NEXT: [0.01891{{[0-9]*}}, -0.3181{{[0-9]*}}, 0.09{{29|3}}{{[0-9]*}}]
// CHECK-NEXT: [0.07158{{[0-9]*}}, -0.1386{{[0-9]*}}, -0.0001376{{[0-9]*}}]

func.func @forward(%x: tensor<?x3xf32> {onnx.name = "x"}, %w: tensor<5x3xf32> {onnx.name = "w"}) -> tensor<?x5xf32> {
  %y = hone.linear %x, %w : (tensor<?x3xf32>, tensor<5x3xf32>) -> tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}

func.func private @later(tensor<?x3xf32>, tensor<5x3xf32>, tensor<?xi64>) -> (tensor<f32>, tensor<?x3xf32>, tensor<5x3xf32>)

func.func @main() {
  %x = arith.constant dense<[[0.5, -1.0, 2.0], [1.0, 0.0, -0.5], [-1.5, 0.25, 1.0], [0.0, 1.0, 1.0], [2.0, -2.0, 0.5], [0.75, 0.5, -1.0],
                             [-1.0, -1.0, -1.0]]> : tensor<7x3xf32>
  %w = arith.constant dense<[[1.0, 0.5, -1.0], [0.0, 1.0, 0.5], [-0.5, 0.0, 1.0], [0.25, -1.0, 0.0], [1.0, 1.0, 1.0]]> : tensor<5x3xf32>
  %t = arith.constant dense<[0, 3, 2, 4, 1, 2, 0]> : tensor<7xi64>
  %xd = tensor.cast %x : tensor<7x3xf32> to tensor<?x3xf32>
  %td = tensor.cast %t : tensor<7xi64> to tensor<?xi64>
  %0:3 = call @later(%xd, %w, %td) : (tensor<?x3xf32>, tensor<5x3xf32>, tensor<?xi64>) -> (tensor<f32>, tensor<?x3xf32>, tensor<5x3xf32>)
  %p0 = tensor.cast %0#0 : tensor<f32> to tensor<*xf32>
  call @printMemrefF32(%p0) : (tensor<*xf32>) -> ()
  %p1 = tensor.cast %0#1 : tensor<?x3xf32> to tensor<*xf32>
  call @printMemrefF32(%p1) : (tensor<*xf32>) -> ()
  %p2 = tensor.cast %0#2 : tensor<5x3xf32> to tensor<*xf32>
  call @printMemrefF32(%p2) : (tensor<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
