// RUN: hone-opt %s --hone-plan-memory --canonicalize --cse | FileCheck %s
// RUN: hone-opt %s --hone-plan-memory --remarks-filter=hone-plan-memory --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

func.func private @use(memref<?xf32>)
func.func private @use2(memref<?xf32>, memref<?xf32>)
func.func private @size() -> index

// The third buffer takes the slot of the first, which nothing reads any more; the slot is as large as the larger of the two.
// CHECK-LABEL: func.func @share(
// CHECK-SAME: %[[CALL:.*]]: !hrt.call
// CHECK-DAG: %[[INPUT:.*]] = hrt.input %[[CALL]][0]
// CHECK-DAG: %[[N:.*]] = memref.dim %[[INPUT]]
// CHECK: %[[SLOTS:.*]]:2 = hrt.arena %[[CALL]](%[[BYTES:.*]], %{{.*}}) : memref<?xi8>, memref<?xi8>
// CHECK: %[[A:.*]] = memref.view %[[SLOTS]]#0[%{{.*}}][%[[N]]]
// CHECK: call @use(%[[A]])
// CHECK: %[[B:.*]] = memref.view %[[SLOTS]]#1
// CHECK: call @use2(%[[A]], %[[B]])
// CHECK: %[[C:.*]] = memref.view %[[SLOTS]]#0
// CHECK: call @use2(%[[B]], %[[C]])
// CHECK-NOT: memref.dealloc
func.func @share(%call: !hrt.call) attributes {hrt.entry} {
  %c0 = arith.constant 0 : index
  %input = hrt.input %call[0] : memref<?xf32>
  %n = memref.dim %input, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  call @use(%a) : (memref<?xf32>) -> ()
  %b = memref.alloc(%n) : memref<?xf32>
  call @use2(%a, %b) : (memref<?xf32>, memref<?xf32>) -> ()
  %twice = arith.addi %n, %n : index
  %c = memref.alloc(%twice) : memref<?xf32>
  call @use2(%b, %c) : (memref<?xf32>, memref<?xf32>) -> ()
  memref.dealloc %a : memref<?xf32>
  memref.dealloc %b : memref<?xf32>
  memref.dealloc %c : memref<?xf32>
  return
}

// A view keeps its buffer in use.
// CHECK-LABEL: func.func @view(
// CHECK: hrt.arena %{{.*}}(%{{.*}}, %{{.*}}) : memref<?xi8>, memref<?xi8>
func.func @view(%call: !hrt.call) attributes {hrt.entry} {
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<64xf32>
  %view = memref.subview %a[0] [32] [1] : memref<64xf32> to memref<32xf32>
  %cast = memref.cast %view : memref<32xf32> to memref<?xf32>
  %b = memref.alloc(%c64) : memref<?xf32>
  call @use(%b) : (memref<?xf32>) -> ()
  call @use(%cast) : (memref<?xf32>) -> ()
  memref.dealloc %a : memref<64xf32>
  memref.dealloc %b : memref<?xf32>
  return
}

func.func private @transposed(memref<?x?xf32, strided<[1, ?]>>)

// So does a transposed view of a reshaped one.
// CHECK-LABEL: func.func @turned_view(
// CHECK: hrt.arena %{{.*}}(%{{.*}}, %{{.*}}) : memref<?xi8>, memref<?xi8>
func.func @turned_view(%call: !hrt.call, %shape: memref<2xindex>) attributes {hrt.entry} {
  %c64 = arith.constant 64 : index
  %a = memref.alloc(%c64) : memref<?xf32>
  %square = memref.reshape %a(%shape) : (memref<?xf32>, memref<2xindex>) -> memref<?x?xf32>
  %transposed = memref.transpose %square (i, j) -> (j, i) : memref<?x?xf32> to memref<?x?xf32, strided<[1, ?]>>
  %b = memref.alloc(%c64) : memref<?xf32>
  call @use(%b) : (memref<?xf32>) -> ()
  call @transposed(%transposed) : (memref<?x?xf32, strided<[1, ?]>>) -> ()
  memref.dealloc %a : memref<?xf32>
  memref.dealloc %b : memref<?xf32>
  return
}

// What is freed elsewhere, allocated in a loop, or of a size that comes late, is not planned.
// REMARK-DAG: [Missed] Planned | Category:hone-plan-memory | Remark="a buffer is allocated when it is needed: its size is only known on the way
// REMARK-DAG: [Missed] Planned | Category:hone-plan-memory | Remark="a buffer is allocated when it is needed: it is freed in more than one place
// CHECK-LABEL: func.func @keep(
// CHECK: hrt.arena %{{.*}}(%{{.*}}) : memref<?xi8>
// CHECK: %[[N:.*]] = call @size()
// CHECK: memref.alloc(%[[N]])
// CHECK: scf.for
// CHECK: memref.alloc
// CHECK: memref.dealloc
func.func @keep(%call: !hrt.call, %c: i1) attributes {hrt.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %planned = memref.alloc(%c1) : memref<?xf32>
  call @use(%planned) : (memref<?xf32>) -> ()
  memref.dealloc %planned : memref<?xf32>
  %n = call @size() : () -> index
  %late = memref.alloc(%n) : memref<?xf32>
  call @use(%late) : (memref<?xf32>) -> ()
  memref.dealloc %late : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %inner = memref.alloc(%i) : memref<?xf32>
    func.call @use(%inner) : (memref<?xf32>) -> ()
    memref.dealloc %inner : memref<?xf32>
  }
  %elsewhere = memref.alloc(%c1) : memref<?xf32>
  scf.if %c {
    memref.dealloc %elsewhere : memref<?xf32>
  }
  return
}

