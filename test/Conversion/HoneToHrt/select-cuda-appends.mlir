// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda --canonicalize --hone-place-tensors --one-shot-bufferize --hone-place-buffers | FileCheck %s --check-prefix=BUFFER --enable-var-scope

module {
  hone.state @kv [#hone.slot<"key", tensor<?x2x?x32xf32>, axis = 2>, #hone.slot<"value", tensor<?x2x?x32xf32>, axis = 2>,
                                 #hone.slot<"key16", tensor<?x2x?x32xbf16>, axis = 2>, #hone.slot<"value16", tensor<?x2x?x32xbf16>, axis = 2>]

// Queries and keys rotate, and keys and values are written where the state has room for them, in one launch.
// CHECK-LABEL: func.func @rotated
// CHECK-NOT: hrt.state_append
// CHECK: %[[KEY:.*]] = hrt.state_extend %{{.*}}[0] (%{{.*}}, %{{.*}}) : memref<?x2x?x32xf32, strided<[?, ?, ?, ?], offset: ?>>
// CHECK: %[[VALUE:.*]] = hrt.state_extend %{{.*}}[1] (%{{.*}}, %{{.*}}) : memref<?x2x?x32xf32, strided<[?, ?, ?, ?], offset: ?>>
// CHECK: %[[Q:.*]] = hrt.kernel "cuda.rope_append.f32" %{{.*}} ints [1] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : {{.*}}) outs(%{{.*}}, %[[KEY]], %[[VALUE]] :
// CHECK-DAG: %[[K:.*]] = hrt.state_view %{{.*}}[0]
// CHECK-DAG: %[[V:.*]] = hrt.state_view %{{.*}}[1]
// CHECK: hrt.kernel "cuda.attention.f32" %{{.*}} ins(%[[Q]], %[[K]], %[[V]],
// BUFFER-LABEL: func.func @rotated
// BUFFER: %[[ROOM:.*]] = hrt.state_extend %{{.*}}[0] (%{{.*}}, %{{.*}}) : memref<?x2x?x32xf32, strided<[?, ?, ?, ?], offset: ?>, #gpu.address_space<global>>
// BUFFER: hrt.kernel "cuda.rope_append.f32" {{.*}} outs(%{{.*}}, %[[ROOM]], %{{.*}} :
func.func @rotated(%state: !hone.kv<@kv>, %q: tensor<?x4x?x32xf32>, %k: tensor<?x2x?x32xf32>, %v: tensor<?x2x?x32xf32>, %cos: tensor<1x?x16xf32>, %sin: tensor<1x?x16xf32>) -> (!hone.kv<@kv>, tensor<?x4x?x32xf32>) {
  %kr = hone.rope %k, %cos, %sin interleaved : (tensor<?x2x?x32xf32>, tensor<1x?x16xf32>, tensor<1x?x16xf32>) -> tensor<?x2x?x32xf32>
  %s0, %keys = hone.kv_append %state[0], %kr : !hone.kv<@kv>, tensor<?x2x?x32xf32> -> tensor<?x2x?x32xf32>
  %s1, %values = hone.kv_append %s0[1], %v : !hone.kv<@kv>, tensor<?x2x?x32xf32> -> tensor<?x2x?x32xf32>
  %qr = hone.rope %q, %cos, %sin interleaved : (tensor<?x4x?x32xf32>, tensor<1x?x16xf32>, tensor<1x?x16xf32>) -> tensor<?x4x?x32xf32>
  %y = hone.attention %qr, %keys, %values pattern(#hone.causal) scale(0.5) : (tensor<?x4x?x32xf32>, tensor<?x2x?x32xf32>, tensor<?x2x?x32xf32>) -> tensor<?x4x?x32xf32>
  return %s1, %y : !hone.kv<@kv>, tensor<?x4x?x32xf32>
}

// The kernel rounds to what the slots hold; queries that rotate by another table do so alone.
// CHECK-LABEL: func.func @rounded
// CHECK-NOT: linalg.generic
// CHECK: hrt.kernel "cuda.append.f32" %{{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x2x?x32xf32>, tensor<?x2x?x32xf32>, {{.*}}) outs(%{{.*}}, %{{.*}} : memref<?x2x?x32xbf16, {{.*}}>, memref<?x2x?x32xbf16, {{.*}}>)
// CHECK: hrt.kernel "cuda.rope.f32"
func.func @rounded(%state: !hone.kv<@kv>, %q: tensor<?x4x?x32xf32>, %k: tensor<?x2x?x32xf32>, %v: tensor<?x2x?x32xf32>, %cos: tensor<1x?x16xf32>, %sin: tensor<1x?x16xf32>) -> (!hone.kv<@kv>, tensor<?x4x?x32xf32>) {
  %s0, %keys = hone.kv_append %state[2], %k : !hone.kv<@kv>, tensor<?x2x?x32xf32> -> tensor<?x2x?x32xbf16>
  %s1, %values = hone.kv_append %s0[3], %v : !hone.kv<@kv>, tensor<?x2x?x32xf32> -> tensor<?x2x?x32xbf16>
  %qr = hone.rope %q, %cos, %sin : (tensor<?x4x?x32xf32>, tensor<1x?x16xf32>, tensor<1x?x16xf32>) -> tensor<?x4x?x32xf32>
  %y = hone.attention %qr, %keys, %values pattern(#hone.causal) scale(0.5) : (tensor<?x4x?x32xf32>, tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>) -> tensor<?x4x?x32xf32>
  return %s1, %y : !hone.kv<@kv>, tensor<?x4x?x32xf32>
}

// Rotated keys are rounded by the same launch; the sizes that a rounding asks for are no reader of them.
// CHECK-LABEL: func.func @rotated_and_rounded
// CHECK-NOT: linalg.generic
// CHECK-NOT: cuda.rope.f32
// CHECK: hrt.kernel "cuda.rope_append.f32" %{{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x4x?x32xf32>, memref<?x2x?x32xbf16, {{.*}}>, memref<?x2x?x32xbf16, {{.*}}>)
func.func @rotated_and_rounded(%state: !hone.kv<@kv>, %q: tensor<?x4x?x32xf32>, %k: tensor<?x2x?x32xf32>, %v: tensor<?x2x?x32xf32>, %cos: tensor<1x?x16xf32>, %sin: tensor<1x?x16xf32>) -> (!hone.kv<@kv>, tensor<?x4x?x32xf32>) {
  %kr = hone.rope %k, %cos, %sin : (tensor<?x2x?x32xf32>, tensor<1x?x16xf32>, tensor<1x?x16xf32>) -> tensor<?x2x?x32xf32>
  %s0, %keys = hone.kv_append %state[2], %kr : !hone.kv<@kv>, tensor<?x2x?x32xf32> -> tensor<?x2x?x32xbf16>
  %s1, %values = hone.kv_append %s0[3], %v : !hone.kv<@kv>, tensor<?x2x?x32xf32> -> tensor<?x2x?x32xbf16>
  %qr = hone.rope %q, %cos, %sin : (tensor<?x4x?x32xf32>, tensor<1x?x16xf32>, tensor<1x?x16xf32>) -> tensor<?x4x?x32xf32>
  %y = hone.attention %qr, %keys, %values pattern(#hone.causal) scale(0.5) : (tensor<?x4x?x32xf32>, tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>) -> tensor<?x4x?x32xf32>
  return %s1, %y : !hone.kv<@kv>, tensor<?x4x?x32xf32>
}

// What the state held before is read between the appends: they stay apart.
// CHECK-LABEL: func.func @apart
// CHECK: hrt.state_append
// CHECK: hrt.state_view
// CHECK: hrt.state_append
// CHECK-NOT: append.f32
func.func @apart(%state: !hone.kv<@kv>, %q: tensor<?x4x?x32xf32>, %k: tensor<?x2x?x32xf32>, %w: tensor<32xf32>) -> (!hone.kv<@kv>, tensor<?x4x?x32xf32>) {
  %s0, %keys = hone.kv_append %state[0], %k : !hone.kv<@kv>, tensor<?x2x?x32xf32> -> tensor<?x2x?x32xf32>
  %before = hone.kv_view %s0[1] : !hone.kv<@kv> -> tensor<?x2x?x32xf32>
  %v = hone.rms_norm %before, %w epsilon(1.0e-5) : (tensor<?x2x?x32xf32>, tensor<32xf32>) -> tensor<?x2x?x32xf32>
  %s1, %values = hone.kv_append %s0[1], %v : !hone.kv<@kv>, tensor<?x2x?x32xf32> -> tensor<?x2x?x32xf32>
  %y = hone.attention %q, %keys, %values pattern(#hone.causal) scale(0.5) : (tensor<?x4x?x32xf32>, tensor<?x2x?x32xf32>, tensor<?x2x?x32xf32>) -> tensor<?x4x?x32xf32>
  return %s1, %y : !hone.kv<@kv>, tensor<?x4x?x32xf32>
}
}
