// Einsum as products of matrices.
//
// RUN: hone-opt %s --hone-expand-einsum --split-input-file | FileCheck %s -enable-var-scope
// RUN: hone-opt %s --hone-expand-einsum --split-input-file --remarks-filter=hone-expand-einsum 2>&1 | FileCheck %s --check-prefix=REMARK

// A projection to heads is the product with a matrix; a bias of heads is added to the row that they are split from.
// CHECK-LABEL: @projection
// CHECK: %[[W:.*]] = "onnx.Reshape"(%{{.*}}, %{{.*}}) : (tensor<6x2x4xf32>, tensor<2xi64>) -> tensor<6x8xf32>
// CHECK: %[[P:.*]] = "onnx.MatMul"(%arg0, %[[W]]) : (tensor<?x?x6xf32>, tensor<6x8xf32>) -> tensor<?x?x8xf32>
// CHECK: %[[B:.*]] = "onnx.Reshape"(%{{.*}}, %{{.*}}) : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<8xf32>
// CHECK: %[[S:.*]] = "onnx.Add"(%[[P]], %[[B]])
// CHECK: dense<[0, 0, 2, 4]>
// CHECK: %[[R:.*]] = "onnx.Reshape"(%[[S]], %{{.*}}) : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
// CHECK: return %[[R]]
hone.param @w : tensor<6x2x4xf32> = dense<1.0> : tensor<6x2x4xf32>
hone.param @b : tensor<2x4xf32> = dense<1.0> : tensor<2x4xf32>
func.func @projection(%x: tensor<?x?x6xf32>) -> tensor<?x?x2x4xf32> {
  %w = hone.get_param @w : tensor<6x2x4xf32>
  %b = hone.get_param @b : tensor<2x4xf32>
  %0 = "onnx.Einsum"(%x, %w) {equation = "bsd,dhe->bshe"} : (tensor<?x?x6xf32>, tensor<6x2x4xf32>) -> tensor<?x?x2x4xf32>
  %1 = "onnx.Add"(%0, %b) : (tensor<?x?x2x4xf32>, tensor<2x4xf32>) -> tensor<?x?x2x4xf32>
  return %1 : tensor<?x?x2x4xf32>
}

// -----

// A weight that is the first term is the right operand all the same, with its dimensions in their order.
// CHECK-LABEL: @weight_first
// CHECK: %[[W:.*]] = "onnx.Transpose"(%{{.*}}) {perm = array<i64: 1, 0, 2>} : (tensor<2x6x4xf32>) -> tensor<6x2x4xf32>
// CHECK: %[[M:.*]] = "onnx.Reshape"(%[[W]], %{{.*}}) {{.*}} -> tensor<6x8xf32>
// CHECK: %[[P:.*]] = "onnx.MatMul"(%arg0, %[[M]])
// CHECK: %[[R:.*]] = "onnx.Reshape"(%[[P]], %{{.*}}) {{.*}} -> tensor<?x5x2x4xf32>
// CHECK: "onnx.Transpose"(%[[R]]) {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x5x2x4xf32>) -> tensor<?x2x5x4xf32>
hone.param @w : tensor<2x6x4xf32> = dense<1.0> : tensor<2x6x4xf32>
func.func @weight_first(%x: tensor<?x5x6xf32>) -> tensor<?x2x5x4xf32> {
  %w = hone.get_param @w : tensor<2x6x4xf32>
  %0 = "onnx.Einsum"(%w, %x) {equation = "hde, bsd -> bhse"} : (tensor<2x6x4xf32>, tensor<?x5x6xf32>) -> tensor<?x2x5x4xf32>
  return %0 : tensor<?x2x5x4xf32>
}

// -----

// Logits, whichever of queries and keys is first.
// CHECK-LABEL: @logits
// CHECK-DAG: %[[Q:.*]] = "onnx.Transpose"(%arg0) {perm = array<i64: 0, 2, 1, 3>}
// CHECK-DAG: %[[K:.*]] = "onnx.Transpose"(%arg1) {perm = array<i64: 0, 2, 3, 1>}
// CHECK: %[[R:.*]] = "onnx.MatMul"(%[[Q]], %[[K]]) : (tensor<?x4x?x8xf32>, tensor<?x4x8x?xf32>) -> tensor<?x4x?x?xf32>
// CHECK-DAG: %[[Q1:.*]] = "onnx.Transpose"(%arg0) {perm = array<i64: 0, 2, 1, 3>}
// CHECK-DAG: %[[K1:.*]] = "onnx.Transpose"(%arg1) {perm = array<i64: 0, 2, 3, 1>}
// CHECK: %[[R1:.*]] = "onnx.MatMul"(%[[Q1]], %[[K1]])
// CHECK: return %[[R]], %[[R1]]
func.func @logits(%q: tensor<?x?x4x8xf32>, %k: tensor<?x?x4x8xf32>) -> (tensor<?x4x?x?xf32>, tensor<?x4x?x?xf32>) {
  %0 = "onnx.Einsum"(%q, %k) {equation = "bqhe,bkhe->bhqk"} : (tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32>) -> tensor<?x4x?x?xf32>
  %1 = "onnx.Einsum"(%k, %q) {equation = "...khe,...qhe->...hqk"} : (tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32>) -> tensor<?x4x?x?xf32>
  return %0, %1 : tensor<?x4x?x?xf32>, tensor<?x4x?x?xf32>
}

