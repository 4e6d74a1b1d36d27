// RUN: hone-opt %s -split-input-file -verify-diagnostics

hone.state @kv [#hone.slot<"0.key", tensor<?x4x?x8xf32>, axis = 2>]
func.func @kv_replace_c1_grows(%s: !hone.kv<@kv>, %v: tensor<1x4x3x8xf32>) {
  // expected-error @below {{expected slot '0.key' to have no axis; one that grows is appended to}}
  hone.kv_replace %s[0], %v : !hone.kv<@kv>, tensor<1x4x3x8xf32>
  return
}

// -----

hone.state @kv [#hone.slot<"0.conv", tensor<?x4x8xf32>>]
func.func @kv_replace_c1_slot(%s: !hone.kv<@kv>, %v: tensor<1x4x8xf32>) {
  // expected-error @below {{expected the slot to be one of the 1 of @kv, but got 1}}
  hone.kv_replace %s[1], %v : !hone.kv<@kv>, tensor<1x4x8xf32>
  return
}

// -----

hone.state @kv [#hone.slot<"0.conv", tensor<?x4x8xf32>>]
func.func @kv_replace_c2_type(%s: !hone.kv<@kv>, %v: tensor<1x4x9xf32>) {
  // expected-error @below {{expected the value to be of slot '0.conv' of type 'tensor<?x4x8xf32>', but got 'tensor<1x4x9xf32>'}}
  hone.kv_replace %s[0], %v : !hone.kv<@kv>, tensor<1x4x9xf32>
  return
}
