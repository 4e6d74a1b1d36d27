// RUN: hone-opt %s --hone-place-outputs | FileCheck %s

func.func private @use(memref<?xf32>)

// CHECK-LABEL: func.func @place(
// CHECK-SAME: %[[CALL:[a-z0-9]+]]: !hrt.call, %[[N:[a-z0-9]+]]: index
// CHECK: %[[Y:.*]] = hrt.output %[[CALL]][0] (%[[N]])
// CHECK: call @use(%[[Y]])
// CHECK-NOT: memref.{{[a-z]+}}
// CHECK: return
func.func @place(%call: !hrt.call, %n: index) attributes {hrt.entry} {
  %a = memref.alloc(%n) : memref<?xf32>
  call @use(%a) : (memref<?xf32>) -> ()
  %y = hrt.output %call[0](%n) : memref<?xf32>
  memref.copy %a, %y : memref<?xf32> to memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  return
}

// One buffer as two outputs: the copy of the first stays.
// CHECK-LABEL: func.func @twice(
// CHECK: %[[SECOND:.*]] = hrt.output %{{.*}}[1]
// CHECK: call @use(%[[SECOND]])
// CHECK: %[[FIRST:.*]] = hrt.output %{{.*}}[0]
// CHECK: memref.copy %[[SECOND]], %[[FIRST]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @twice(%call: !hrt.call, %n: index) attributes {hrt.entry} {
  %a = memref.alloc(%n) : memref<?xf32>
  call @use(%a) : (memref<?xf32>) -> ()
  %y = hrt.output %call[0](%n) : memref<?xf32>
  memref.copy %a, %y : memref<?xf32> to memref<?xf32>
  %z = hrt.output %call[1](%n) : memref<?xf32>
  memref.copy %a, %z : memref<?xf32> to memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  return
}

// Used after the copy, or not a buffer of this call's: the copy stays.
// CHECK-LABEL: func.func @keep(
// CHECK: memref.alloc
// CHECK: memref.copy
// CHECK: memref.copy
func.func @keep(%call: !hrt.call, %n: index) attributes {hrt.entry} {
  %x = hrt.input %call[0] : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  %view = memref.subview %a[0] [%n] [1] : memref<?xf32> to memref<?xf32>
  %y = hrt.output %call[0](%n) : memref<?xf32>
  memref.copy %a, %y : memref<?xf32> to memref<?xf32>
  call @use(%view) : (memref<?xf32>) -> ()
  %z = hrt.output %call[1](%n) : memref<?xf32>
  memref.copy %x, %z : memref<?xf32> to memref<?xf32>
  memref.dealloc %a : memref<?xf32>
  return
}