// -----

// Values and the projection of heads in one node: two products from left to right.
// CHECK-LABEL: @values_and_projection
// CHECK: %[[V:.*]] = "onnx.Transpose"(%arg1) {perm = array<i64: 0, 2, 1, 3>}
// CHECK: %[[H:.*]] = "onnx.MatMul"(%arg0, %[[V]]) {{.*}} -> tensor<?x2x?x4xf32>
// CHECK: %[[T:.*]] = "onnx.Transpose"(%[[H]]) {perm = array<i64: 0, 2, 1, 3>}
// CHECK: %[[X:.*]] = "onnx.Reshape"(%[[T]], %{{.*}}) {{.*}} -> tensor<?x?x8xf32>
// CHECK: "onnx.MatMul"(%[[X]], %{{.*}}) : (tensor<?x?x8xf32>, tensor<8x6xf32>) -> tensor<?x?x6xf32>
// CHECK-NOT: onnx.Einsum
func.func @values_and_projection(%p: tensor<?x2x?x?xf32>, %v: tensor<?x?x2x4xf32>, %w: tensor<2x4x6xf32>) -> tensor<?x?x6xf32> {
  %0 = "onnx.Einsum"(%p, %v, %w) {equation = "bhqk,bkhe,hed->bqd"} : (tensor<?x2x?x?xf32>, tensor<?x?x2x4xf32>, tensor<2x4x6xf32>) -> tensor<?x?x6xf32>
  return %0 : tensor<?x?x6xf32>
}

// -----

// Queries of a group are merged with their positions, of which one size need not be known.
// CHECK-LABEL: @grouped
// CHECK: %[[Q:.*]] = "onnx.Transpose"(%arg0) {perm = array<i64: 0, 2, 3, 1, 4>}
// CHECK: %[[M:.*]] = "onnx.Reshape"(%[[Q]], %{{.*}}) {{.*}} -> tensor<?x2x?x8xf32>
// CHECK: %[[P:.*]] = "onnx.MatMul"(%[[M]], %{{.*}}) {{.*}} -> tensor<?x2x?x7xf32>
// CHECK: dense<[0, 2, 3, -1, 7]>
// CHECK: "onnx.Reshape"(%[[P]], %{{.*}}) {{.*}} -> tensor<?x2x3x?x7xf32>
func.func @grouped(%q: tensor<?x?x2x3x8xf32>, %k: tensor<?x7x2x8xf32>) -> tensor<?x2x3x?x7xf32> {
  %0 = "onnx.Einsum"(%q, %k) {equation = "bqhgd,bkhd->bhgqk"} : (tensor<?x?x2x3x8xf32>, tensor<?x7x2x8xf32>) -> tensor<?x2x3x?x7xf32>
  return %0 : tensor<?x2x3x?x7xf32>
}

// -----

// Neither rows nor columns: each is one that the result does not have.
// CHECK-LABEL: @inner
// CHECK: "onnx.MatMul"({{.*}}) : (tensor<?x1x4xf32>, tensor<?x4x1xf32>) -> tensor<?x1x1xf32>
// CHECK: "onnx.Reshape"({{.*}}) : (tensor<?x1x1xf32>, tensor<1xi64>) -> tensor<?xf32>
func.func @inner(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?xf32> {
  %0 = "onnx.Einsum"(%x, %y) {equation = "bi,bi->b"} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// What is no product of matrices stays.
// CHECK-LABEL: @others
// CHECK-NOT: onnx.MatMul
// REMARK: it has one operand
// REMARK: it takes a diagonal
// REMARK: it sums a dimension of one operand
// REMARK: it sums nothing
// REMARK: a dimension is empty or repeated
// REMARK: a dimension is empty or repeated
// REMARK: it merges dimensions of unknown size
// REMARK: its operands are not floats of known rank
// REMARK: its equation does not fit its operands
func.func @others(%a: tensor<4x4xf32>, %b: tensor<?x?x?x4xf32>, %c: tensor<1x4xf32>, %d: tensor<?x4xf32>, %i: tensor<4x4xi32>, %z: tensor<0x4xf32>) {
  %0 = "onnx.Einsum"(%a) {equation = "ij->ji"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "onnx.Einsum"(%a, %a) {equation = "ii,ij->j"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %2 = "onnx.Einsum"(%a, %a) {equation = "ij,jk->i"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  %3 = "onnx.Einsum"(%a, %a) {equation = "ij,ij->ij"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "onnx.Einsum"(%c, %d) {equation = "bi,bi->b"} : (tensor<1x4xf32>, tensor<?x4xf32>) -> tensor<?xf32>
  %5 = "onnx.Einsum"(%a, %z) {equation = "ij,kj->ik"} : (tensor<4x4xf32>, tensor<0x4xf32>) -> tensor<4x0xf32>
  %6 = "onnx.Einsum"(%b, %b) {equation = "abci,adei->abcde"} : (tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>) -> tensor<?x?x?x?x?xf32>
  %7 = "onnx.Einsum"(%i, %i) {equation = "ij,jk->ik"} : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  %8 = "onnx.Einsum"(%a, %a) {equation = "ijk,jk->i"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return
}
