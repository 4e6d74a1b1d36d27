// RUN: hone-opt %s --hone-retain-keys="budget=256" -split-input-file -verify-diagnostics
// RUN: not hone-opt %s --hone-retain-keys="policy=lru budget=64" -split-input-file 2>&1 | FileCheck %s --check-prefix=POLICY
// RUN: not hone-opt %s --hone-retain-keys="budget=35 sinks=1" -split-input-file 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not hone-opt %s --hone-retain-keys -split-input-file 2>&1 | FileCheck %s --check-prefix=NONE
// POLICY: unsupported policy 'lru'; supported: snapkv, h2o, prefix
// SMALL:  expected budget to be at least 36, for 1 sinks, 32 recent keys and the 3 that are evicted at once, but got 35
// NONE:   expected budget and recent to be 1 or more and sinks 0 or more, but got 0, 32 and 4

hone.state @kv [#hone.slot<"key", tensor<?x2x?x64xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x64xf32>, axis = 2>]
func.func @forward(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %bias: tensor<?x4x?x?xf32>, %s: !hone.kv<@kv>)
    -> (tensor<?x4x?x64xf32>, !hone.kv<@kv>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %1, %values = hone.kv_append %0[1], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  // expected-error@+1 {{cannot bound the keys that a session keeps: the bias of an attention goes by the number of a key}}
  %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.125) bias(%bias)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x4x?x?xf32>) -> tensor<?x4x?x64xf32>
  return %2, %1 : tensor<?x4x?x64xf32>, !hone.kv<@kv>
}

// -----

hone.state @kv [#hone.slot<"key", tensor<?x2x?x64xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x64xf32>, axis = 2>]
func.func @forward(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %s: !hone.kv<@kv>)
    -> (tensor<?x4x?x64xf32>, index, !hone.kv<@kv>) {
  %c2 = arith.constant 2 : index
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %1, %values = hone.kv_append %0[1], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  // expected-error@+1 {{tensor.dim reads a slot of the state, which does not know that keys are evicted}}
  %3 = tensor.dim %keys, %c2 : tensor<?x2x?x64xf32>
  return %2, %3, %1 : tensor<?x4x?x64xf32>, index, !hone.kv<@kv>
}

// -----

hone.state @kv [#hone.slot<"key", tensor<?x2x?x64xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x64xf32>, axis = 2>]
func.func @forward(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %prefix: tensor<?xi64>, %s: !hone.kv<@kv>)
    -> (tensor<?x4x?x64xf32>, !hone.kv<@kv>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %1, %values = hone.kv_append %0[1], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  // expected-error@+1 {{unsupported pattern #hone.prefix_causal of an attention; supported: causal and sliding}}
  %2 = hone.attention %q, %keys, %values pattern(#hone.prefix_causal, %prefix) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?xi64>) -> tensor<?x4x?x64xf32>
  return %2, %1 : tensor<?x4x?x64xf32>, !hone.kv<@kv>
}

// -----

hone.state @kv [#hone.slot<"key", tensor<?x2x?x64xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x64xf32>, axis = 2>]
func.func @forward(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %s: !hone.kv<@kv>)
    -> (tensor<?x4x?x64xf32>, !hone.kv<@kv>) {
  %0, %keys = hone.kv_append %s[0], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %1, %values = hone.kv_append %0[1], %k : !hone.kv<@kv>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  // expected-error@+1 {{hone.attention reads a slot of the state, which does not know that keys are evicted}}
  %3 = hone.attention %2, %keys, %values pattern(#hone.causal) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) -> tensor<?x4x?x64xf32>
  return %3, %1 : tensor<?x4x?x64xf32>, !hone.kv<@kv>
}

// -----

// expected-error@+1 {{cannot bound the keys that a session keeps: the model has no entry 'forward' of tokens with a state}}
module {
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
    return %x : tensor<1xf32>
  }
}
