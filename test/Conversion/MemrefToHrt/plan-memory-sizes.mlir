// RUN: hone-opt %s --hone-plan-memory --canonicalize --cse | FileCheck %s
// RUN: hone-opt %s --pass-pipeline='builtin.module(func.func(hone-plan-memory{batch=100 size=200}),canonicalize,cse)' \
// RUN:   | FileCheck %s --check-prefix=LIKELY

func.func private @use(memref<100000xf32>, memref<?x?xf32>)
func.func private @use_last(memref<10000xf32>)

// The last buffer takes the slot that is the nearest from above: of what is not known as large as that is likely to be.
// CHECK-LABEL: func.func @choose(
// CHECK: %[[SLOTS:.*]]:2 = hrt.arena
// CHECK: memref.view %[[SLOTS]]#1[%{{.*}}][%{{.*}}, %{{.*}}] : memref<?xi8> to memref<?x?xf32>
// CHECK: memref.view %[[SLOTS]]#0[%{{.*}}][] : memref<?xi8> to memref<10000xf32>
// LIKELY-LABEL: func.func @choose(
// LIKELY: %[[SLOTS:.*]]:2 = hrt.arena
// LIKELY: memref.view %[[SLOTS]]#1[%{{.*}}][%{{.*}}, %{{.*}}] : memref<?xi8> to memref<?x?xf32>
// LIKELY: memref.view %[[SLOTS]]#1[%{{.*}}][] : memref<?xi8> to memref<10000xf32>
func.func @choose(%call: !hrt.call) attributes {hrt.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %input = hrt.input %call[0] : memref<?x?xf32>
  %rows = memref.dim %input, %c0 : memref<?x?xf32>
  %columns = memref.dim %input, %c1 : memref<?x?xf32>
  %known = memref.alloc() : memref<100000xf32>
  %unknown = memref.alloc(%rows, %columns) : memref<?x?xf32>
  call @use(%known, %unknown) : (memref<100000xf32>, memref<?x?xf32>) -> ()
  memref.dealloc %known : memref<100000xf32>
  memref.dealloc %unknown : memref<?x?xf32>
  %last = memref.alloc() : memref<10000xf32>
  call @use_last(%last) : (memref<10000xf32>) -> ()
  memref.dealloc %last : memref<10000xf32>
  return
}
