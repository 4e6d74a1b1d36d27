// RUN: hone-opt %s -hone-convert-state=type=bf16 -split-input-file | FileCheck %s
// RUN: hone-opt %s -hone-convert-state=type=bf16 -split-input-file -remarks-filter=hone-convert-state 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: hone-opt %s -hone-convert-state=type=int8 -split-input-file | FileCheck %s --check-prefix=INT8
// RUN: not hone-opt %s -hone-convert-state=type=f8 -split-input-file 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: unsupported type 'f8' to keep a state in; supported: bf16, f16, int8, int4

// CHECK: hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xbf16>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xbf16>, axis = 2>]
// CHECK-LABEL: @forward
// CHECK: hone.kv_append %{{.*}}[0], %arg1 : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xbf16>
// CHECK: hone.attention {{.*}} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xbf16>, tensor<?x2x?x8xbf16>) -> tensor<?x2x?x8xf32>
// INT8: hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>, axis = 2>]
// INT8: hone.kv_append %{{.*}}[0], %arg1 : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>
// INT8: hone.attention {{.*}} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>, tensor<?x2x?x8xf32, #hone.quantized_kv<bits = 8>>) -> tensor<?x2x?x8xf32>
// REMARK: [Passed] Converted {{.*}}"2 slots are kept as bf16"
module {
  hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x8xf32>, axis = 2>]
  func.func @forward(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x2x?x8xf32>, !hone.kv<@kv>) {
    %0, %keys = hone.kv_append %state[0], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    %1, %values = hone.kv_append %0[1], %v : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    %2 = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.5)
       : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
    return %2, %1 : tensor<?x2x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// CHECK: hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32>, axis = 2>]
// REMARK: [Missed] Converted {{.*}}"the state stays as it is, for slot 'key': something other than attention over the state reads it"
module {
  hone.state @kv [#hone.slot<"key", tensor<?x2x?x8xf32>, axis = 2>]
  func.func @forward(%k: tensor<?x2x?x8xf32>, %state: !hone.kv<@kv>) -> (tensor<?x2x?x8xf32>, !hone.kv<@kv>) {
    %0, %keys = hone.kv_append %state[0], %k : !hone.kv<@kv>, tensor<?x2x?x8xf32> -> tensor<?x2x?x8xf32>
    return %keys, %0 : tensor<?x2x?x8xf32>, !hone.kv<@kv>
  }
}

// -----

// Attention of an encoder keeps nothing. What has narrower elements is rounded already.
// CHECK-LABEL: @encoder
// CHECK: hone.attention {{.*}} scale({{.*}}) bf16_products :
// CHECK: hone.attention
// CHECK-NOT: bf16_products
// CHECK: return
// INT8-LABEL: @encoder
// INT8-NOT: bf16_products
// REMARK: [Passed] Rounded {{.*}}"1 attentions without a state may multiply in bf16"
func.func @encoder(%q: tensor<?x2x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>, %h: tensor<?x2x?x8xf16>)
    -> (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) {
  %0 = hone.attention %q, %k, %v pattern(#hone.full) scale(0.5)
     : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
  %1 = hone.attention %q, %h, %h pattern(#hone.full) scale(0.5)
     : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf16>, tensor<?x2x?x8xf16>) -> tensor<?x2x?x8xf32>
  return %0, %1 : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>
}
