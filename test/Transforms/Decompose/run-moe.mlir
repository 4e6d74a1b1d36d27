// RUN: %lower %s | %run_main | FileCheck %s

!x = tensor<?x2xf32>
!ids = tensor<?x2xi32>
!p = tensor<?x2xf32>
!up = tensor<3x2x2xf32>
!down = tensor<3x1x2xf32>
!b = tensor<3x2xf32>

// Expert e: hidden = relu(x * (e + 1) + [0 e]); down adds the two and 10 e. For the row [1 2]:
//   expert 0: 1 + 2 = 3      expert 1: 2 + 5 + 10 = 17      expert 2: 3 + 8 + 20 = 31
// The choices: 0.5 of 2 and 0.25 of 0; 2 of 1 and 1 of an expert that does not exist; 1 of 0 and 1 of 0.
//   15.5 + 0.75      34 + 0      3 + 3
// CHECK: data =
// CHECK-NEXT: [16.25]
// CHECK-NEXT: [34]
// CHECK-NEXT: [6]
func.func private @plain(%x: !x, %ids: !ids, %p: !p, %u: !up, %d: !down, %ub: !b, %db: tensor<3x1xf32>) {
  %0 = hone.moe relu %x, experts(%ids, %p), up(%u, %ub), down(%d, %db)
     : (!x, !ids, !p, !up, !down, !b, tensor<3x1xf32>) -> tensor<?x1xf32>
  %1 = tensor.cast %0 : tensor<?x1xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

// Gated by itself without biases, relu(h) h = h h: expert e gives (e + 1)^2 (1 + 4), so 5, 20, 45.
//   22.5 + 1.25      40      10
// CHECK: data =
// CHECK-NEXT: [23.75]
// CHECK-NEXT: [40]
// CHECK-NEXT: [10]
func.func private @gated(%x: !x, %ids: !ids, %p: !p, %u: !up, %d: !down) {
  %0 = hone.moe relu %x, experts(%ids, %p), up(%u), down(%d) gate(%u) : (!x, !ids, !p, !up, !down, !up) -> tensor<?x1xf32>
  %1 = tensor.cast %0 : tensor<?x1xf32> to tensor<*xf32>
  call @printMemrefF32(%1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %x = arith.constant dense<[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]> : tensor<3x2xf32>
  %ids = arith.constant dense<[[2, 0], [1, -1], [0, 0]]> : tensor<3x2xi32>
  %p = arith.constant dense<[[0.5, 0.25], [2.0, 1.0], [1.0, 1.0]]> : tensor<3x2xf32>
  %u = arith.constant dense<[[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [0.0, 3.0]]]> : !up
  %d = arith.constant dense<1.0> : !down
  %ub = arith.constant dense<[[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]> : !b
  %db = arith.constant dense<[[0.0], [10.0], [20.0]]> : tensor<3x1xf32>
  %xd = tensor.cast %x : tensor<3x2xf32> to !x
  %idsd = tensor.cast %ids : tensor<3x2xi32> to !ids
  %pd = tensor.cast %p : tensor<3x2xf32> to !p
  call @plain(%xd, %idsd, %pd, %u, %d, %ub, %db) : (!x, !ids, !p, !up, !down, !b, tensor<3x1xf32>) -> ()
  call @gated(%xd, %idsd, %pd, %u, %d) : (!x, !ids, !p, !up, !down) -> ()
  return
}
func.func private @printMemrefF32(tensor<*xf32>)
