// RUN: hone-opt %s | hone-opt | FileCheck %s

// CHECK-LABEL: @arena
// CHECK: hrt.arena %{{.*}}(%{{.*}}, %{{.*}}) : memref<?xi8>, memref<?xi8>
func.func @arena(%call: !hrt.call, %a: index, %b: index) {
  %slots:2 = hrt.arena %call(%a, %b) : memref<?xi8>, memref<?xi8>
  return
}

func.func private @body(%begin: index, %end: index, %x: memref<?xf32>)
func.func private @nothing(%begin: index, %end: index)

// CHECK-LABEL: @parallel
// CHECK: hrt.parallel @body of %{{.*}} cost %{{.*}}(%{{.*}} : memref<?xf32>)
// CHECK: hrt.parallel @nothing of %{{.*}} cost %{{.*}}()
func.func @parallel(%n: index, %x: memref<?xf32>) {
  hrt.parallel @body of %n cost %n (%x : memref<?xf32>)
  hrt.parallel @nothing of %n cost %n ()
  return
}

// CHECK-LABEL: @observe
// CHECK: hrt.observe %{{.*}}[3], %{{.*}} : tensor<1x?x8xf32>
// CHECK: hrt.observe %{{.*}}[0], %{{.*}} : memref<?x8xf32, strided<[16, 1]>>
func.func @observe(%call: !hrt.call, %x: tensor<1x?x8xf32>, %y: memref<?x8xf32, strided<[16, 1]>>) {
  hrt.observe %call[3], %x : tensor<1x?x8xf32>
  hrt.observe %call[0], %y : memref<?x8xf32, strided<[16, 1]>>
  return
}
