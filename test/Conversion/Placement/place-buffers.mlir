// RUN: hone-opt %s --pass-pipeline='builtin.module(func.func(hone-place-buffers))' -split-input-file -verify-diagnostics | FileCheck %s --enable-var-scope

#plain = affine_map<(d0) -> (d0)>

// What is computed of the device's memory is the device's, and so is every view of it; the host's stays without a space.
// CHECK-LABEL: @follows
// CHECK: memref.alloc(%{{.*}}) : memref<?xf32, #gpu.address_space<global>>
// CHECK: memref.alloc() : memref<f32>
// CHECK: memref.subview %{{.*}} : memref<?xf32, #gpu.address_space<global>> to memref<1xf32, strided<[1]>, #gpu.address_space<global>>
// CHECK: memref.load %{{.*}}[] : memref<f32>
func.func @follows(%call: !hrt.call, %n: index) -> f32 attributes {hrt.entry} {
  %x = hrt.input %call[0] : memref<?xf32, #gpu.address_space<global>>
  %y = memref.alloc(%n) : memref<?xf32>
  %h = memref.alloc() : memref<f32>
  linalg.generic {indexing_maps = [#plain, #plain], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32, #gpu.address_space<global>>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  %first = memref.subview %y[0] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1]>>
  %scalar = memref.collapse_shape %first [] : memref<1xf32, strided<[1]>> into memref<f32>
  hrt.fetch %call, %scalar into %h : memref<f32> into memref<f32>
  %e = memref.load %h[] : memref<f32>
  return %e : f32
}

// -----

// The host reads what is the device's: a mistake of the compiler, which does not reach a program.
func.func @mixed(%call: !hrt.call, %i: index) -> f32 attributes {hrt.entry} {
  %x = hrt.input %call[0] : memref<?xf32, #gpu.address_space<global>>
  // expected-error @below {{expected memory of the host, but got the device's}}
  %e = memref.load %x[%i] : memref<?xf32, #gpu.address_space<global>>
  return %e : f32
}

// -----

// What was joined with others outside of every memory space is in theirs, and no cast is left.
// CHECK-LABEL: @branch
// CHECK-NOT: memory_space_cast
// CHECK: scf.if {{.*}} -> (memref<?xf32, #gpu.address_space<global>>)
func.func @branch(%call: !hrt.call, %n: index, %first: i1) attributes {hrt.entry} {
  %x = hrt.input %call[0] : memref<?xf32, #gpu.address_space<global>>
  %cast = memref.memory_space_cast %x : memref<?xf32, #gpu.address_space<global>> to memref<?xf32>
  %y = scf.if %first -> memref<?xf32> {
    scf.yield %cast : memref<?xf32>
  } else {
    %new = memref.alloc(%n) : memref<?xf32>
    scf.yield %new : memref<?xf32>
  }
  return
}
