// RUN: hone-opt %s --hone-lower-linalg | FileCheck %s
// RUN: hone-opt %s --hone-lower-linalg --remarks-filter=hone-lower-linalg --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#plain = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>

// CHECK: #llvm.loop_annotation<parallelAccesses = #access_group

// A function of a range of positions: rows that it touches, and of each the columns that are in the range.
// REMARK: [Passed] Parallel | Category:hone-lower-linalg | Remark="linalg.generic may run on several threads
// CHECK-LABEL: func.func @add(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x?xf32>, %[[BIAS:[a-z0-9]+]]: memref<?xf32>, %[[Y:[a-z0-9]+]]: memref<?x?xf32>
// CHECK: %[[ROWS:.*]] = memref.dim %[[X]], %{{.*}}
// CHECK: %[[COLUMNS:.*]] = memref.dim %[[X]], %{{.*}}
// CHECK: %[[COUNT:.*]] = arith.muli %[[ROWS]], %[[COLUMNS]]
// CHECK: hrt.parallel @add.loop of %[[COUNT]] cost %{{.*}}({{.*}})
func.func @add(%x: memref<?x?xf32>, %bias: memref<?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#plain, #column, #plain], iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  }
  return
}

// The reduction runs along the rows: a value, whose sums may be reordered.
// CHECK-LABEL: func.func @sum_rows(
// CHECK: hrt.parallel @sum_rows.loop of
func.func @sum_rows(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#plain, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  }
  return
}

// The columns are contiguous: they are innermost, and no sum is reordered.
// CHECK-LABEL: func.func @sum_columns(
// CHECK: hrt.parallel @sum_columns.loop of
func.func @sum_columns(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#plain, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  }
  return
}

// What the region uses from outside is captured, constants are made again.
// CHECK-LABEL: func.func @scale(
// CHECK-SAME: %[[FACTOR:[a-z0-9]+]]: f32)
// CHECK: hrt.parallel @scale.loop of %{{.*}} cost %{{.*}}({{.*}}%[[FACTOR]] : {{.*}}f32)
func.func @scale(%x: memref<?xf32>, %y: memref<?xf32>, %factor: f32) {
  %two = arith.constant 2.0 : f32
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.mulf %a, %factor : f32
    %1 = arith.mulf %0, %two : f32
    linalg.yield %1 : f32
  }
  return
}

// Too small for a function of its own.
// REMARK: [Missed] Parallel | Category:hone-lower-linalg | Remark="linalg.copy runs on one thread: it is small
// CHECK-LABEL: func.func @small(
// CHECK-NOT: hrt.parallel
// CHECK: scf.for
// CHECK: {llvm.loop_annotation = #{{.*}}}
func.func @small(%x: memref<4xf32>, %y: memref<4xf32>) {
  linalg.copy ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}

// An iteration that may fail ends the call: that is only possible on the thread of the call.
// REMARK: [Missed] Parallel | Category:hone-lower-linalg | Remark="linalg.generic runs on one thread: its iterations depend on each other or may fail
// CHECK-LABEL: func.func @checked(
// CHECK-NOT: hrt.parallel
// CHECK-NOT: llvm.loop_annotation
// CHECK: hrt.check
func.func @checked(%x: memref<?xi64>, %y: memref<?xi64>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : memref<?xi64>) outs(%y : memref<?xi64>) {
  ^bb0(%a: i64, %b: i64):
    %i = linalg.index 0 : index
    %at = arith.index_cast %i : index to i64
    %good = arith.cmpi sle, %a, %at : i64
    hrt.check %good, "too large"
    linalg.yield %a : i64
  }
  return
}

// All iterations write one element: which of them is the last matters.
// CHECK-LABEL: func.func @last(
// CHECK-NOT: hrt.parallel
// CHECK-NOT: llvm.loop_annotation
// CHECK: return
func.func @last(%x: memref<?xf32>, %y: memref<1xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32>) outs(%y : memref<1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// CHECK-LABEL: func.func private @add.loop(
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index,
// CHECK: %[[FIRST:.*]] = arith.divui %[[BEGIN]], %[[WIDTH:.*]] : index
// CHECK: %[[LAST:.*]] = arith.ceildivui %[[END]], %[[WIDTH]] : index
// CHECK: scf.for %[[ROW:.*]] = %[[FIRST]] to %[[LAST]]
// CHECK: %[[FROM:.*]] = arith.maxsi
// CHECK: %[[TO:.*]] = arith.minsi
// CHECK: scf.for %[[COLUMN:.*]] = %[[FROM]] to %[[TO]]
// CHECK: memref.load %{{.*}}[%[[ROW]], %[[COLUMN]]]
// CHECK: memref.load %{{.*}}[%[[COLUMN]]]
// CHECK: } {llvm.loop_annotation = #{{.*}}}

// CHECK-LABEL: func.func private @sum_rows.loop(
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index,
// CHECK: scf.for %[[ROW:.*]] = %[[BEGIN]] to %[[END]]
// CHECK: %[[INITIAL:.*]] = memref.load %[[Y:.*]][%[[ROW]]]
// CHECK: %[[TOTAL:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[INITIAL]])
// CHECK: arith.addf {{.*}} fastmath<reassoc,contract>
// CHECK: memref.store %[[TOTAL]], %[[Y]][%[[ROW]]]

// CHECK-LABEL: func.func private @sum_columns.loop(
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index,
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK-NOT: fastmath
// CHECK: } {llvm.loop_annotation

// CHECK-LABEL: func.func private @scale.loop(
// CHECK-SAME: f32)
// CHECK: arith.constant 2.0
