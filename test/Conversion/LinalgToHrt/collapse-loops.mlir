// RUN: hone-opt %s --hone-lower-linalg | FileCheck %s

#whole = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#channel = affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, 0)>
#rows = affine_map<(d0, d1, d2) -> (d0, d1)>
#three = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Short rows of planes are one loop, and what a plane has one of is read before it.
// CHECK-LABEL: func.func @planes(
// CHECK: hrt.parallel @planes.loop
func.func @planes(%x: memref<?x8x6x6xf32>, %s: memref<?x8x1x1xf32>, %y: memref<?x8x6x6xf32>) {
  linalg.generic {indexing_maps = [#whole, #channel, #whole],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %s : memref<?x8x6x6xf32>, memref<?x8x1x1xf32>) outs(%y : memref<?x8x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// Elements in one order are one loop.
// CHECK-LABEL: func.func @elements(
// CHECK: hrt.parallel @elements.loop
func.func @elements(%x: memref<?x8x6x6xf32>, %y: memref<?x8x6x6xf32>) {
  linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<?x8x6x6xf32>) outs(%y : memref<?x8x6x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}

// So are those of a sum.
// CHECK-LABEL: func.func @sum(
// CHECK: hrt.parallel @sum.loop
func.func @sum(%x: memref<?x6x6xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#three, affine_map<(d0, d1, d2) -> (d0)>],
                  iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : memref<?x6x6xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// Rows of a part of a matrix do not follow each other.
// CHECK-LABEL: func.func @part(
// CHECK: hrt.parallel @part.loop
func.func @part(%x: memref<?x6xf32, strided<[8, 1]>>, %y: memref<?x6xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x6xf32, strided<[8, 1]>>) outs(%y : memref<?x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// A region that asks where it is keeps its loops.
// CHECK-LABEL: func.func @positions(
// CHECK: hrt.parallel @positions.loop
func.func @positions(%y: memref<?x6xi64>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      outs(%y : memref<?x6xi64>) {
  ^bb0(%b: i64):
    %i = linalg.index 1 : index
    %at = arith.index_cast %i : index to i64
    linalg.yield %at : i64
  }
  return
}

// CHECK-LABEL: func.func private @planes.loop(
// CHECK-SAME: memref<?x36xf32>
// CHECK: scf.for %[[PLANE:.*]] =
// CHECK: memref.load %{{.*}}[%[[PLANE]]]
// CHECK: scf.for %[[I:.*]] =
// CHECK: memref.load %{{.*}}[%[[PLANE]], %[[I]]]
// CHECK-NOT: memref.load
// CHECK: memref.store

// CHECK-LABEL: func.func private @elements.loop(
// CHECK-SAME: memref<?xf32>
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return

// CHECK-LABEL: func.func private @sum.loop(
// CHECK-SAME: memref<?x36xf32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return

// CHECK-LABEL: func.func private @part.loop(
// CHECK: scf.for
// CHECK: scf.for

// CHECK-LABEL: func.func private @positions.loop(
// CHECK: scf.for
// CHECK: scf.for
