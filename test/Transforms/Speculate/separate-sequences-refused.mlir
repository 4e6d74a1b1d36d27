// RUN: hone-opt %s --hone-separate-sequences --split-input-file --verify-diagnostics
// RUN: not hone-opt %s --hone-separate-sequences --split-input-file --remarks-filter=hone-separate-sequences 2>&1 | FileCheck %s

// CHECK: [Missed] Sequences {{.*}}"slot 'conv' of the state is replaced as a whole, and cannot keep some tokens of a call"
// CHECK: [Missed] Sequences {{.*}}"onnx.Gather computes with the number of held positions"

// expected-error @below {{cannot let sequences have different lengths: the model has no entry 'forward' of tokens with a state}}
module {
  func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    return %x : tensor<?x4xf32>
  }
}

// -----

module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>, #hone.slot<"conv", tensor<?x4xf32>>]
  // expected-error @below {{cannot let 'forward' take sequences of different lengths: slot 'conv' of the state is replaced as a whole}}
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x1x?x8xf32>, !hone.kv<@kv>) {
    return %x, %state : tensor<?x1x?x8xf32>, !hone.kv<@kv>
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

// Positions that all sequences have alike.
module {
  hone.state @kv [#hone.slot<"key", tensor<?x1x?x8xf32>, axis = 2>]
  func.func @forward(%tokens: tensor<?x?xi64>, %x: tensor<?x1x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x4xf32>, !hone.kv<@kv>) {
    %length = hone.kv_length %state : !hone.kv<@kv>
    %number = arith.index_cast %length : index to i64
    %held = tensor.from_elements %number : tensor<i64>
    %one = "onnx.Constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %shape = "onnx.Shape"(%tokens) : (tensor<?x?xi64>) -> tensor<2xi64>
    %fresh = "onnx.Gather"(%shape, %one) : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
    %total = "onnx.Add"(%held, %fresh) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %places = "onnx.Range"(%held, %total, %one) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
    %table = "onnx.Constant"() {value = dense<0.5> : tensor<100x4xf32>} : () -> tensor<100x4xf32>
    // expected-error @below {{onnx.Gather computes with the number of held positions}}
    %rows = "onnx.Gather"(%table, %places) {axis = 0 : i64} : (tensor<100x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
    return %rows, %state : tensor<?x4xf32>, !hone.kv<@kv>
  }
}
