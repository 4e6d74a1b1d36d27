// RUN: hone-opt %s --hone-split-empties | FileCheck %s

// CHECK-LABEL: func.func @shared(
// CHECK: %[[A:.*]] = tensor.empty
// CHECK: %[[B:.*]] = tensor.empty
// CHECK-NOT: tensor.empty
// CHECK-DAG: linalg.fill {{.*}} outs(%[[A]]
// CHECK-DAG: linalg.fill {{.*}} outs(%[[B]]
func.func @shared(%n: index, %zero: f32, %one: f32) -> (tensor<?xf32>, tensor<?xf32>) {
  %empty = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %1 = linalg.fill ins(%one : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

// Two sums that begin with the same zeros: neither has to copy them.
// CHECK-LABEL: func.func @zeros(
// CHECK: %[[A:.*]] = linalg.fill
// CHECK: %[[B:.*]] = linalg.fill
// CHECK-DAG: linalg.reduce {{.*}} outs(%[[A]]
// CHECK-DAG: linalg.reduce {{.*}} outs(%[[B]]
func.func @zeros(%x: tensor<?x8xf32>, %n: index, %zero: f32) -> (tensor<?xf32>, tensor<?xf32>) {
  %empty = tensor.empty(%n) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.reduce {arith.addf} ins(%x : tensor<?x8xf32>) outs(%zeros : tensor<?xf32>) dimensions = [1]
  %1 = linalg.reduce {arith.maximumf} ins(%x : tensor<?x8xf32>) outs(%zeros : tensor<?xf32>) dimensions = [1]
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}

// Zeros that are read are the same for all.
// CHECK-LABEL: func.func @read(
// CHECK: linalg.fill
// CHECK-NOT: linalg.fill
// CHECK: return
func.func @read(%n: index, %zero: f32) -> (tensor<?xf32>, tensor<?xf32>) {
  %empty = tensor.empty(%n) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  return %zeros, %zeros : tensor<?xf32>, tensor<?xf32>
}
