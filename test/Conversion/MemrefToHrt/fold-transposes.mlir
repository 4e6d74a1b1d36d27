// RUN: hone-opt %s --hone-fold-transposes | FileCheck %s
// RUN: hone-opt %s --hone-fold-transposes --remarks-filter=hone-fold-transposes --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

!plain = memref<2x3x4x8xf32>
!transposed = memref<2x4x3x8xf32>

// REMARK-DAG: [Passed] Folded | Category:hone-fold-transposes | Remark="a transposition became strides
// CHECK-LABEL: func.func @reader(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<2x3x4x8xf32>
// CHECK: %[[VIEW:.*]] = memref.transpose %[[X]] (d0, d1, d2, d3) -> (d0, d2, d1, d3)
// CHECK: hrt.kernel "hone.rope.f32" %{{.*}} ins(%[[VIEW]]
// CHECK: hrt.state_append %{{.*}}[0], %[[VIEW]]
// CHECK-NOT: linalg.transpose
func.func @reader(%call: !hrt.call, %x: !plain, %y: !transposed) {
  %a = memref.alloc() : !transposed
  linalg.transpose ins(%x : !plain) outs(%a : !transposed) permutation = [0, 2, 1, 3]
  hrt.kernel "hone.rope.f32" %call ins(%a : !transposed) outs(%y : !transposed)
  %all = hrt.state_append %call[0], %a : !transposed -> memref<2x4x?x8xf32>
  return
}

// Loops go along rows of what they read.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<2x3x4x8xf32>
// CHECK: %[[VIEW:.*]] = memref.transpose %[[X]] (d0, d1, d2, d3) -> (d0, d2, d1, d3)
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins(%[[VIEW]]
#same = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @loop(%x: !plain, %y: !transposed) {
  %a = memref.alloc() : !transposed
  linalg.transpose ins(%x : !plain) outs(%a : !transposed) permutation = [0, 2, 1, 3]
  linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a : !transposed) outs(%y : !transposed) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  }
  return
}

