// RUN: hone-opt %s -split-input-file -verify-diagnostics

module {
  hone.state @kv []
  func.func @kv_view_c1_slot(%s: !hone.kv<@kv>) {
    // expected-error @below {{expected the slot to be one of the 0 of @kv, but got 0}}
    hone.kv_view %s[0] : !hone.kv<@kv> -> tensor<?x4x?x8xf32>
    return
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
  func.func @kv_view_c2_type(%s: !hone.kv<@kv>) {
    // expected-error @below {{expected the result to be of slot '0.key' of type 'tensor<?x4x?x8xf32>', but got 'tensor<?x4x?x8xf16>'}}
    hone.kv_view %s[0] : !hone.kv<@kv> -> tensor<?x4x?x8xf16>
    return
  }
}

// -----

hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
func.func @kv_view_negative_slot(%s: !hone.kv<@kv>) {
  // expected-error @below {{attribute 'slot' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  hone.kv_view %s[-1] : !hone.kv<@kv> -> tensor<?x4x?x8xf16>
  return
}

// -----

func.func @kv_view_c1_state(%s: !hone.kv<@kv>) {
  // expected-error @below {{expected @kv to be a state of the module}}
  hone.kv_view %s[0] : !hone.kv<@kv> -> tensor<?x4x?x8xf32>
  return
}

// -----

hone.param @kv : tensor<4xf32> = dense<0.0> : tensor<4xf32>
func.func @kv_length_state(%s: !hone.kv<@kv>) -> index {
  // expected-error @below {{expected @kv to be a state of the module}}
  %0 = hone.kv_length %s : !hone.kv<@kv>
  return %0 : index
}
