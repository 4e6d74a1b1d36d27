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
