// RUN: hone-opt %s --hone-speculate --split-input-file --verify-diagnostics
// RUN: not hone-opt %s --hone-speculate --split-input-file --remarks-filter=hone-speculate 2>&1 | FileCheck %s

// CHECK: [Missed] Verify {{.*}}"slot 'conv' of the state is replaced as a whole, and cannot keep some tokens of a call"
// CHECK: [Missed] Verify {{.*}}"onnx.Cast computes with the number of held positions"

// expected-error @below {{cannot make an entry 'verify' for trees of tokens: the model has no entry 'forward' of tokens with a state}}
module {
  func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    return %x : tensor<?x4xf32>
  }
}

// -----

// expected-error @below {{cannot make an entry 'verify': the model has one}}
module {
  hone.state @kv []
  func.func @forward(%tokens: tensor<?x?xi64>, %state: !hone.kv<@kv>) -> (tensor<?x?xi64>, !hone.kv<@kv>) {
    return %tokens, %state : tensor<?x?xi64>, !hone.kv<@kv>
  }
  func.func @verify(%tokens: tensor<?x?xi64>) -> tensor<?x?xi64> {
    return %tokens : tensor<?x?xi64>
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>]
  // expected-error @below {{cannot make an entry 'verify' for trees of tokens: no attention reads the state}}
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    return %x, %state : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>, #hone.slot<"conv", tensor<?x4xf32>>]
  // expected-error @below {{slot 'conv' of the state is replaced as a whole, and cannot keep some tokens of a call}}
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    return %x, %state : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    %s0, %keys = hone.kv_append %state[0], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    // expected-error @below {{slot 'key' of the state is read by onnx.Relu, which does not know trees}}
    %y = "onnx.Relu"(%keys) : (tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
    return %y, %s0 : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    %s0, %keys = hone.kv_append %state[0], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    // expected-error @below {{attention with the pattern #hone.full does not know trees; supported: causal and sliding, and all_of these}}
    %y = hone.attention %x, %keys, %keys pattern(#hone.full) scale(0.5)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
    return %y, %s0 : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %bias: tensor<1x1x?x?xf32>, %state: !hone.kv<@kv>)
      -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    %s0, %keys = hone.kv_append %state[0], %x : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    // expected-error @below {{the bias of an attention goes by the order of the tokens}}
    %y = hone.attention %x, %keys, %keys pattern(#hone.causal) scale(0.5) bias(%bias)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<1x1x?x?xf32>) -> tensor<?x1x?x8xf32>
    return %y, %s0 : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    // expected-error @below {{an attention that is not over the state goes by the order of the tokens}}
    %y = hone.attention %x, %x, %x pattern(#hone.causal) scale(0.5)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
    return %y, %state : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// A scale that grows with the number of positions: not those of the tokens.
module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    %length = hone.kv_length %state : !hone.kv<@kv>
    %number = arith.index_cast %length : index to i64
    %held = tensor.from_elements %number : tensor<i64>
    // expected-error @below {{onnx.Cast computes with the number of held positions}}
    %real = "onnx.Cast"(%held) {to = 1 : i64} : (tensor<i64>) -> tensor<f32>
    %z = "onnx.Mul"(%x, %real) : (tensor<?x1x?x8xf32>, tensor<f32>) -> tensor<?x1x?x8xf32>
    %s0, %keys = hone.kv_append %state[0], %z : !hone.kv<@kv>, tensor<?x1x?x8xf32> -> tensor<?x1x?x8xf32>
    %y = hone.attention %x, %keys, %keys pattern(#hone.causal) scale(0.5)
       : (tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>, tensor<?x1x?x8xf32>) -> tensor<?x1x?x8xf32>
    return %y, %s0 : tensor<?x1x?x8xf32>, !hone.kv<@kv>
  }
}
