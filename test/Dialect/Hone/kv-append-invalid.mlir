// RUN: hone-opt %s -split-input-file -verify-diagnostics

func.func @kv_append_c1_two_dimensions(%s: !hone.kv, %k: tensor<1x4x3x8xf32>) {
  // expected-error @below {{expected the result to be 'tensor<1x4x3x8xf32>' but for the appended dimension, but got 'tensor<2x4x7x8xf32>'}}
  hone.kv_append %s[0], %k : tensor<1x4x3x8xf32> -> tensor<2x4x7x8xf32>
  return
}

// -----

func.func @kv_append_c1_elements(%s: !hone.kv, %k: tensor<1x4x3x8xf16>) {
  // expected-error @below {{expected the result to be 'tensor<1x4x3x8xf16>' but for the appended dimension, but got 'tensor<1x4x?x8xbf16>'}}
  hone.kv_append %s[0], %k : tensor<1x4x3x8xf16> -> tensor<1x4x?x8xbf16>
  return
}

// -----

module attributes {hone.slots = [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]} {
  func.func @kv_append_c2_slot(%s: !hone.kv, %k: tensor<1x4x3x8xf32>) {
    // expected-error @below {{expected the slot to be one of the module's 1, but got 1}}
    hone.kv_append %s[1], %k : tensor<1x4x3x8xf32> -> tensor<1x4x?x8xf32>
    return
  }
}

// -----

module attributes {hone.slots = [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]} {
  func.func @kv_append_c3_fresh(%s: !hone.kv, %k: tensor<1x2x3x8xf32>) {
    // expected-error @below {{expected the result to be of slot '0.key' of type 'tensor<?x4x?x8xf32>', but got 'tensor<1x2x?x8xf32>'}}
    hone.kv_append %s[0], %k : tensor<1x2x3x8xf32> -> tensor<1x2x?x8xf32>
    return
  }
}

// -----

module attributes {hone.slots = [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]} {
  func.func @kv_append_c3_result(%s: !hone.kv, %k: tensor<1x4x3x8xf32>) {
    // expected-error @below {{expected the result to be of slot '0.key' of type 'tensor<?x4x?x8xf32>', but got 'tensor<1x4x3x9xf32>'}}
    hone.kv_append %s[0], %k : tensor<1x4x3x8xf32> -> tensor<1x4x3x9xf32>
    return
  }
}

// -----

module attributes {hone.slots = [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]} {
  func.func @kv_append_c3_axis(%s: !hone.kv, %k: tensor<1x4x3x8xf32>) {
    // expected-error @below {{expected the result to be 'tensor<1x4x3x8xf32>' but for the appended dimension, but got 'tensor<2x4x3x8xf32>'}}
    hone.kv_append %s[0], %k : tensor<1x4x3x8xf32> -> tensor<2x4x3x8xf32>
    return
  }
}
