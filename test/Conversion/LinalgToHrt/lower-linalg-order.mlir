// RUN: hone-opt %s --hone-lower-linalg | FileCheck %s

// Most operands are contiguous along the first dimension: it is the inner loop.
// CHECK-LABEL: func.func private @columns.loop
// CHECK: scf.for
// CHECK: scf.for %[[INNER:.*]] =
// CHECK: memref.load %{{.*}}[%{{.*}}, %[[INNER]]]
// CHECK: memref.store %{{.*}}, %{{.*}}[%{{.*}}, %[[INNER]]]
func.func @columns(%x: memref<?x?xf32>, %bias: memref<?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1, d0)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  }
  return
}

// What is transposed is read as it lies: neighbours in memory are one loop.
// CHECK-LABEL: func.func private @transposed.loop
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @transposed(%x: memref<?x?x?xf32>, %y: memref<?x?x?xf32>) {
  %from = memref.transpose %x (d0, d1, d2) -> (d2, d0, d1) : memref<?x?x?xf32> to memref<?x?x?xf32, strided<[1, ?, ?]>>
  %to = memref.transpose %y (d0, d1, d2) -> (d2, d0, d1) : memref<?x?x?xf32> to memref<?x?x?xf32, strided<[1, ?, ?]>>
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%from : memref<?x?x?xf32, strided<[1, ?, ?]>>) outs(%to : memref<?x?x?xf32, strided<[1, ?, ?]>>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// A dimension of one element is no loop; what is before it is as contiguous.
// CHECK-LABEL: func.func private @ones.loop
// CHECK: scf.for %[[INNER:.*]] =
// CHECK: memref.load %{{.*}}[%[[INNER]]]
// CHECK-NOT: scf.for
// CHECK: } {llvm.loop_annotation
func.func @ones(%x: memref<?x1xf32>, %y: memref<?x1xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x1xf32>) outs(%y : memref<?x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// Indices that are sums, as windows have them: neighbours of the result read neighbours, so that they are the inner loop.
// CHECK-LABEL: func.func private @window.loop
// CHECK: scf.for %[[TAP:.*]] =
// CHECK: scf.for %[[INNER:.*]] =
// CHECK: %[[INDEX:.*]] = affine.apply {{.*}}(%[[INNER]], %[[TAP]])
// CHECK: memref.load %{{.*}}[%[[INDEX]]]
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[INNER]]]
func.func @window(%x: memref<?xf32>, %k: memref<?xf32>, %y: memref<?xf32>) {
  linalg.conv_1d ins(%x, %k : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  return
}

// A region that asks where it is.
// CHECK-LABEL: func.func private @positions.loop
// CHECK: scf.for %[[I:.*]] =
// CHECK: arith.index_cast %[[I]]
func.func @positions(%y: memref<?xi64>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%y : memref<?xi64>) {
  ^bb0(%b: i64):
    %i = linalg.index 0 : index
    %at = arith.index_cast %i : index to i64
    linalg.yield %at : i64
  }
  return
}

// What may be broadcast along the inner loop: where nothing is, neighbours are read for neighbours.
// CHECK-LABEL: func.func private @maybe_broadcast.loop
// CHECK: scf.if %{{.*}} {
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[AT:.*]] = arith.select %{{.*}}, %{{.*}}, %[[I]]
// CHECK: memref.load %{{.*}}[%{{.*}}, %[[AT]]]
// CHECK: } else {
// CHECK: scf.for %[[J:.*]] =
// CHECK: memref.load %{{.*}}[%{{.*}}, %[[J]]]
func.func @maybe_broadcast(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %isOne: i1) {
  %zero = arith.constant 0 : index
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%y : memref<?x?xf32>) {
  ^bb0(%b: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %row = arith.select %isOne, %zero, %i : index
    %column = arith.select %isOne, %zero, %j : index
    %a = memref.load %x[%row, %column] : memref<?x?xf32>
    linalg.yield %a : f32
  }
  return
}