// Buffers of a loop's iterations share slots with each other and with what is dead before the loop, of a size that all iterations have
// room in; what is needed after the loop or in its next iteration keeps its slot through it.
// CHECK-LABEL: func.func @loop(
// CHECK: %[[MOST:.*]] = memref.dim
// CHECK: %[[SLOTS:.*]]:2 = hrt.arena
// CHECK: %[[OUTER:.*]] = memref.view %[[SLOTS]]#0[%{{.*}}][%[[MOST]]]
// CHECK: scf.for
// CHECK: %[[COUNT:.*]] = arith.minui
// CHECK: %[[INNER:.*]] = memref.view %[[SLOTS]]#1[%{{.*}}][%[[COUNT]]]
// CHECK: func.call @use2(%[[OUTER]], %[[INNER]])
// CHECK: func.call @use(%[[INNER]])
// CHECK-NOT: memref.dealloc
func.func @loop(%call: !hrt.call, %n: index) attributes {hrt.entry} {
  %c0 = arith.constant 0 : index
  %input = hrt.input %call[0] : memref<?xf32>
  %most = memref.dim %input, %c0 : memref<?xf32>
  %outer = memref.alloc(%most) : memref<?xf32>
  scf.for %i = %c0 to %n step %most {
    %left = arith.subi %n, %i : index
    %count = arith.minui %most, %left : index
    %inner = memref.alloc(%count) : memref<?xf32>
    func.call @use2(%outer, %inner) : (memref<?xf32>, memref<?xf32>) -> ()
    memref.dealloc %inner : memref<?xf32>
    %next = memref.alloc(%count) : memref<?xf32>
    func.call @use(%next) : (memref<?xf32>) -> ()
    memref.dealloc %next : memref<?xf32>
  }
  memref.dealloc %outer : memref<?xf32>
  return
}

// A division comes before the check of its divisor: it may not trap there.
// CHECK-LABEL: func.func @division(
// CHECK: %[[M:.*]] = memref.dim
// CHECK: %[[DIVISOR:.*]] = arith.maxui %[[M]], %{{.*}}
// CHECK: arith.divui %{{.*}}, %[[DIVISOR]]
// CHECK: hrt.arena
// CHECK: hrt.check
// CHECK: %[[N:.*]] = arith.divui %{{.*}}, %[[M]]
// CHECK: memref.view %{{.*}}[%{{.*}}][%[[N]]]
func.func @division(%call: !hrt.call) attributes {hrt.entry} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %input = hrt.input %call[0] : memref<?xf32>
  %m = memref.dim %input, %c0 : memref<?xf32>
  %good = arith.cmpi ne, %m, %c0 : index
  hrt.check %good, "expected something"
  %n = arith.divui %c64, %m : index
  %a = memref.alloc(%n) : memref<?xf32>
  call @use(%a) : (memref<?xf32>) -> ()
  memref.dealloc %a : memref<?xf32>
  return
}

// No entry: nothing is planned.
// CHECK-LABEL: func.func @other(
// CHECK-NOT: hrt.arena
func.func @other(%call: !hrt.call) {
  %c1 = arith.constant 1 : index
  %a = memref.alloc(%c1) : memref<?xf32>
  call @use(%a) : (memref<?xf32>) -> ()
  memref.dealloc %a : memref<?xf32>
  return
}

func.func private @use_small(memref<10xf32>)
func.func private @use_large(memref<1000xf32>)
func.func private @use_both(memref<1000xf32>, memref<10xf32>)

// The largest buffers are placed first: a small one that is held does not take the slot of a large one.
// CHECK-LABEL: func.func @sizes(
// CHECK: %[[SLOTS:.*]]:2 = hrt.arena
// CHECK: %[[LARGE:.*]] = memref.view %[[SLOTS]]#0[%{{.*}}][] : memref<?xi8> to memref<1000xf32>
// CHECK: call @use_large(%[[LARGE]])
// CHECK: %[[SMALL:.*]] = memref.view %[[SLOTS]]#1[%{{.*}}][] : memref<?xi8> to memref<10xf32>
// CHECK: call @use_both(%[[LARGE]], %[[SMALL]])
func.func @sizes(%call: !hrt.call) attributes {hrt.entry} {
  %first = memref.alloc() : memref<1000xf32>
  call @use_large(%first) : (memref<1000xf32>) -> ()
  memref.dealloc %first : memref<1000xf32>
  %small = memref.alloc() : memref<10xf32>
  call @use_small(%small) : (memref<10xf32>) -> ()
  %second = memref.alloc() : memref<1000xf32>
  call @use_both(%second, %small) : (memref<1000xf32>, memref<10xf32>) -> ()
  memref.dealloc %second : memref<1000xf32>
  memref.dealloc %small : memref<10xf32>
  return
}
