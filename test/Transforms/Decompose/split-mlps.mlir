// RUN: hone-opt %s -hone-split-mlps -split-input-file | FileCheck %s

// Two products of x, the gated activation between, a product of what it gives; biases go with their products.
// CHECK-LABEL: @gated
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[G:.*]]: tensor<4x8xf32>, %[[U:.*]]: tensor<4x8xf32>, %[[D:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<4xf32>)
func.func @gated(%x: tensor<?x8xf32>, %g: tensor<4x8xf32>, %u: tensor<4x8xf32>, %d: tensor<8x4xf32>, %b: tensor<4xf32>)
    -> tensor<?x8xf32> {
  // CHECK-DAG: %[[GATE:.*]] = hone.linear %[[X]], %[[G]] bias(%[[B]])
  // CHECK-DAG: %[[UP:.*]] = hone.linear %[[X]], %[[U]] :
  // CHECK: %[[HIDDEN:.*]] = linalg.generic {{.*}} ins(%[[UP]], %[[GATE]] :
  // CHECK: math.exp
  // CHECK: %[[RESULT:.*]] = hone.linear %[[HIDDEN]], %[[D]] :
  // CHECK: return %[[RESULT]]
  %0 = hone.gated_mlp silu %x, gate(%g, %b), up(%u), down(%d)
    : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: @plain
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[U:.*]]: tensor<4x8xf32>, %[[D:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<8xf32>)
func.func @plain(%x: tensor<?x8xf32>, %u: tensor<4x8xf32>, %d: tensor<8x4xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  // CHECK: %[[UP:.*]] = hone.linear %[[X]], %[[U]] :
  // CHECK: %[[HIDDEN:.*]] = linalg.generic {{.*}} ins(%[[UP]] :
  // CHECK: arith.maximumf
  // CHECK: hone.linear %[[HIDDEN]], %[[D]] bias(%[[B]])
  %0 = hone.mlp relu %x, up(%u), down(%d, %b)
    : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A product of bf16 is rounded, what goes into the activation of a block is not.
// CHECK-LABEL: @narrow
func.func @narrow(%x: tensor<?x8xbf16>, %u: tensor<4x8xbf16>, %d: tensor<8x4xbf16>) -> tensor<?x8xbf16> {
  // CHECK: hone.mlp
  %0 = hone.mlp relu %x, up(%u), down(%d) : (tensor<?x8xbf16>, tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<?x8xbf16>
  return %0 : tensor<?x8xbf16>
}
