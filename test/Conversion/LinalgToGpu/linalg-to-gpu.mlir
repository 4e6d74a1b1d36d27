// RUN: hone-opt %s --hone-convert-linalg-to-gpu --canonicalize --cse | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --hone-convert-linalg-to-gpu --remarks-filter=hone-convert-linalg-to-gpu --remark-policy=all 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: Remark="linalg.generic runs on the device, 4 elements a thread"
// REMARK: Remark="linalg.generic runs on the device, 1 elements a thread"
// REMARK: Remark="linalg.generic runs on the device, a warp a position"

#device = #gpu.address_space<global>
#plain = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
#element = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>

// Two layers of one shape share a kernel, whose threads take 16 bytes at once.
// CHECK-LABEL: @bias
// CHECK: hrt.launch @device::@kernel_0 %{{.*}} blocks %{{.*}} threads 256(
// CHECK: hrt.launch @device::@kernel_0 %{{.*}} blocks %{{.*}} threads 256(
func.func @bias(%call: !hrt.call, %x: memref<?x8xf32, #device>, %b: memref<8xf32, #device>, %y: memref<?x8xf32, #device>)
    attributes {hrt.entry} {
  linalg.generic {indexing_maps = [#plain, #column, #plain], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : memref<?x8xf32, #device>, memref<8xf32, #device>) outs(%y : memref<?x8xf32, #device>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#plain, #column, #plain], iterator_types = ["parallel", "parallel"]}
      ins(%y, %b : memref<?x8xf32, #device>, memref<8xf32, #device>) outs(%x : memref<?x8xf32, #device>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// Rows of 7 elements do not begin at multiples of 16 bytes.
// CHECK-LABEL: @odd
// CHECK: hrt.launch @device::@kernel_1
func.func @odd(%call: !hrt.call, %x: memref<?x7xf32, #device>) attributes {hrt.entry} {
  linalg.generic {indexing_maps = [#plain], iterator_types = ["parallel", "parallel"]} outs(%x : memref<?x7xf32, #device>) {
  ^bb0(%p: f32):
    %s = arith.addf %p, %p : f32
    linalg.yield %s : f32
  }
  return
}

// A warp sums a row.
// CHECK-LABEL: @rows
// CHECK: hrt.launch @device::@kernel_2
func.func @rows(%call: !hrt.call, %x: memref<?x?xf32, #device>, %y: memref<?xf32, #device>) attributes {hrt.entry} {
  linalg.generic {indexing_maps = [#plain, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32, #device>) outs(%y : memref<?xf32, #device>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// Columns are contiguous: neighbouring threads sum neighbouring columns.
// CHECK-LABEL: @columns
// CHECK: hrt.launch @device::@kernel_3
func.func @columns(%call: !hrt.call, %x: memref<?x?xf32, #device>, %y: memref<?xf32, #device>) attributes {hrt.entry} {
  linalg.generic {indexing_maps = [#plain, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32, #device>) outs(%y : memref<?xf32, #device>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// Floats of any width.
// CHECK-LABEL: @doubles
// CHECK: hrt.launch @device::@kernel_4
func.func @doubles(%call: !hrt.call, %x: memref<?xf32, #device>, %y: memref<f64, #device>) attributes {hrt.entry} {
  linalg.generic {indexing_maps = [#element, #none], iterator_types = ["reduction"]}
      ins(%x : memref<?xf32, #device>) outs(%y : memref<f64, #device>) {
  ^bb0(%p: f32, %q: f64):
    %w = arith.extf %p : f32 to f64
    %s = arith.addf %q, %w : f64
    linalg.yield %s : f64
  }
  return
}

// Memory of the device is the runtime's; the host's is not touched.
// CHECK-LABEL: @memory
// CHECK: hrt.alloc
// CHECK: hrt.copy
// CHECK: hrt.free
// CHECK: memref.alloc
func.func @memory(%call: !hrt.call, %n: index, %x: memref<?xf32, #device>) -> memref<?xf32> attributes {hrt.entry} {
  %a = memref.alloc(%n) : memref<?xf32, #device>
  memref.copy %x, %a : memref<?xf32, #device> to memref<?xf32, #device>
  memref.dealloc %a : memref<?xf32, #device>
  %h = memref.alloc(%n) : memref<?xf32>
  return %h : memref<?xf32>
}

// CHECK: gpu.module @device
// CHECK: gpu.func @kernel_0(
// CHECK-SAME: kernel attributes {known_block_size = array<i32: 256, 1, 1>}
// CHECK-COUNT-2: vector.load {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK: vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK: gpu.func @kernel_1(
// CHECK-NOT: vector.load
// CHECK: gpu.func @kernel_2(
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: gpu.func @kernel_3(
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.func @kernel_4(
// CHECK-COUNT-5: gpu.shuffle xor {{.*}} : f64
