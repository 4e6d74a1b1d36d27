// RUN: hone-opt %s -split-input-file -verify-diagnostics

module attributes {hone.slots = []} {
  func.func @kv_view_c1_slot(%s: !hone.kv) {
    // expected-error @below {{expected the slot to be one of the module's 0, but got 0}}
    hone.kv_view %s[0] : tensor<?x4x?x8xf32>
    return
  }
}

// -----

module attributes {hone.slots = [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]} {
  func.func @kv_view_c2_type(%s: !hone.kv) {
    // expected-error @below {{expected the result to be of slot '0.key' of type 'tensor<?x4x?x8xf32>', but got 'tensor<?x4x?x8xf16>'}}
    hone.kv_view %s[0] : tensor<?x4x?x8xf16>
    return
  }
}

// -----

func.func @kv_view_negative_slot(%s: !hone.kv) {
  // expected-error @below {{attribute 'slot' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  hone.kv_view %s[-1] : tensor<?x4x?x8xf16>
  return
}
