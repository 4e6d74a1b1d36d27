// RUN: hone-opt %s --hone-place-slices | FileCheck %s --implicit-check-not=memref.copy

!half = memref<2x16x4x4xf32>
!whole = memref<2x32x4x4xf32>
!part = memref<2x16x4x4xf32, strided<[512, 16, 4, 1]>>
!second = memref<2x16x4x4xf32, strided<[512, 16, 4, 1], offset: 256>>

// CHECK-LABEL: func.func @concatenation(
// CHECK: %[[WHOLE:.*]] = memref.alloc() : memref<2x32x4x4xf32>
// CHECK: %[[FIRST:.*]] = memref.subview %[[WHOLE]][0, 0, 0, 0]
// CHECK: hrt.kernel "hone.pool.f32" {{.*}} outs(%[[FIRST]] :
// CHECK: %[[SECOND:.*]] = memref.subview %[[WHOLE]][0, 16, 0, 0]
// CHECK: hrt.kernel "hone.pool.f32" {{.*}} ins(%[[FIRST]] : {{.*}} outs(%[[SECOND]] :
// CHECK: hrt.kernel "hone.pool.f32" {{.*}} ins(%[[WHOLE]] :
func.func @concatenation(%call: !hrt.call, %x: !half, %y: !whole) {
  %a = memref.alloc() : !half
  hrt.kernel "hone.pool.f32" %call ins(%x : !half) outs(%a : !half)
  %b = memref.alloc() : !half
  hrt.kernel "hone.pool.f32" %call ins(%a : !half) outs(%b : !half)
  %all = memref.alloc() : !whole
  %first = memref.subview %all[0, 0, 0, 0] [2, 16, 4, 4] [1, 1, 1, 1] : !whole to !part
  memref.copy %a, %first : !half to !part
  %second = memref.subview %all[0, 16, 0, 0] [2, 16, 4, 4] [1, 1, 1, 1] : !whole to !second
  memref.copy %b, %second : !half to !second
  hrt.kernel "hone.pool.f32" %call ins(%all : !whole) outs(%y : !whole)
  return
}

// The sizes of what it is copied to are only known after it is computed; the other one is placed.
// CHECK-LABEL: func.func @later_sizes(
// CHECK: hrt.kernel "hone.pool.f32"
// CHECK: memref.copy
func.func @later_sizes(%call: !hrt.call, %x: memref<?x16x4x4xf32>, %y: !whole, %known: index) {
  %a = memref.alloc(%known) : memref<?x16x4x4xf32>
  hrt.kernel "hone.pool.f32" %call ins(%x : memref<?x16x4x4xf32>) outs(%a : memref<?x16x4x4xf32>)
  %c1 = arith.constant 1 : index
  %later = arith.addi %known, %c1 : index
  %all = memref.alloc(%later) : memref<?x32x4x4xf32>
  %first = memref.subview %all[0, 0, 0, 0] [%later, 16, 4, 4] [1, 1, 1, 1]
      : memref<?x32x4x4xf32> to memref<?x16x4x4xf32, strided<[512, 16, 4, 1]>>
  memref.copy %a, %first : memref<?x16x4x4xf32> to memref<?x16x4x4xf32, strided<[512, 16, 4, 1]>>
  %b = memref.alloc(%later) : memref<?x16x4x4xf32>
  hrt.kernel "hone.pool.f32" %call ins(%a : memref<?x16x4x4xf32>) outs(%b : memref<?x16x4x4xf32>)
  %second = memref.subview %all[0, 16, 0, 0] [%later, 16, 4, 4] [1, 1, 1, 1]
      : memref<?x32x4x4xf32> to memref<?x16x4x4xf32, strided<[512, 16, 4, 1], offset: 256>>
  memref.copy %b, %second : memref<?x16x4x4xf32> to memref<?x16x4x4xf32, strided<[512, 16, 4, 1], offset: 256>>
  hrt.kernel "hone.pool.f32" %call ins(%all : memref<?x32x4x4xf32>) outs(%y : !whole)
  return
}

// What is written again after the copy, parts that overlap, and what is reshaped stay copies.
// CHECK-LABEL: func.func @written_again(
// CHECK: memref.copy
func.func @written_again(%call: !hrt.call, %x: !half, %y: !whole) {
  %a = memref.alloc() : !half
  hrt.kernel "hone.pool.f32" %call ins(%x : !half) outs(%a : !half)
  %all = memref.alloc() : !whole
  %first = memref.subview %all[0, 0, 0, 0] [2, 16, 4, 4] [1, 1, 1, 1] : !whole to !part
  memref.copy %a, %first : !half to !part
  hrt.kernel "hone.pool.f32" %call ins(%x : !half) outs(%a : !half)
  hrt.kernel "hone.pool.f32" %call ins(%all : !whole) outs(%y : !whole)
  return
}

