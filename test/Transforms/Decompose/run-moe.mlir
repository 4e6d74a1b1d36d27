// RUN: %lower %s | %run_main | FileCheck %s

!x = tensor<?x2xf32>
!ids = tensor<?x2xi32>
!p = tensor<?x2xf32>
!up = tensor<6x2xf32>
!down = tensor<6x2xf32>
!fused = tensor<12x2xf32>
!b = tensor<3x2xf32>

// Expert e: hidden = relu(x * (e + 1) + [0 e]); down gives their sum plus 10 e, and their difference. For the row [1 2]:
//   expert 0: 3 and -1      expert 1: [2 5], so 17 and -3      expert 2: [3 8], so 31 and -5
// The choices: 0.5 of 2 and 0.25 of 0; 2 of 1 and 1 of an expert that does not exist; 1 of 0 and 1 of 0.
// CHECK: data =
// CHECK-NEXT: [16.25, -2.75]
// CHECK-NEXT: [34, -6]
// CHECK-NEXT: [6, -2]
func.func private @plain(%x: !x, %ids: !ids, %p: !p, %u: !up, %d: !down, %ub: !b, %db: !b) {
  %0 = hone.moe relu %x, experts(%ids, %p), up(%u, %ub), down(%d, %db) : (!x, !ids, !p, !up, !down, !b, !b) -> !x
  %1 = tensor.cast %0 : !x to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// Gated by itself without biases, relu(h) h = h h: expert e gives (e + 1)^2 times [1 4], so 5, 20, 45 and -3, -12, -27.
// CHECK: data =
// CHECK-NEXT: [23.75, -14.25]
// CHECK-NEXT: [40, -24]
// CHECK-NEXT: [10, -6]
func.func private @gated(%x: !x, %ids: !ids, %p: !p, %u: !up, %d: !down) {
  %0 = hone.moe relu %x, experts(%ids, %p), up(%u), down(%d) gate(%u) : (!x, !ids, !p, !up, !down, !up) -> !x
  %1 = tensor.cast %0 : !x to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// Rows r of expert e are [e r]. Of four rows the gate has 0 and 1, up 2 and 3: for [1 2], e (e + 2) and so on, of expert 1 it is
// hidden = [1 5, 3 7], of expert 2 [2 6, 4 8]. Expert 0: [0 4, 2 6].
// Alternately the gate has 0 and 2: [1 3, 5 7], [2 4, 6 8], [0 2, 4 6].
// Half of expert 2 and a quarter of 0; 2 of 1; 2 of 0.
// CHECK: data =
// CHECK-NEXT: [25, -13]
// CHECK-NEXT: [52, -32]
// CHECK-NEXT: [24, -24]
// CHECK: data =
// CHECK-NEXT: [34, -26]
// CHECK-NEXT: [76, -64]
// CHECK-NEXT: [48, -48]
func.func private @fused(%x: !x, %ids: !ids, %p: !p, %u: !fused, %d: !down) {
  %0 = hone.moe relu %x, experts(%ids, %p), up(%u), down(%d) fused halves : (!x, !ids, !p, !fused, !down) -> !x
  %1 = tensor.cast %0 : !x to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  %2 = hone.moe relu %x, experts(%ids, %p), up(%u), down(%d) fused alternate : (!x, !ids, !p, !fused, !down) -> !x
  %3 = tensor.cast %2 : !x to tensor<*xf32>
  call @printMemrefF32(%3) : (tensor<*xf32>) -> ()
  return
}

// The same alternate rows with alpha 0, so that a gate is halved: hidden = min(g, 4) / 2 * (min(u, 4) + 1).
// Expert 0: gate [0 4] and up [2 6], so [0 10]; expert 1: [1 5] and [3 7], so [2 10]; expert 2: [2 6] and [4 8], so [5 10].
// CHECK: data =
// CHECK-NEXT: [10, -5]
// CHECK-NEXT: [24, -16]
// CHECK-NEXT: [20, -20]
func.func private @clamped(%x: !x, %ids: !ids, %p: !p, %u: !fused, %d: !down) {
  %0 = hone.moe silu %x, experts(%ids, %p), up(%u), down(%d) fused alternate swiglu(0.0, 1.0, 4.0) : (!x, !ids, !p, !fused, !down) -> !x
  %1 = tensor.cast %0 : !x to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %x = arith.constant dense<[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]> : tensor<3x2xf32>
  %ids = arith.constant dense<[[2, 0], [1, -1], [0, 0]]> : tensor<3x2xi32>
  %p = arith.constant dense<[[0.5, 0.25], [2.0, 1.0], [1.0, 1.0]]> : tensor<3x2xf32>
  %u = arith.constant dense<[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 3.0]]> : !up
  %f = arith.constant dense<[[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0],
                             [2.0, 0.0], [2.0, 1.0], [2.0, 2.0], [2.0, 3.0]]> : !fused
  %d = arith.constant dense<[[1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, -1.0]]> : !down
  %ub = arith.constant dense<[[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]> : !b
  %db = arith.constant dense<[[0.0, 0.0], [10.0, 0.0], [20.0, 0.0]]> : !b
  %xd = tensor.cast %x : tensor<3x2xf32> to !x
  %idsd = tensor.cast %ids : tensor<3x2xi32> to !ids
  %pd = tensor.cast %p : tensor<3x2xf32> to !p
  call @plain(%xd, %idsd, %pd, %u, %d, %ub, %db) : (!x, !ids, !p, !up, !down, !b, !b) -> ()
  call @gated(%xd, %idsd, %pd, %u, %d) : (!x, !ids, !p, !up, !down) -> ()
  call @fused(%xd, %idsd, %pd, %f, %d) : (!x, !ids, !p, !fused, !down) -> ()
  call @clamped(%xd, %idsd, %pd, %f, %d) : (!x, !ids, !p, !fused, !down) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
