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

// Products are added to what is there, in a loop, too.
// CHECK-LABEL: @accumulate(
// CHECK: hrt.kernel "hone.matmul.f32" %{{.*}} ints [1] ins(%{{.*}}, %{{.*}} : tensor<8x?xf32>, tensor<?x4xf32>) outs(%{{.*}} : tensor<8x4xf32>)
// BUFFERS-LABEL: @accumulate(
// BUFFERS: %[[SUM:.*]] = memref.alloc() {{.*}} : memref<8x4xf32>
// BUFFERS-NOT: memref.alloc
// BUFFERS: scf.for
// BUFFERS-NOT: memref.copy
// BUFFERS: hrt.kernel "hone.matmul.f32" %{{.*}} ints [1] ins(%{{.*}}, %{{.*}} : {{.*}}) outs(%[[SUM]] : memref<8x4xf32>)
// BUFFERS-NOT: memref.copy
// BUFFERS: memref.copy %[[SUM]], %{{.*}} : memref<8x4xf32> to memref<8x4xf32>
func.func @accumulate(%a: tensor<8x?xf32>, %b: tensor<?x4xf32>, %n: tensor<index>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %count = tensor.extract %n[] : tensor<index>
  %e = tensor.empty() : tensor<8x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %sum = scf.for %i = %c0 to %count step %c1 iter_args(%so_far = %zeros) -> (tensor<8x4xf32>) {
    %next = hone.matmul %a, %b addend(%so_far) : (tensor<8x?xf32>, tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    scf.yield %next : tensor<8x4xf32>
  }
  return %sum : tensor<8x4xf32>
}

// What is read after that is not overwritten.
// BUFFERS-LABEL: @accumulate_on_copy(
// BUFFERS: %[[OLD:.*]] = memref.alloc() {{.*}} : memref<8x4xf32>
// BUFFERS: linalg.fill {{.*}} outs(%[[OLD]] :
// BUFFERS: %[[NEW:.*]] = memref.alloc() {{.*}} : memref<8x4xf32>
// BUFFERS: memref.copy %[[OLD]], %[[NEW]]
// BUFFERS: hrt.kernel "hone.matmul.f32" {{.*}} outs(%[[NEW]] :
func.func @accumulate_on_copy(%a: tensor<8x?xf32>, %b: tensor<?x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %ones = linalg.fill ins(%one : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %sum = hone.matmul %a, %b addend(%ones) : (tensor<8x?xf32>, tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %ones, %sum : tensor<8x4xf32>, tensor<8x4xf32>
}
