// RUN: hone-opt %s -hone-block-state -split-input-file | FileCheck %s
// RUN: hone-opt %s -hone-block-state -hone-convert-hone-to-hrt -split-input-file | FileCheck %s --check-prefix=HRT
// RUN: hone-opt %s -hone-block-state -split-input-file -remarks-filter=hone-block-state 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK: hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xbf16, #hrt.key_blocks>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xbf16, #hrt.value_blocks>, axis = 2>]
// CHECK-LABEL: @forward
// CHECK: hone.kv_append %{{.*}}[0], %{{.*}} : !hone.kv<@kv>, tensor<?x2x?x8xbf16> -> tensor<?x2x?x8xbf16, #hrt.key_blocks>
// CHECK: hone.kv_append %{{.*}}[1], %{{.*}} : !hone.kv<@kv>, tensor<?x2x?x8xbf16> -> tensor<?x2x?x8xbf16, #hrt.value_blocks>
// CHECK: hone.attention {{.*}} (tensor<?x2x?x8xf32>, tensor<?x2x?x8xbf16, #hrt.key_blocks>, tensor<?x2x?x8xbf16, #hrt.value_blocks>)
// HRT-LABEL: @forward
// HRT: hrt.kernel "hone.attention.blocks.bf16"
// REMARK-DAG: [Passed] Blocked {{.*}}"slot 'key' is kept in blocks"
// REMARK-DAG: [Passed] Blocked {{.*}}"slot 'value' is kept in blocks"
module {
  hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xbf16>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xbf16>, axis = 2>]
  func.func @forward(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xbf16>, %v: tensor<?x2x?x8xbf16>, %state: !hone.kv<@kv>) -> (tensor<?x2x?x8xf32>, !hone.kv<@kv>) {
    %0, %keys = hone.kv_append %state[0], %k : !hone.kv<@kv>, tensor<?x2x?x8xbf16> -> tensor<?x2x?x8xbf16>
    %1, %values = hone.kv_append %0[1], %v : !hone.kv<@kv>, tensor<?x2x?x8xbf16> -> tensor<?x2x?x8xbf16>
    %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.5)
       : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xbf16>, tensor<?x2x?x8xbf16>) -> tensor<?x2x?x8xf32>
    return %2, %1 : tensor<?x2x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// What something else reads stays, and so does what attention reads beside it.
// CHECK: hone.state @kv
// CHECK-NOT: blocks
// HRT: hrt.kernel "hone.attention.f32"
// REMARK-DAG: [Missed] Blocked {{.*}}"slot 'seen' stays as it is: something other than keys and values of attention reads it"
// REMARK-DAG: [Missed] Blocked {{.*}}"slot 'beside' stays as it is: attention reads it beside a slot that stays as it is"
module {
  hone.state @kv [#hone.slot<"seen", tensor<?x2x?x8xf32>, axis = 2>, #hone.slot<"beside", tensor<?x2x?x8xf32>, axis = 2>]
  func.func @forward(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, !hone.kv<@kv>) {
    %0, %keys = hone.kv_append %state[0], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    %1, %values = hone.kv_append %0[1], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.5)
       : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
    return %2, %keys, %1 : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// CHECK: hone.state @kv
// CHECK-NOT: blocks
// HRT: hrt.kernel "hone.attention.f32"
// REMARK-DAG: [Missed] Blocked {{.*}}"slot 'both' stays as it is: it is read as keys and as values"
// REMARK-DAG: [Missed] Blocked {{.*}}"slot 'alone' stays as it is: attention reads it beside what is no state"
// REMARK-DAG: [Missed] Blocked {{.*}}"slot 'unread' stays as it is: nothing reads it"
// REMARK-DAG: [Missed] Blocked {{.*}}"slot 'counter' stays as it is: it does not hold positions of f32, f16 or bf16 by sequence and head"
module {
  hone.state @kv [#hone.slot<"both", tensor<?x2x?x8xf32>, axis = 2>, #hone.slot<"alone", tensor<?x2x?x8xf32>, axis = 2>,
                                 #hone.slot<"unread", tensor<?x2x?x8xf32>, axis = 2>, #hone.slot<"counter", tensor<?x?x8xf32>, axis = 1>]
  func.func @forward(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %c: tensor<?x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, !hone.kv<@kv>) {
    %0, %both = hone.kv_append %state[0], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    %1, %alone = hone.kv_append %0[1], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    %2, %unread = hone.kv_append %1[2], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    %3, %counter = hone.kv_append %2[3], %c : !hone.kv<@kv>, tensor<?x?x8xf32> -> tensor<?x?x8xf32>
    %4 = hone.attention %q, %both, %both pattern(#hone.causal) scale(0.5)
       : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
    %5 = hone.attention %q, %alone, %k pattern(#hone.causal) scale(0.5)
       : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
    return %4, %5, %3 : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// Attention that has no kernel: its queries are f16.
// CHECK: hone.state @kv
// CHECK-NOT: blocks
// REMARK-DAG: [Missed] Blocked {{.*}}"slot 'key' stays as it is: attention over it has no kernel"
module {
  hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf16>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xf16>, axis = 2>]
  func.func @forward(%q: tensor<?x2x?x8xf16>, %state: !hone.kv<@kv>) -> (tensor<?x2x?x8xf16>, !hone.kv<@kv>) {
    %0, %keys = hone.kv_append %state[0], %q : !hone.kv<@kv>, tensor<?x2x?x8xf16> -> tensor<?x2x?x8xf16>
    %1, %values = hone.kv_append %0[1], %q : !hone.kv<@kv>, tensor<?x2x?x8xf16> -> tensor<?x2x?x8xf16>
    %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.5)
       : (tensor<?x2x?x8xf16>, tensor<?x2x?x8xf16>, tensor<?x2x?x8xf16>) -> tensor<?x2x?x8xf16>
    return %2, %1 : tensor<?x2x?x8xf16>, !hone.kv<@kv>
  }
}

// -----

// CHECK: hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32, #hrt.key_blocks<bits = 8>>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xf32, #hrt.value_blocks<bits = 8>>, axis = 2>]
// HRT: hrt.kernel "hone.attention.blocks.i8"
module {
  hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>, axis = 2>]
  func.func @forward(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x2x?x8xf32>, !hone.kv<@kv>) {
    %0, %keys = hone.kv_append %state[0], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>
    %1, %values = hone.kv_append %0[1], %v : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>
    %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.5)
       : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>, tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>) -> tensor<?x2x?x8xf32>
    return %2, %1 : tensor<?x2x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// What cannot be in blocks is not quantized.
// CHECK: hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32>, axis = 2>]
// CHECK: hone.kv_append %{{.*}}[0], %{{.*}} : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>{{$}}
// HRT: hrt.kernel "hone.attention.f32"
// REMARK-DAG: [Missed] Blocked {{.*}}"slot 'key' stays as it is: it is read as keys and as values"
module {
  hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>, axis = 2>]
  func.func @forward(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x2x?x8xf32>, !hone.kv<@kv>) {
    %0, %keys = hone.kv_append %state[0], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>
    %1 = hone.attention %q, %keys, %keys pattern(#hone.causal) scale(0.5)
       : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>, tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>) -> tensor<?x2x?x8xf32>
    return %1, %0 : tensor<?x2x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// HRT-LABEL: @encoder
// HRT: hrt.kernel "hone.attention.pairs.f32"
func.func @encoder(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32> {
  %0 = hone.attention %q, %k, %v pattern(#hone.full) scale(0.5) bf16_products
     : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  return %0 : tensor<?x2x?x8xf32>
}
