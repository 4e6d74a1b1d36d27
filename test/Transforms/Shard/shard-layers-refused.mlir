// A layer that cannot be split stays whole on each rank, with the reason; a model of which none can is refused.

// RUN: not hone-opt %s -split-input-file -hone-shard-layers="ranks=4" -remarks-filter=hone-shard-layers -o /dev/null 2>&1 | FileCheck %s
// RUN: not hone-opt %s -hone-shard-layers="ranks=1" 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: expected the number of ranks to be 2 or more, but got 1

// CHECK: [Missed] Sharded | Category:hone-shard-layers{{.*}}"each rank has all of its GQA groups: they are 2, which is no multiple of 4 ranks"
// CHECK: error: cannot split the model over 4 ranks: GQA groups: they are 2, which is no multiple of 4 ranks
module {
func.func @main(%q: tensor<?x4x?x2xf32>, %k: tensor<?x2x?x2xf32>, %v: tensor<?x2x?x2xf32>) -> tensor<?x4x?x2xf32> {
  %0 = hone.attention %q, %k, %v pattern(#hone.causal) scale(1.0)
     : (tensor<?x4x?x2xf32>, tensor<?x2x?x2xf32>, tensor<?x2x?x2xf32>) -> tensor<?x4x?x2xf32>
  return %0 : tensor<?x4x?x2xf32>
}
}

// -----

// Groups of 64 inputs share a scale: 4 ranks would have half of one each.
// CHECK: error: cannot split the model over 4 ranks: hidden channels: down: a part of its 128 inputs does not begin and end between groups of 64 in 'scales'
module {
hone.param @up : tensor<128x64xf32> = dense<1.0> : tensor<128x64xf32>
hone.param @down : tensor<64x128xf32, #hone.affine<bits = 4, group = 64>> = #hone.converted<tensor<64x128xf32> = dense<1.0> : tensor<64x128xf32>>
func.func @main(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %up = hone.get_param @up : tensor<128x64xf32>
  %down = hone.get_param @down : tensor<64x128xf32, #hone.affine<bits = 4, group = 64>>
  %0 = hone.mlp gelu %x, up(%up), down(%down)
     : (tensor<?x64xf32>, tensor<128x64xf32>, tensor<64x128xf32, #hone.affine<bits = 4, group = 64>>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
}

// -----

// Outliers lie in 16 rows together.
// CHECK: error: cannot split the model over 4 ranks: hidden channels: up: no part of its form can be taken
module {
hone.param @up : tensor<128x64xf32, #hone.dense_sparse<of = #hone.affine<bits = 4, group = 64>, outliers = 16>> = #hone.converted<tensor<128x64xf32> = dense<1.0> : tensor<128x64xf32>>
hone.param @down : tensor<64x128xf32> = dense<1.0> : tensor<64x128xf32>
func.func @main(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %up = hone.get_param @up : tensor<128x64xf32, #hone.dense_sparse<of = #hone.affine<bits = 4, group = 64>, outliers = 16>>
  %down = hone.get_param @down : tensor<64x128xf32>
  %0 = hone.mlp gelu %x, up(%up), down(%down)
     : (tensor<?x64xf32>, tensor<128x64xf32, #hone.dense_sparse<of = #hone.affine<bits = 4, group = 64>, outliers = 16>>, tensor<64x128xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
}

// -----

// CHECK: error: cannot split the model over 4 ranks: it has neither attention nor feed-forward blocks
module {
func.func @main(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  return %x : tensor<?x64xf32>
}
}

// -----

// CHECK: error: expected a model that is not split over ranks yet
module {
shard.grid @ranks(shape = 2)
}
