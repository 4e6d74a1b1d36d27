// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cpu | FileCheck %s --enable-var-scope
// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cpu --one-shot-bufferize --canonicalize | FileCheck %s --check-prefix=BUFFERS --enable-var-scope

// A slot that is replaced in place is viewed once, to be written; reads before the update see what it was.

hone.state @s [#hone.slot<"w", tensor<8x4xf32>>, #hone.slot<"other", tensor<8x4xf32>>]

// CHECK-LABEL: @update(
// CHECK: %[[W:.*]] = hrt.state_update %[[CALL:.*]][0] : tensor<8x4xf32>
// CHECK: %[[OTHER:.*]] = hrt.state_view %[[CALL]][1] : tensor<8x4xf32>
// CHECK: %[[NEXT:.*]] = linalg.generic {{.*}} ins(%[[OTHER]] : tensor<8x4xf32>) outs(%[[W]] : tensor<8x4xf32>)
// CHECK: hrt.state_append %[[CALL]][0], %[[NEXT]]

// BUFFERS-LABEL: @update(
// BUFFERS: %[[W:.*]] = hrt.state_update %{{.*}}[0] : memref<8x4xf32>
// BUFFERS-NOT: memref.alloc
// BUFFERS: linalg.generic {{.*}} outs(%[[W]] : memref<8x4xf32>)
// BUFFERS-NOT: memref.copy
// BUFFERS: hrt.state_append %{{.*}}[0], %[[W]]
func.func @update(%s: !hone.kv<@s>) -> !hone.kv<@s> {
  %w = hone.kv_view %s[0] : !hone.kv<@s> -> tensor<8x4xf32>
  %other = hone.kv_view %s[1] : !hone.kv<@s> -> tensor<8x4xf32>
  %next = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                          iterator_types = ["parallel", "parallel"]}
      ins(%other : tensor<8x4xf32>) outs(%w : tensor<8x4xf32>) {
  ^bb0(%x: f32, %old: f32):
    %sum = arith.addf %old, %x : f32
    linalg.yield %sum : f32
  } -> tensor<8x4xf32>
  %t = hone.kv_replace %s[0], %next {in_place} : !hone.kv<@s>, tensor<8x4xf32>
  return %t : !hone.kv<@s>
}

// What is read after the update is read of a copy of what was before.
// BUFFERS-LABEL: @read_later(
// BUFFERS: %[[W:.*]] = hrt.state_update %{{.*}}[0] : memref<8x4xf32>
// BUFFERS: %[[COPY:.*]] = memref.alloc
// BUFFERS: linalg.fill {{.*}} outs(%[[COPY]] :
// BUFFERS: hrt.state_append %{{.*}}[0], %[[COPY]]
func.func @read_later(%s: !hone.kv<@s>) -> (!hone.kv<@s>, tensor<8x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = hone.kv_view %s[0] : !hone.kv<@s> -> tensor<8x4xf32>
  %next = linalg.fill ins(%zero : f32) outs(%w : tensor<8x4xf32>) -> tensor<8x4xf32>
  %t = hone.kv_replace %s[0], %next {in_place} : !hone.kv<@s>, tensor<8x4xf32>
  return %t, %w : !hone.kv<@s>, tensor<8x4xf32>
}
