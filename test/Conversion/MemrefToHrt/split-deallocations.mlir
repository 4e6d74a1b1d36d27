// RUN: hone-opt %s --hone-split-deallocations | FileCheck %s --enable-var-scope

// CHECK-LABEL: func @apart
// CHECK-SAME: %[[C:.*]]: i1
func.func @apart(%c: i1) {
  // CHECK: %[[A:.*]] = memref.alloc
  // CHECK: %[[B:.*]] = memref.alloc
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<8xf32>
  // CHECK-NEXT: bufferization.dealloc (%[[A]] : memref<4xf32>) if (%[[C]])
  // CHECK-NEXT: bufferization.dealloc (%[[B]] : memref<8xf32>) if (%[[C]])
  // CHECK-NEXT: return
  bufferization.dealloc (%a, %b : memref<4xf32>, memref<8xf32>) if (%c, %c)
  return
}

// What may be one of two stays with both.
// CHECK-LABEL: func @selected
func.func @selected(%c: i1) {
  // CHECK: %[[A:.*]] = memref.alloc
  // CHECK: %[[B:.*]] = memref.alloc
  // CHECK: %[[D:.*]] = memref.alloc
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  %d = memref.alloc() : memref<4xf32>
  // CHECK: %[[S:.*]] = arith.select
  %s = arith.select %c, %a, %b : memref<4xf32>
  // CHECK-NEXT: bufferization.dealloc (%[[D]] :
  // CHECK-NEXT: bufferization.dealloc (%[[A]], %[[B]], %[[S]] :
  bufferization.dealloc (%a, %b, %s, %d : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>) if (%c, %c, %c, %c)
  return
}

// What is retained is not freed.
// CHECK-LABEL: func @retained
func.func @retained(%c: i1) -> (memref<4xf32>, i1) {
  // CHECK: %[[A:.*]] = memref.alloc
  // CHECK: %[[B:.*]] = memref.alloc
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  // CHECK-NEXT: bufferization.dealloc (%[[B]] :
  // CHECK-NEXT: %[[O:.*]] = bufferization.dealloc (%[[A]] : memref<4xf32>) if (%{{.*}}) retain (%[[A]] : memref<4xf32>)
  // CHECK-NEXT: return %[[A]], %[[O]]
  %o = bufferization.dealloc (%a, %b : memref<4xf32>, memref<4xf32>) if (%c, %c) retain (%a : memref<4xf32>)
  return %a, %o : memref<4xf32>, i1
}
