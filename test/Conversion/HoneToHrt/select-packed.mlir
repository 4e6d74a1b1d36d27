// RUN: hone-opt %s -hone-convert-hone-to-hrt -split-input-file | FileCheck %s

// A gated block whose weights are alike is one call.
// CHECK: hone.param @gate {{.*}}hrt.offsets = array<i64: 0>
// CHECK-LABEL: @gated_block
// CHECK-DAG: %[[G:.*]] = hrt.weight %{{.*}}[0] : memref<2x8x16x1xf32>
// CHECK: hrt.kernel "hone.packed_mlp.f32" %{{.*}} ints [2, 20] ins(%{{.*}} : tensor<?x8xf32>, tensor<2x8x16x1xf32>, tensor<f32>, tensor<2x8x16x1xf32>, tensor<f32>, tensor<1x20x16x1xf32>, tensor<f32>, tensor<f32>)
// CHECK-NOT: hrt.kernel
// CHECK-NOT: hone.planes
hone.param @gate : tensor<20x8xf32, #hrt.panels<f32>> = #hone.converted<tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>>
hone.param @up : tensor<20x8xf32, #hrt.panels<f32>> = #hone.converted<tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>>
hone.param @down : tensor<8x20xf32, #hrt.panels<f32>> = #hone.converted<tensor<8x20xf32> = dense<0.0> : tensor<8x20xf32>>
func.func @gated_block(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %g = hone.get_param @gate : tensor<20x8xf32, #hrt.panels<f32>>
  %u = hone.get_param @up : tensor<20x8xf32, #hrt.panels<f32>>
  %d = hone.get_param @down : tensor<8x20xf32, #hrt.panels<f32>>
  %0 = hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)
     : (tensor<?x8xf32>, tensor<20x8xf32, #hrt.panels<f32>>, tensor<20x8xf32, #hrt.panels<f32>>, tensor<8x20xf32, #hrt.panels<f32>>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// One with a gate of another type is three: the activation goes with the first, whose result is the factor of the second.
// CHECK-LABEL: @mixed_gate
// CHECK: %[[GATE:.*]] = hrt.kernel "hone.packed_linear.bf16" %{{.*}} ints [2]
// CHECK: %[[HIDDEN:.*]] = hrt.kernel "hone.packed_linear.f32" %{{.*}} ints [0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[GATE]], %{{.*}} :
// CHECK: hrt.kernel "hone.packed_linear.f32" %{{.*}} ints [0] ins(%[[HIDDEN]],
hone.param @gate : tensor<20x8xf32, #hrt.panels<bf16>> = #hone.converted<tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>>
hone.param @up : tensor<20x8xf32, #hrt.panels<f32>> = #hone.converted<tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>>
hone.param @down : tensor<8x20xf32, #hrt.panels<f32>> = #hone.converted<tensor<8x20xf32> = dense<0.0> : tensor<8x20xf32>>
func.func @mixed_gate(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %g = hone.get_param @gate : tensor<20x8xf32, #hrt.panels<bf16>>
  %u = hone.get_param @up : tensor<20x8xf32, #hrt.panels<f32>>
  %d = hone.get_param @down : tensor<8x20xf32, #hrt.panels<f32>>
  %0 = hone.gated_mlp silu %x, gate(%g), up(%u), down(%d)
     : (tensor<?x8xf32>, tensor<20x8xf32, #hrt.panels<bf16>>, tensor<20x8xf32, #hrt.panels<f32>>, tensor<8x20xf32, #hrt.panels<f32>>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Two products with an activation between them are one call where both weights are floats of the same type.
// CHECK-LABEL: @block
// CHECK: %[[U:.*]] = hrt.weight {{.*}} : memref<2x8x16x1xf32>
// CHECK: %[[D:.*]] = hrt.weight {{.*}} : memref<1x20x16x1xf32>
// CHECK: hrt.kernel "hone.packed_mlp.f32" %{{.*}} ints [3, 20] ins(%{{.*}} : tensor<?x8xf32>, tensor<f32>, tensor<f32>, tensor<2x8x16x1xf32>, tensor<20xf32>, tensor<1x20x16x1xf32>, tensor<f32>, tensor<f32>)
// CHECK-NOT: hrt.kernel
hone.param @up : tensor<20x8xf32, #hrt.panels<f32>> = #hone.converted<tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>>
hone.param @down : tensor<8x20xf32, #hrt.panels<f32>> = #hone.converted<tensor<8x20xf32> = dense<0.0> : tensor<8x20xf32>>
func.func @block(%x: tensor<?x8xf32>, %b: tensor<20xf32>) -> tensor<?x8xf32> {
  %u = hone.get_param @up : tensor<20x8xf32, #hrt.panels<f32>>
  %d = hone.get_param @down : tensor<8x20xf32, #hrt.panels<f32>>
  %0 = hone.mlp gelu %x, up(%u, %b), down(%d)
     : (tensor<?x8xf32>, tensor<20x8xf32, #hrt.panels<f32>>, tensor<8x20xf32, #hrt.panels<f32>>, tensor<20xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Integers too, where their products may be those of floats.
// CHECK-LABEL: @integer_block
// CHECK: hrt.kernel "hone.packed_mlp.u4" %{{.*}} ints [2, 32, 32, 8, 1]
// CHECK-NOT: hrt.kernel
hone.param @up : tensor<32x32xf32, #hrt.panels<#hone.affine<bits = 4, group = 32, activations = 8, atLeast = true>>> = #hone.converted<tensor<32x32xf32> = dense<0.0> : tensor<32x32xf32>>
hone.param @down : tensor<32x32xf32, #hrt.panels<#hone.affine<bits = 4, group = 32, activations = 8, atLeast = true>>> = #hone.converted<tensor<32x32xf32> = dense<0.0> : tensor<32x32xf32>>
func.func @integer_block(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %u = hone.get_param @up : tensor<32x32xf32, #hrt.panels<#hone.affine<bits = 4, group = 32, activations = 8, atLeast = true>>>
  %d = hone.get_param @down : tensor<32x32xf32, #hrt.panels<#hone.affine<bits = 4, group = 32, activations = 8, atLeast = true>>>
  %0 = hone.mlp silu %x, up(%u), down(%d) : (tensor<?x32xf32>, tensor<32x32xf32, #hrt.panels<#hone.affine<bits = 4, group = 32, activations = 8, atLeast = true>>>, tensor<32x32xf32, #hrt.panels<#hone.affine<bits = 4, group = 32, activations = 8, atLeast = true>>>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

// Weights of two types are two calls.
// CHECK-LABEL: @mixed_block
// CHECK: hrt.kernel "hone.packed_linear.bf16" %{{.*}} ints [3]
// CHECK: hrt.kernel "hone.packed_linear.f32" %{{.*}} ints [0]
hone.param @up : tensor<20x8xf32, #hrt.panels<bf16>> = #hone.converted<tensor<20x8xf32> = dense<0.0> : tensor<20x8xf32>>
hone.param @down : tensor<8x20xf32, #hrt.panels<f32>> = #hone.converted<tensor<8x20xf32> = dense<0.0> : tensor<8x20xf32>>
func.func @mixed_block(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %u = hone.get_param @up : tensor<20x8xf32, #hrt.panels<bf16>>
  %d = hone.get_param @down : tensor<8x20xf32, #hrt.panels<f32>>
  %0 = hone.mlp gelu %x, up(%u), down(%d)
     : (tensor<?x8xf32>, tensor<20x8xf32, #hrt.panels<bf16>>, tensor<8x20xf32, #hrt.panels<f32>>) -> tensor<?x8xf32>
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

// -----

// Codes of three bits take three lines of 64 bytes for 32 inputs, of two bits one for 16; a table of them is read code by code.
// CHECK-LABEL: @narrow
// CHECK-COUNT-2: tensor.extract %{{.*}} : tensor<1x6x16x4xi8>
// CHECK: hrt.kernel "hone.packed_linear.u3" %{{.*}} ins({{.*}} tensor<1x6x16x4xi8>, tensor<1x1x16xf32>
// CHECK: hrt.kernel "hone.packed_linear.u2" %{{.*}} ins({{.*}} tensor<1x4x16x4xi8>, tensor<1x1x16xf32>
hone.param @three : tensor<8x20xf32, #hrt.panels<#hone.affine<bits = 3>>> = #hone.converted<tensor<8x20xf32> = dense<0.0> : tensor<8x20xf32>>
hone.param @two : tensor<8x8xf32, #hrt.panels<#hone.affine<bits = 2>>> = #hone.converted<tensor<8x8xf32> = dense<0.0> : tensor<8x8xf32>>
func.func @narrow(%ids: tensor<?xi64>) -> tensor<?x8xf32> {
  %3 = hone.get_param @three : tensor<8x20xf32, #hrt.panels<#hone.affine<bits = 3>>>
  %2 = hone.get_param @two : tensor<8x8xf32, #hrt.panels<#hone.affine<bits = 2>>>
  %0 = hone.embedding %ids, %3 : (tensor<?xi64>, tensor<8x20xf32, #hrt.panels<#hone.affine<bits = 3>>>) -> tensor<?x20xf32>
  %1 = hone.linear %0, %3 : (tensor<?x20xf32>, tensor<8x20xf32, #hrt.panels<#hone.affine<bits = 3>>>) -> tensor<?x8xf32>
  %4 = hone.linear %1, %2 : (tensor<?x8xf32>, tensor<8x8xf32, #hrt.panels<#hone.affine<bits = 2>>>) -> tensor<?x8xf32>
  return %4 : tensor<?x8xf32>
}

// -----

// A weight of integers: its plane of records, at a line of the cache, of which codes, scales and zero points are views, and the group
// and bits as attributes. Zero points that are not stored are absent.
// CHECK: hone.param @codes {{.*}}hrt.offsets = array<i64: 0>
// CHECK: hone.param @zeros {{.*}}hrt.offsets = array<i64: 2176>
// CHECK-LABEL: @quantized
// CHECK-DAG: hrt.weight %{{.*}}[64] : memref<2x16x16x4xi8, strided<[1088, 64, 4, 1]>>
// CHECK-DAG: hrt.weight %{{.*}}[0] : memref<2x1x16xf16, strided<[544, 16, 1]>>
// CHECK: hrt.kernel "hone.packed_linear.u8" %{{.*}} ints [0, 0, 8, 0] ins({{.*}} : tensor<?x3xf32>, tensor<2x16x16x4xi8>, tensor<2x1x16xf16>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
// CHECK-DAG: hrt.weight %{{.*}}[2368] : memref<1x8x16x4xi8, strided<[704, 64, 4, 1]>>
// CHECK-DAG: hrt.weight %{{.*}}[2240] : memref<1x2x16xf32, strided<[176, 16, 1]>>
// CHECK-DAG: hrt.weight %{{.*}}[2176] : memref<1x2x16xi8, strided<[704, 16, 1]>>
// CHECK: hrt.kernel "hone.packed_linear.u4" %{{.*}} ints [0, 32, 16, 0] ins({{.*}} : tensor<?x20xf32>, tensor<1x8x16x4xi8>, tensor<1x2x16xf32>, tensor<1x2x16xi8>, tensor<f32>, tensor<f32>, tensor<f32>)
hone.param @codes : tensor<20x3xf32, #hrt.panels<#hone.affine<bits = 8, scales = f16, activations = 8>>> = #hone.converted<tensor<20x3xf32> = dense<0.0> : tensor<20x3xf32>>
hone.param @zeros : tensor<3x20xf32, #hrt.panels<#hone.affine<bits = 4, group = 32, hasZeros = true>>> = #hone.converted<tensor<3x20xf32> = dense<0.0> : tensor<3x20xf32>>
func.func @quantized(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %l = hone.get_param @codes : tensor<20x3xf32, #hrt.panels<#hone.affine<bits = 8, scales = f16, activations = 8>>>
  %z = hone.get_param @zeros : tensor<3x20xf32, #hrt.panels<#hone.affine<bits = 4, group = 32, hasZeros = true>>>
  %0 = hone.linear %x, %l : (tensor<?x3xf32>, tensor<20x3xf32, #hrt.panels<#hone.affine<bits = 8, scales = f16, activations = 8>>>) -> tensor<?x20xf32>
  %1 = hone.linear %0, %z : (tensor<?x20xf32>, tensor<3x20xf32, #hrt.panels<#hone.affine<bits = 4, group = 32, hasZeros = true>>>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}

// -----

// Where two of four inputs are kept, other kernels read indices beside the values.
// CHECK-LABEL: @sparse
// CHECK: hrt.kernel "hone.sparse_mlp.bf16" %{{.*}} ints [2, 32] ins(%{{.*}} : tensor<?x32xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<2x8x16x2xbf16>, tensor<2x1x16x4xi8>, tensor<f32>, tensor<2x8x16x2xbf16>, tensor<2x1x16x4xi8>, tensor<f32>, tensor<f32>)
// CHECK: hrt.kernel "hone.sparse_linear.u4" %{{.*}} ints [0, 32, 8, 1] ins(%{{.*}} : tensor<?x32xf32>, tensor<2x4x16x4xi8>, tensor<2x2x16x4xi8>, tensor<2x2x16xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
hone.param @up : tensor<32x32xf32, #hrt.panels<#hone.nm<2:4, of = bf16>>> = #hone.converted<tensor<32x32xf32> = dense<0.0> : tensor<32x32xf32>>
hone.param @last : tensor<32x32xf32, #hrt.panels<#hone.nm<2:4, of = #hone.affine<bits = 4, group = 32, activations = 8, atLeast = true>>>> = #hone.converted<tensor<32x32xf32> = dense<0.0> : tensor<32x32xf32>>
func.func @sparse(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %u = hone.get_param @up : tensor<32x32xf32, #hrt.panels<#hone.nm<2:4, of = bf16>>>
  %l = hone.get_param @last : tensor<32x32xf32, #hrt.panels<#hone.nm<2:4, of = #hone.affine<bits = 4, group = 32, activations = 8, atLeast = true>>>>
  %0 = hone.mlp silu %x, up(%u), down(%u)
     : (tensor<?x32xf32>, tensor<32x32xf32, #hrt.panels<#hone.nm<2:4, of = bf16>>>, tensor<32x32xf32, #hrt.panels<#hone.nm<2:4, of = bf16>>>) -> tensor<?x32xf32>
  %1 = hone.linear %0, %l : (tensor<?x32xf32>, tensor<32x32xf32, #hrt.panels<#hone.nm<2:4, of = #hone.affine<bits = 4, group = 32, activations = 8, atLeast = true>>>>) -> tensor<?x32xf32>
  return %1 : tensor<?x32xf32>
}

// -----

// Outliers come before the codes, whose zero points may be absent. The layers of a block may have other numbers of them than each other.
// Planes of addresses, the first two of each parameter, come after all others.
// CHECK: hone.param @up {{.*}}hrt.offsets = array<i64: 2752, 2816, 0, 192>
// CHECK: hone.param @down {{.*}}hrt.offsets = array<i64: 3008, 3072, 1344, 1600>
// CHECK-LABEL: @sparse_block
// CHECK: hrt.kernel "hone.packed_mlp.outliers.u4" %{{.*}} ints [2, 32, 32, 8, 1] ins(%{{.*}} : tensor<?x32xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xi32>, tensor<5x16xi16>, tensor<5x16xf16>, tensor<2x8x16x4xi8>, tensor<2x2x16xf16>, tensor<f32>, tensor<f32>, tensor<3xi32>, tensor<7x16xi16>, tensor<7x16xf16>, tensor<2x8x16x4xi8>, tensor<2x2x16xf16>, tensor<f32>, tensor<f32>, tensor<f32>)
// CHECK: hrt.kernel "hone.packed_linear.outliers.u4" %{{.*}} ints [0, 32, 8, 1] ins(%{{.*}} : tensor<?x32xf32>, tensor<3xi32>, tensor<5x16xi16>, tensor<5x16xf16>, tensor<2x8x16x4xi8>, tensor<2x2x16xf16>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
!weight = tensor<32x32xf32, #hrt.panels<#hone.dense_sparse<of = #hone.affine<bits = 4, group = 32, scales = f16, activations = 8, atLeast = true>, outliers = 80>>>
!other = tensor<32x32xf32, #hrt.panels<#hone.dense_sparse<of = #hone.affine<bits = 4, group = 32, scales = f16, activations = 8, atLeast = true>, outliers = 112>>>
hone.param @up : !weight = #hone.converted<tensor<32x32xf32> = dense<0.0> : tensor<32x32xf32>>
hone.param @down : !other = #hone.converted<tensor<32x32xf32> = dense<0.0> : tensor<32x32xf32>>
func.func @sparse_block(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %u = hone.get_param @up : !weight
  %d = hone.get_param @down : !other
  %0 = hone.mlp silu %x, up(%u), down(%d) : (tensor<?x32xf32>, !weight, !other) -> tensor<?x32xf32>
  %1 = hone.linear %0, %u : (tensor<?x32xf32>, !weight) -> tensor<?x32xf32>
  return %1 : tensor<?x32xf32>
}

// -----

// Indices and tables; outliers come before them.
// CHECK-LABEL: @codebooks
// CHECK: hrt.kernel "hone.packed_mlp.codebook.u4" %{{.*}} ints [2, 32] ins(%{{.*}} : tensor<?x32xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<2x4x4x16xi8>, tensor<2x8x4x16xi8>, tensor<f32>, tensor<2x4x4x16xi8>, tensor<2x8x4x16xi8>, tensor<f32>, tensor<f32>)
// CHECK: hrt.kernel "hone.packed_linear.outliers.codebook.u3" %{{.*}} ints [0] ins(%{{.*}} : tensor<?x32xf32>, tensor<3xi32>, tensor<5x16xi16>, tensor<5x16xf16>, tensor<2x3x4x16xi8>, tensor<2x4x4x16xi8>, tensor<f32>, tensor<f32>, tensor<f32>)
!codes = tensor<32x32xf32, #hrt.panels<#hone.codebook<bits = 4>>>
!missing = tensor<32x32xf32, #hrt.panels<#hone.dense_sparse<of = #hone.codebook<bits = 3>, outliers = 80>>>
hone.param @up : !codes = #hone.converted<tensor<32x32xf32> = dense<0.0> : tensor<32x32xf32>>
hone.param @down : !codes = #hone.converted<tensor<32x32xf32> = dense<0.0> : tensor<32x32xf32>>
hone.param @last : !missing = #hone.converted<tensor<32x32xf32> = dense<0.0> : tensor<32x32xf32>>
func.func @codebooks(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %u = hone.get_param @up : !codes
  %d = hone.get_param @down : !codes
  %l = hone.get_param @last : !missing
  %0 = hone.mlp silu %x, up(%u), down(%d) : (tensor<?x32xf32>, !codes, !codes) -> tensor<?x32xf32>
  %1 = hone.linear %0, %l : (tensor<?x32xf32>, !missing) -> tensor<?x32xf32>
  return %1 : tensor<?x32xf32>
}
