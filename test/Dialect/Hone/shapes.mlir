// RUN: hone-opt %s -resolve-ranked-shaped-type-result-dims -canonicalize | FileCheck %s

// The size of a result is the size of an operand: the operation need not run to know it.

// CHECK-LABEL: @linear
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[W:.*]]: tensor<?x8xf32>)
func.func @linear(%x: tensor<?x8xf32>, %w: tensor<?x8xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = hone.linear %x, %w : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x?xf32>
  // CHECK: %[[M:.*]] = tensor.dim %[[X]], %c0
  // CHECK: %[[N:.*]] = tensor.dim %[[W]], %c0
  %m = tensor.dim %0, %c0 : tensor<?x?xf32>
  %n = tensor.dim %0, %c1 : tensor<?x?xf32>
  // CHECK: return %[[M]], %[[N]]
  return %m, %n : index, index
}

// CHECK-LABEL: @matmul
// CHECK-SAME: (%{{.*}}: tensor<1x?x4xf32>, %[[B:.*]]: tensor<?x4x2xf32>)
func.func @matmul(%a: tensor<1x?x4xf32>, %b: tensor<?x4x2xf32>) -> index {
  %c0 = arith.constant 0 : index
  %0 = hone.matmul %a, %b : (tensor<1x?x4xf32>, tensor<?x4x2xf32>) -> tensor<?x?x2xf32>
  // CHECK: tensor.dim %[[B]], %c0
  %d = tensor.dim %0, %c0 : tensor<?x?x2xf32>
  return %d : index
}

// CHECK-LABEL: @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x?x4xf32>, %{{.*}}: tensor<1x2x?x4xf32>, %[[V:.*]]: tensor<1x2x?x?xf32>)
func.func @attention(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x?xf32>) -> (index, index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %0 = hone.attention %q, %k, %v pattern(#hone.full) scale(1.0)
     : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32>
  // CHECK: tensor.dim %[[Q]], %c2
  %s = tensor.dim %0, %c2 : tensor<1x2x?x?xf32>
  // CHECK: tensor.dim %[[V]], %c3
  %d = tensor.dim %0, %c3 : tensor<1x2x?x?xf32>
  return %s, %d : index, index
}

// CHECK-LABEL: @unpack
// CHECK-SAME: (%[[W:.*]]: tensor<?x8xf32, #hone.stored<f16>>)
func.func @unpack(%w: tensor<?x8xf32, #hone.stored<f16>>) -> index {
  %c0 = arith.constant 0 : index
  %0 = hone.unpack %w : tensor<?x8xf32, #hone.stored<f16>> -> tensor<?x8xf32>
  // CHECK: tensor.dim %[[W]], %c0
  %d = tensor.dim %0, %c0 : tensor<?x8xf32>
  return %d : index
}

// Of both results.
// CHECK-LABEL: @linear_attention
// CHECK-SAME: (%[[Q:.*]]: tensor<?x?x?x16xf32>, %[[K:.*]]: tensor<?x?x?x16xf32>, %[[V:.*]]: tensor<?x?x?x?xf32>)
func.func @linear_attention(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x?xf32>) -> (index, index, index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %0:2 = hone.linear_attention %q, %k, %v scale(1.0)
       : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x?xf32>) -> (tensor<?x?x?x?xf32>, tensor<?x?x16x?xf32>)
  // CHECK: tensor.dim %[[Q]], %c2
  %heads = tensor.dim %0#0, %c2 : tensor<?x?x?x?xf32>
  // CHECK: tensor.dim %[[K]], %c2
  %states = tensor.dim %0#1, %c1 : tensor<?x?x16x?xf32>
  // CHECK: tensor.dim %[[V]], %c3
  %size = tensor.dim %0#1, %c3 : tensor<?x?x16x?xf32>
  return %heads, %states, %size : index, index, index
}
