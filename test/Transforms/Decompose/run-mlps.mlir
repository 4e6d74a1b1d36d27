// RUN: %lower %s | %run_main | FileCheck %s

!x = tensor<4x1xf32>
!w = tensor<1x1xf32>

// The activations at -1, 0, 1 and 2, by hand from their formulas.
func.func private @activations(%x: !x, %w: !w) {
  // CHECK: data =
  // CHECK-NEXT: [-0.268941]
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [0.731059]
  // CHECK-NEXT: [1.76159]
  %silu = hone.mlp silu %x, up(%w), down(%w) : (!x, !w, !w) -> !x
  %0 = tensor.cast %silu : !x to tensor<*xf32>
  call @printMemrefF32(%0) : (tensor<*xf32>) -> ()
  // CHECK: data =
  // CHECK-NEXT: [-0.158655]
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [0.841345]
  // CHECK-NEXT: [1.9545]
  %gelu = hone.mlp gelu %x, up(%w), down(%w) : (!x, !w, !w) -> !x
  %1 = tensor.cast %gelu : !x to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  // CHECK: data =
  // CHECK-NEXT: [-0.158808]
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [0.841192]
  // CHECK-NEXT: [1.9546]
  %gelu_tanh = hone.mlp gelu_tanh %x, up(%w), down(%w) : (!x, !w, !w) -> !x
  %2 = tensor.cast %gelu_tanh : !x to tensor<*xf32>
  call @printMemrefF32(%2) : (tensor<*xf32>) -> ()
  // CHECK: data =
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [0]
  // CHECK-NEXT: [1]
  // CHECK-NEXT: [2]
  %relu = hone.mlp relu %x, up(%w), down(%w) : (!x, !w, !w) -> !x
  %3 = tensor.cast %relu : !x to tensor<*xf32>
  call @printMemrefF32(%3) : (tensor<*xf32>) -> ()
  return
}

// gate: relu([1 -1] + [1 0]) = [2 0]; up: [2 2] + [0 5] = [2 7]; hidden [4 0]; down: 4 + 0 + 100 and 0.
// CHECK: data =
// CHECK-NEXT: [104, 0]
func.func private @gated_mlp(%x: tensor<?x2xf32>, %g: tensor<2x2xf32>, %u: tensor<2x2xf32>, %d: tensor<2x2xf32>,
                             %gb: tensor<2xf32>, %ub: tensor<2xf32>, %db: tensor<2xf32>) {
  %0 = hone.gated_mlp relu %x, gate(%g, %gb), up(%u, %ub), down(%d, %db)
     : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
     -> tensor<?x2xf32>
  %1 = tensor.cast %0 : tensor<?x2xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// The hidden 257 is rounded to bf16, 256, before the second product: 256 - 256 = 0.
// CHECK: data =
// CHECK-NEXT: [0]
func.func private @rounds_hidden(%x: tensor<2xbf16>, %u: tensor<2x2xbf16>, %d: tensor<1x2xbf16>) {
  %0 = hone.mlp relu %x, up(%u), down(%d) : (tensor<2xbf16>, tensor<2x2xbf16>, tensor<1x2xbf16>) -> tensor<1xbf16>
  %1 = arith.extf %0 : tensor<1xbf16> to tensor<1xf32>
  %2 = tensor.cast %1 : tensor<1xf32> to tensor<*xf32>
  call @printMemrefF32(%2) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %x = arith.constant dense<[[-1.0], [0.0], [1.0], [2.0]]> : !x
  %w = arith.constant dense<1.0> : !w
  call @activations(%x, %w) : (!x, !w) -> ()

  %y = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %yd = tensor.cast %y : tensor<1x2xf32> to tensor<?x2xf32>
  %g = arith.constant dense<[[1.0, 0.0], [-1.0, 0.0]]> : tensor<2x2xf32>
  %u = arith.constant dense<[[0.0, 1.0], [0.0, 1.0]]> : tensor<2x2xf32>
  %d = arith.constant dense<[[1.0, 1.0], [0.0, 1.0]]> : tensor<2x2xf32>
  %gb = arith.constant dense<[1.0, 0.0]> : tensor<2xf32>
  %ub = arith.constant dense<[0.0, 5.0]> : tensor<2xf32>
  %db = arith.constant dense<[100.0, 0.0]> : tensor<2xf32>
  call @gated_mlp(%yd, %g, %u, %d, %gb, %ub, %db)
    : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()

  %h = arith.constant dense<[256.0, 1.0]> : tensor<2xbf16>
  %hu = arith.constant dense<[[1.0, 1.0], [1.0, 0.0]]> : tensor<2x2xbf16>
  %hd = arith.constant dense<[[1.0, -1.0]]> : tensor<1x2xbf16>
  call @rounds_hidden(%h, %hu, %hd) : (tensor<2xbf16>, tensor<2x2xbf16>, tensor<1x2xbf16>) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
