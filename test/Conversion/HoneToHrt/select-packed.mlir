// RUN: hone-opt %s -hone-convert-hone-to-hrt -split-input-file | FileCheck %s

// A gated block is three calls: the activation goes with the first, its result is the factor of the second.
// CHECK: hone.param @gate {{.*}}hrt.offsets = array<i64: 0>
// CHECK-LABEL: @block
// CHECK-DAG: %[[G:.*]] = hrt.weight %{{.*}}[0] : memref<2x8x16x1xf32>
// CHECK: %[[GATE:.*]] = hrt.kernel "hone.packed_linear.f32" %{{.*}} ints [2]
// CHECK: %[[HIDDEN:.*]] = hrt.kernel "hone.packed_linear.f32" %{{.*}} ints [0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[GATE]], %{{.*}} :
// CHECK: hrt.kernel "hone.packed_linear.f32" %{{.*}} ints [0] ins(%[[HIDDEN]],
// CHECK-NOT: hone.planes
hone.param @gate : tensor<20x8xf32, #hrt.panels<f32>> = #hone.converted<tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>>
hone.param @up : tensor<20x8xf32, #hrt.panels<f32>> = #hone.converted<tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>>
hone.param @down : tensor<8x20xf32, #hrt.panels<f32>> = #hone.converted<tensor<8x20xf32> = dense<0.0> : tensor<8x20xf32>>
func.func @block(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %g = hone.get_param @gate : tensor<20x8xf32, #hrt.panels<f32>>
  %u = hone.get_param @up : tensor<20x8xf32, #hrt.panels<f32>>
  %d = hone.get_param @down : tensor<8x20xf32, #hrt.panels<f32>>
  %0 = hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)
     : (tensor<?x8xf32>, tensor<20x8xf32, #hrt.panels<f32>>, tensor<20x8xf32, #hrt.panels<f32>>, tensor<8x20xf32, #hrt.panels<f32>>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// An embedding reads single elements where they lie: nothing is unpacked as a whole.
// CHECK-LABEL: @table
// CHECK: hrt.weight %{{.*}}[0] : memref<2x16x16x2xbf16>
// CHECK: linalg.generic
// CHECK: arith.divui
// CHECK: tensor.extract %{{.*}} : tensor<2x16x16x2xbf16>
// CHECK-NOT: tensor<20x8xf32>
hone.param @rows : tensor<20x8xf32, #hrt.panels<bf16>> = #hone.converted<tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>>
func.func @table(%ids: tensor<?xi64>) -> tensor<?x8xf32> {
  %0 = hone.get_param @rows : tensor<20x8xf32, #hrt.panels<bf16>>
  %1 = hone.embedding %ids, %0 : (tensor<?xi64>, tensor<20x8xf32, #hrt.panels<bf16>>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