// CHECK-LABEL: func.func @overlapping(
// CHECK-COUNT-2: memref.copy
func.func @overlapping(%call: !hrt.call, %x: !half, %y: !whole) {
  %a = memref.alloc() : !half
  hrt.kernel "hone.pool.f32" %call ins(%x : !half) outs(%a : !half)
  %b = memref.alloc() : !half
  hrt.kernel "hone.pool.f32" %call ins(%a : !half) outs(%b : !half)
  %all = memref.alloc() : !whole
  %first = memref.subview %all[0, 0, 0, 0] [2, 16, 4, 4] [1, 1, 1, 1] : !whole to !part
  memref.copy %a, %first : !half to !part
  %second = memref.subview %all[0, 8, 0, 0] [2, 16, 4, 4] [1, 1, 1, 1]
      : !whole to memref<2x16x4x4xf32, strided<[512, 16, 4, 1], offset: 128>>
  memref.copy %b, %second : !half to memref<2x16x4x4xf32, strided<[512, 16, 4, 1], offset: 128>>
  hrt.kernel "hone.pool.f32" %call ins(%all : !whole) outs(%y : !whole)
  return
}

// CHECK-LABEL: func.func @reshaped(
// CHECK: memref.copy
func.func @reshaped(%call: !hrt.call, %x: !half, %y: !whole, %z: memref<2x256xf32>) {
  %a = memref.alloc() : !half
  hrt.kernel "hone.pool.f32" %call ins(%x : !half) outs(%a : !half)
  %rows = memref.collapse_shape %a [[0], [1, 2, 3]] : !half into memref<2x256xf32>
  hrt.kernel "hone.softmax.f32" %call ins(%rows : memref<2x256xf32>) outs(%z : memref<2x256xf32>)
  %all = memref.alloc() : !whole
  %first = memref.subview %all[0, 0, 0, 0] [2, 16, 4, 4] [1, 1, 1, 1] : !whole to !part
  memref.copy %a, %first : !half to !part
  hrt.kernel "hone.pool.f32" %call ins(%all : !whole) outs(%y : !whole)
  return
}

// Results of every second place, as a transposed convolution has them.
// CHECK-LABEL: func.func @interleaved(
// CHECK: %[[ALL:.*]] = memref.alloc() : memref<2x16x4x8xf32>
// CHECK: %[[EVEN:.*]] = memref.subview %[[ALL]][0, 0, 0, 0]
// CHECK: hrt.kernel "hone.pool.f32" {{.*}} outs(%[[EVEN]]
// CHECK: %[[ODD:.*]] = memref.subview %[[ALL]][0, 0, 0, 1]
// CHECK: hrt.kernel "hone.pool.f32" {{.*}} outs(%[[ODD]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @interleaved(%call: !hrt.call, %x: !half, %y: memref<2x16x4x8xf32>) {
  %all = memref.alloc() : memref<2x16x4x8xf32>
  %a = memref.alloc() : !half
  hrt.kernel "hone.pool.f32" %call ins(%x : !half) outs(%a : !half)
  %even = memref.subview %all[0, 0, 0, 0] [2, 16, 4, 4] [1, 1, 1, 2] : memref<2x16x4x8xf32> to memref<2x16x4x4xf32, strided<[512, 32, 8, 2]>>
  memref.copy %a, %even : !half to memref<2x16x4x4xf32, strided<[512, 32, 8, 2]>>
  %b = memref.alloc() : !half
  hrt.kernel "hone.pool.f32" %call ins(%x : !half) outs(%b : !half)
  %odd = memref.subview %all[0, 0, 0, 1] [2, 16, 4, 4] [1, 1, 1, 2] : memref<2x16x4x8xf32> to memref<2x16x4x4xf32, strided<[512, 32, 8, 2], offset: 1>>
  memref.copy %b, %odd : !half to memref<2x16x4x4xf32, strided<[512, 32, 8, 2], offset: 1>>
  hrt.kernel "hone.pool.f32" %call ins(%all : memref<2x16x4x8xf32>) outs(%y : memref<2x16x4x8xf32>)
  return
}
