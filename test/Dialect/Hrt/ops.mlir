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

// CHECK-LABEL: @check(
// CHECK: hrt.check %{{.*}}, "expected one thing"
// CHECK: hrt.check %{{.*}}, "{}: expected {} to be {}"(%{{.*}}, %{{.*}})
func.func @check(%holds: i1, %a: index, %b: index) {
  hrt.check %holds, "expected one thing"
  hrt.check %holds, "{}: expected {} to be {}"(%a, %b)
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

#device = #gpu.address_space<global>

// CHECK-LABEL: @transfers
// CHECK: %[[D:.*]] = hrt.upload %{{.*}}, %{{.*}} into %{{.*}} : tensor<?xi64> into tensor<?xi64> -> tensor<?xi64>
// CHECK: hrt.fetch %{{.*}}, %[[D]] into %{{.*}} : tensor<?xi64> into tensor<?xi64> -> tensor<?xi64>
func.func @transfers(%call: !hrt.call, %h: tensor<?xi64>, %init: tensor<?xi64>) -> tensor<?xi64> {
  %d = hrt.upload %call, %h into %init : tensor<?xi64> into tensor<?xi64> -> tensor<?xi64>
  %back = hrt.fetch %call, %d into %init : tensor<?xi64> into tensor<?xi64> -> tensor<?xi64>
  return %back : tensor<?xi64>
}

// CHECK-LABEL: @device_memory
// CHECK: %[[A:.*]] = hrt.alloc %{{.*}}(%{{.*}}) : memref<?x4xf32, #gpu.address_space<global>>
// CHECK: hrt.copy %{{.*}}, %{{.*}} into %[[A]] :
// CHECK: hrt.free %{{.*}}, %[[A]] : memref<?x4xf32, #gpu.address_space<global>>
func.func @device_memory(%call: !hrt.call, %n: index, %x: memref<?x4xf32, #device>) {
  %a = hrt.alloc %call(%n) : memref<?x4xf32, #device>
  hrt.copy %call, %x into %a : memref<?x4xf32, #device> into memref<?x4xf32, #device>
  hrt.free %call, %a : memref<?x4xf32, #device>
  return
}

gpu.module @device {
  gpu.func @kernel(%x: memref<?xf32, #device>, %n: index) kernel {
    gpu.return
  }
}

// CHECK-LABEL: @launch
// CHECK: hrt.launch @device::@kernel %{{.*}} blocks %{{.*}} threads 256(%{{.*}}, %{{.*}} : memref<?xf32, #gpu.address_space<global>>, index)
func.func @launch(%call: !hrt.call, %n: index, %x: memref<?xf32, #device>) {
  hrt.launch @device::@kernel %call blocks %n threads 256 (%x, %n : memref<?xf32, #device>, index)
  return
}

// CHECK-LABEL: @update
// CHECK: hrt.state_update %{{.*}}[3] : tensor<8x4xf32>
func.func @update(%call: !hrt.call) -> tensor<8x4xf32> {
  %all = hrt.state_update %call[3] : tensor<8x4xf32>
  return %all : tensor<8x4xf32>
}
