// RUN: hone-opt %s -hone-decompose -canonicalize | FileCheck %s

// What attention becomes: its query heads as key heads and groups, and no step for what it does not have.

// CHECK-LABEL: @plain
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x?x8xf32>, %[[K:.*]]: tensor<?x2x?x8xf32>, %[[V:.*]]: tensor<?x2x?x6xf32>)
func.func @plain(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x6xf32>) -> tensor<?x4x?x6xf32> {
  // CHECK: %[[HEADS:.*]] = tensor.expand_shape %[[Q]] {{\[\[}}0], [1, 2], [3], [4]] output_shape [%{{.*}}, 2, 2, %{{.*}}, 8]
  // CHECK: linalg.generic {{.*}} ins(%[[HEADS]], %[[K]]
  // CHECK-NOT: arith.cmpi
  // CHECK-NOT: math.tanh
  // CHECK: arith.maximumf
  // CHECK: math.exp
  // CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[V]]
  // CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2], [3], [4]] : tensor<?x2x2x?x6xf32> into tensor<?x4x?x6xf32>
  %0 = hone.attention %q, %k, %v pattern(#hone.full) scale(0.5)
     : (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x6xf32>) -> tensor<?x4x?x6xf32>
  return %0 : tensor<?x4x?x6xf32>
}

// CHECK-LABEL: @causal
func.func @causal(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32> {
  // CHECK: %[[FIRST:.*]] = arith.subi
  // CHECK: %[[KEY:.*]] = linalg.index 4
  // CHECK: arith.cmpi sle, %[[KEY]]
  %0 = hone.attention %q, %k, %k pattern(#hone.causal) scale(0.5) softcap(30.0)
     : (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %0 : tensor<?x4x?x8xf32>
}

// Logits, weights and sums are f32 whatever the operands are; the result is rounded last.
// CHECK-LABEL: @half
func.func @half(%q: tensor<1x1x2x4xf16>) -> tensor<1x1x2x4xf16> {
  // CHECK-COUNT-2: arith.extf %{{.*}} : f16 to f32
  // CHECK: arith.extf %{{.*}} : f16 to f32
  // CHECK-NOT: to f16
  // CHECK: arith.truncf %{{.*}} : f32 to f16
  // CHECK-NEXT: linalg.yield %{{.*}} : f16
  %0 = hone.attention %q, %q, %q pattern(#hone.full) scale(0.5)
     : (tensor<1x1x2x4xf16>, tensor<1x1x2x4xf16>, tensor<1x1x2x4xf16>) -> tensor<1x1x2x4xf16>
  return %0 : tensor<1x1x2x4xf16>
}