// They would not where another dimension is the last of theirs.
// CHECK-LABEL: func.func @other_loop(
// CHECK: linalg.transpose
// CHECK: linalg.generic
#transposed = affine_map<(a, b, c, d) -> (a, b, d, c)>
func.func @other_loop(%x: !plain, %y: memref<2x4x8x3xf32>) {
  %a = memref.alloc() : !transposed
  linalg.transpose ins(%x : !plain) outs(%a : !transposed) permutation = [0, 2, 1, 3]
  linalg.generic {indexing_maps = [#transposed, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a : !transposed) outs(%y : memref<2x4x8x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// CHECK-LABEL: func.func @maker(
// CHECK: %[[Y:.*]] = memref.alloc() : memref<2x3x4x8xf32>
// CHECK: %[[VIEW:.*]] = memref.transpose %[[Y]] (d0, d1, d2, d3) -> (d0, d2, d1, d3)
// CHECK: hrt.kernel "hone.attention.f32" %{{.*}} ins(%{{.*}}) outs(%[[VIEW]]
// CHECK-NOT: linalg.transpose
// CHECK: memref.collapse_shape %[[Y]]
func.func @maker(%call: !hrt.call, %x: !transposed) -> memref<6x32xf32> {
  %a = memref.alloc() : !transposed
  hrt.kernel "hone.attention.f32" %call ins(%x : !transposed) outs(%a : !transposed)
  %y = memref.alloc() : !plain
  linalg.transpose ins(%a : !transposed) outs(%y : !plain) permutation = [0, 2, 1, 3]
  %rows = memref.collapse_shape %y [[0, 1], [2, 3]] : !plain into memref<6x32xf32>
  return %rows : memref<6x32xf32>
}

// The kernel, or something before it, writes what is transposed; something else reads it; the last dimension moves.
// REMARK-DAG: [Missed] Folded | {{.*}}a transposition copies: what it reads is written before the last of them reads it
// CHECK-LABEL: func.func @in_place(
// CHECK: linalg.transpose
func.func @in_place(%call: !hrt.call, %x: memref<2x3x3x8xf32>) {
  %a = memref.alloc() : memref<2x3x3x8xf32>
  linalg.transpose ins(%x : memref<2x3x3x8xf32>) outs(%a : memref<2x3x3x8xf32>) permutation = [0, 2, 1, 3]
  hrt.kernel "hone.rope.f32" %call ins(%a : memref<2x3x3x8xf32>) outs(%x : memref<2x3x3x8xf32>)
  return
}

// CHECK-LABEL: func.func @written_view(
// CHECK: linalg.transpose
func.func @written_view(%call: !hrt.call, %x: !plain, %y: !transposed, %zero: f32) {
  %a = memref.alloc() : !transposed
  %rows = memref.collapse_shape %x [[0, 1], [2, 3]] : !plain into memref<6x32xf32>
  linalg.transpose ins(%x : !plain) outs(%a : !transposed) permutation = [0, 2, 1, 3]
  linalg.fill ins(%zero : f32) outs(%rows : memref<6x32xf32>)
  hrt.kernel "hone.rope.f32" %call ins(%a : !transposed) outs(%y : !transposed)
  return
}

// REMARK-DAG: [Missed] Folded | {{.*}}a transposition copies: others than kernels and loops along its rows read it
// CHECK-LABEL: func.func @other_reader(
// CHECK: linalg.transpose
func.func @other_reader(%call: !hrt.call, %x: !plain, %y: !transposed) {
  %a = memref.alloc() : !transposed
  linalg.transpose ins(%x : !plain) outs(%a : !transposed) permutation = [0, 2, 1, 3]
  linalg.copy ins(%a : !transposed) outs(%y : !transposed)
  return
}

// REMARK-DAG: [Missed] Folded | {{.*}}a transposition copies: elements would not be contiguous
// CHECK-LABEL: func.func @last(
// CHECK: linalg.transpose
func.func @last(%call: !hrt.call, %x: memref<4x8xf32>, %y: memref<8x4xf32>) {
  %a = memref.alloc() : memref<8x4xf32>
  linalg.transpose ins(%x : memref<4x8xf32>) outs(%a : memref<8x4xf32>) permutation = [1, 0]
  hrt.kernel "hone.layer_norm.f32" %call ins(%a : memref<8x4xf32>) outs(%y : memref<8x4xf32>)
  return
}

// Matrices of a dense product may be column-major.
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x8xf32>, %[[W:[a-z0-9]+]]: memref<8x4xf32>
// CHECK-NOT: linalg.transpose
// CHECK: %[[XT:.*]] = memref.transpose %[[X]] (d0, d1) -> (d1, d0)
// CHECK: hrt.kernel "hone.matmul.f32" %{{.*}} ints [0] ins(%[[XT]], %{{.*}}
// CHECK: %[[WT:.*]] = memref.transpose %[[W]] (d0, d1) -> (d1, d0)
// CHECK: hrt.kernel "hone.linear.f32" %{{.*}} ins(%[[X]], %[[WT]]
func.func @product(%call: !hrt.call, %x: memref<?x8xf32>, %w: memref<8x4xf32>, %g: memref<?x4xf32>, %none: memref<f32>, %y: memref<8x4xf32>,
                   %z: memref<?x4xf32>, %rows: index) {
  %a = memref.alloc(%rows) : memref<8x?xf32>
  linalg.transpose ins(%x : memref<?x8xf32>) outs(%a : memref<8x?xf32>) permutation = [1, 0]
  hrt.kernel "hone.matmul.f32" %call ints [0] ins(%a, %g : memref<8x?xf32>, memref<?x4xf32>) outs(%y : memref<8x4xf32>)
  %b = memref.alloc() : memref<4x8xf32>
  linalg.transpose ins(%w : memref<8x4xf32>) outs(%b : memref<4x8xf32>) permutation = [1, 0]
  hrt.kernel "hone.linear.f32" %call ints [1] ins(%x, %b, %none : memref<?x8xf32>, memref<4x8xf32>, memref<f32>) outs(%z : memref<?x4xf32>)
  return
}

// The GPU's bring both operands into order, whatever their rows are.
// CHECK-LABEL: func.func @product_of_gpu(
// CHECK-SAME: %[[G:[a-z0-9]+]]: memref<?x8xf32>, %[[X:[a-z0-9]+]]: memref<?x4xf32>
// CHECK-NOT: linalg.transpose
// CHECK: %[[GT:.*]] = memref.transpose %[[G]] (d0, d1) -> (d1, d0)
// CHECK: %[[XT:.*]] = memref.transpose %[[X]] (d0, d1) -> (d1, d0)
// CHECK: hrt.kernel "cuda.linear.f32" %{{.*}} ints [0] ins(%[[GT]], %[[XT]]
func.func @product_of_gpu(%call: !hrt.call, %g: memref<?x8xf32>, %x: memref<?x4xf32>, %none: memref<f32>, %y: memref<8x4xf32>, %rows: index) {
  %a = memref.alloc(%rows) : memref<8x?xf32>
  linalg.transpose ins(%g : memref<?x8xf32>) outs(%a : memref<8x?xf32>) permutation = [1, 0]
  %b = memref.alloc(%rows) : memref<4x?xf32>
  linalg.transpose ins(%x : memref<?x4xf32>) outs(%b : memref<4x?xf32>) permutation = [1, 0]
  hrt.kernel "cuda.linear.f32" %call ints [0] ins(%a, %b, %none, %none, %none : memref<8x?xf32>, memref<4x?xf32>, memref<f32>, memref<f32>, memref<f32>) outs(%y : memref<8x4xf32>)
  return
}

// What goes through others is copied: their rows would not be contiguous.
// CHECK-LABEL: func.func @rows_of_product(
// CHECK: linalg.transpose
// CHECK: hrt.kernel "hone.linear.f32"
func.func @rows_of_product(%call: !hrt.call, %x: memref<8x6xf32>, %w: memref<4x8xf32>, %none: memref<f32>, %z: memref<6x4xf32>) {
  %a = memref.alloc() : memref<6x8xf32>
  linalg.transpose ins(%x : memref<8x6xf32>) outs(%a : memref<6x8xf32>) permutation = [1, 0]
  hrt.kernel "hone.linear.f32" %call ints [1] ins(%a, %w, %none : memref<6x8xf32>, memref<4x8xf32>, memref<f32>) outs(%z : memref<6x4xf32>)
  return
}
