// RUN: hone-opt %s --hone-lower-linalg | FileCheck %s

// The update of a parameter and its moments runs by blocks, of whose arrays later lines are prefetched, none from after the range: four of
// f32 a block, and two of the gradient's bf16.
#plain = affine_map<(d0) -> (d0)>
func.func @update(%g: memref<?xbf16>, %p: memref<?xf32>, %m: memref<?xf32>, %v: memref<?xf32>) {
  linalg.generic {indexing_maps = [#plain, #plain, #plain, #plain], iterator_types = ["parallel"]}
      ins(%g : memref<?xbf16>) outs(%p, %m, %v : memref<?xf32>, memref<?xf32>, memref<?xf32>) {
  ^bb0(%a: bf16, %b: f32, %c: f32, %d: f32):
    %e = arith.extf %a : bf16 to f32
    %x = arith.addf %b, %e : f32
    %y = arith.addf %c, %e : f32
    %z = arith.addf %d, %e : f32
    linalg.yield %x, %y, %z : f32, f32, f32
  }
  return
}

// The processor prefetches three arrays by itself, and as many of a loop that updates nothing.
func.func @add(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %d: memref<?xf32>, %sum: memref<?xf32>) {
  linalg.generic {indexing_maps = [#plain, #plain, #plain, #plain, #plain], iterator_types = ["parallel"]}
      ins(%a, %b, %c, %d : memref<?xf32>, memref<?xf32>, memref<?xf32>, memref<?xf32>) outs(%sum : memref<?xf32>) {
  ^bb0(%e: f32, %f: f32, %g: f32, %h: f32, %out: f32):
    %x = arith.addf %e, %f : f32
    %y = arith.addf %g, %h : f32
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  }
  return
}
func.func @momentum(%g: memref<?xf32>, %p: memref<?xf32>, %v: memref<?xf32>) {
  linalg.generic {indexing_maps = [#plain, #plain, #plain], iterator_types = ["parallel"]}
      ins(%g : memref<?xf32>) outs(%p, %v : memref<?xf32>, memref<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.addf %b, %a : f32
    %y = arith.addf %c, %a : f32
    linalg.yield %x, %y : f32, f32
  }
  return
}

// CHECK-LABEL: func.func private @update.loop(
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index, %{{.*}}: index,
// CHECK-SAME: %[[G:[a-z0-9]+]]: memref<?xbf16>, %[[P:[a-z0-9]+]]: memref<?xf32>, %[[M:[a-z0-9]+]]: memref<?xf32>, %[[V:[a-z0-9]+]]: memref<?xf32>)
// CHECK: %[[BLOCK:.*]] = arith.constant 64 : index
// CHECK: %[[LAST:.*]] = arith.subi %[[END]], %{{.*}} : index
// CHECK: %[[REST:.*]] = arith.addi %[[BEGIN]], %{{.*}} : index
// CHECK: scf.for %[[FIRST:.*]] = %[[BEGIN]] to %[[REST]] step %[[BLOCK]] {
// CHECK: %[[LATER:.*]] = arith.addi %[[FIRST]], %{{.*}} : index
// CHECK: %[[INSIDE:.*]] = arith.minui %[[LATER]], %[[LAST]] : index
// CHECK: memref.prefetch %[[G]][%[[INSIDE]]], read, locality<3>, data : memref<?xbf16>
// CHECK: memref.prefetch %[[G]]
// CHECK-NOT: memref.prefetch %[[G]]
// CHECK-COUNT-4: memref.prefetch %[[P]]
// CHECK-COUNT-4: memref.prefetch %[[M]]
// CHECK-COUNT-4: memref.prefetch %[[V]]
// CHECK-NOT: memref.prefetch
// CHECK: %[[NEXT:.*]] = arith.addi %[[FIRST]], %[[BLOCK]] : index
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[NEXT]] step
// CHECK: scf.for %{{.*}} = %[[REST]] to %[[END]] step
// CHECK-NOT: memref.prefetch
