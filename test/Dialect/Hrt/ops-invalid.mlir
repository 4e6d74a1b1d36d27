// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @arena_c1_slots(%call: !hrt.call, %bytes: index) {
  // expected-error @below {{expected as many slots as sizes, but got 2 and 1}}
  %slots:2 = hrt.arena %call(%bytes) : memref<?xi8>, memref<?xi8>
  return
}

// -----

func.func private @body(%begin: index, %end: index)

func.func @parallel_c1_body(%n: index, %x: memref<?xf32>) {
  // expected-error @below {{expected 'body' to be a function '(index, index, memref<?xf32>) -> ()'}}
  hrt.parallel @body of %n cost %n (%x : memref<?xf32>)
  return
}
