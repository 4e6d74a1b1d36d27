// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @arena_c1_slots(%call: !hrt.call, %bytes: index) {
  // expected-error @below {{expected as many slots as sizes, but got 2 and 1}}
  %slots:2 = hrt.arena %call(%bytes) : memref<?xi8>, memref<?xi8>
  return
}

// -----

func.func @check_c1_places(%holds: i1, %a: index) {
  // expected-error @below {{expected the message to have 2 places for values, but got 1}}
  hrt.check %holds, "expected {}"(%a, %a)
  return
}

// -----

func.func private @body(%begin: index, %end: index)

func.func @parallel_c1_body(%n: index, %x: memref<?xf32>) {
  // expected-error @below {{expected 'body' to be a function '(index, index, memref<?xf32>) -> ()'}}
  hrt.parallel @body of %n cost %n (%x : memref<?xf32>)
  return
}

// -----

func.func @arena_c2_memories(%call: !hrt.call, %bytes: index) {
  // expected-error @below {{expected all slots to be in one memory, but got 'memref<?xi8>', 'memref<?xi8, #gpu.address_space<global>>'}}
  %slots:2 = hrt.arena %call(%bytes, %bytes) : memref<?xi8>, memref<?xi8, #gpu.address_space<global>>
  return
}

// -----

gpu.module @device {
  gpu.func @kernel(%x: memref<?xf32, #gpu.address_space<global>>) kernel {
    gpu.return
  }
}

func.func @launch_c1_kernel(%call: !hrt.call, %n: index) {
  // expected-error @below {{expected @device::@kernel to be a kernel that takes 'index'}}
  hrt.launch @device::@kernel %call blocks %n threads 256 (%n : index)
  return
}
