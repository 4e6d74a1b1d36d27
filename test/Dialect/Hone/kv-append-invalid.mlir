// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @kv_append_c1_two_dimensions(%s: !hone.kv<@kv>, %k: tensor<1x4x3x8xf32>) {
  // expected-error @below {{expected the result to be 'tensor<1x4x3x8xf32>' but for the appended dimension, but got 'tensor<2x4x7x8xf32>'}}
  hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<1x4x3x8xf32> -> tensor<2x4x7x8xf32>
  return
}

// -----

func.func @kv_append_c1_elements(%s: !hone.kv<@kv>, %k: tensor<1x4x3x8xf16>) {
  // expected-error @below {{expected the result to be 'tensor<1x4x3x8xf16>' but for the appended dimension, but got 'tensor<1x4x?x8xbf16>'}}
  hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<1x4x3x8xf16> -> tensor<1x4x?x8xbf16>
  return
}

// -----

module {
  hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
  func.func @kv_append_c2_slot(%s: !hone.kv<@kv>, %k: tensor<1x4x3x8xf32>) {
    // expected-error @below {{expected the slot to be one of the 1 of @kv, but got 1}}
    hone.kv_append %s[1], %k : !hone.kv<@kv>, tensor<1x4x3x8xf32> -> tensor<1x4x?x8xf32>
    return
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
  func.func @kv_append_c3_fresh(%s: !hone.kv<@kv>, %k: tensor<1x2x3x8xf32>) {
    // expected-error @below {{expected the result to be of slot '0.key' of type 'tensor<?x4x?x8xf32>', but got 'tensor<1x2x?x8xf32>'}}
    hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<1x2x3x8xf32> -> tensor<1x2x?x8xf32>
    return
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
  func.func @kv_append_c3_result(%s: !hone.kv<@kv>, %k: tensor<1x4x3x8xf32>) {
    // expected-error @below {{expected the result to be of slot '0.key' of type 'tensor<?x4x?x8xf32>', but got 'tensor<1x4x3x9xf32>'}}
    hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<1x4x3x8xf32> -> tensor<1x4x3x9xf32>
    return
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
  func.func @kv_append_c3_axis(%s: !hone.kv<@kv>, %k: tensor<1x4x3x8xf32>) {
    // expected-error @below {{expected the result to be 'tensor<1x4x3x8xf32>' but for dimension 2, but got 'tensor<2x4x3x8xf32>'}}
    hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<1x4x3x8xf32> -> tensor<2x4x3x8xf32>
    return
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"0.conv", tensor<?x4x8xf32>>]
  func.func @kv_append_c2_grows(%s: !hone.kv<@kv>, %k: tensor<1x4x8xf32>) {
    // expected-error @below {{expected slot '0.conv' to grow; one without an axis is replaced}}
    hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<1x4x8xf32> -> tensor<1x4x8xf32>
    return
  }
}
