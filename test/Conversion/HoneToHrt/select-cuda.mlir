// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda | FileCheck %s --enable-var-scope
// RUN: not hone-opt %s --hone-convert-hone-to-hrt=target=abacus 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unsupported target 'abacus'; supported: cpu, cuda

hone.param @up : tensor<16x8xf32, #hone.stored<bf16, transposed>> = #hone.external<"weights.bin", 0, 256>
hone.param @gate : tensor<16x8xf32, #hone.stored<bf16>> = #hone.external<"weights.bin", 256, 256>
hone.param @down : tensor<8x16xf32, #hone.stored<bf16>> = #hone.external<"weights.bin", 512, 256>
hone.param @codes4 : tensor<16x64xf32, #hone.affine<bits = 4, group = 32, scales = f16, hasZeros = true>> = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>
hone.param @codes8 : tensor<64x16xf32, #hone.affine<bits = 8, isSigned = true>> = #hone.converted<tensor<64x16xf32> = dense<0.5> : tensor<64x16xf32>>
hone.param @codes3 : tensor<16x64xf32, #hone.affine<bits = 3, group = 32>> = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>
hone.param @atLeast8 : tensor<16x64xf32, #hone.affine<bits = 8, group = 32, activations = 8, atLeast = true>> = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>
hone.param @exactly8 : tensor<16x64xf32, #hone.affine<bits = 8, group = 32, activations = 8>> = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>
hone.param @narrow : tensor<16x40xf32, #hone.affine<bits = 3>> = #hone.converted<tensor<16x40xf32> = dense<0.5> : tensor<16x40xf32>>
hone.param @outliers : tensor<16x64xf32, #hone.dense_sparse<of = #hone.affine<bits = 2, group = 32>, outliers = 32>> = #hone.converted<tensor<16x64xf32> = dense<0.5> : tensor<16x64xf32>>
hone.param @kept : tensor<16x64xf32, #hone.nm<2:4, of = bf16>> = #hone.converted<tensor<16x64xf32> = dense<0.0> : tensor<16x64xf32>>
hone.param @kept4 : tensor<16x64xf32, #hone.nm<2:4, of = #hone.affine<bits = 4, group = 64>>> = #hone.converted<tensor<16x64xf32> = dense<0.0> : tensor<16x64xf32>>
hone.param @kept40 : tensor<16x40xf32, #hone.nm<2:4, of = f32>> = #hone.converted<tensor<16x40xf32> = dense<0.0> : tensor<16x40xf32>>
hone.param @odd : tensor<16x6xf32, #hone.stored<bf16>> = #hone.external<"weights.bin", 768, 192>

// A constant of different elements is a parameter.
// CHECK: hone.param @constant : tensor<8xf32> = dense
// What lies input after input is transposed when the artefact is written.
// CHECK: hone.param @up : tensor<16x8xf32, #hone.stored<bf16>> = #hone.converted

// CHECK-LABEL: @layers
// CHECK-NOT: rms_norm
// CHECK: %[[H:.*]] = hrt.kernel "cuda.gated_linear.bf16" %{{.*}} ints [2, 0] floats [1.000000e-05] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<8xf32>, tensor<16x8xbf16>, tensor<f32>, tensor<16x8xbf16>, tensor<f32>)
// CHECK: hrt.kernel "cuda.linear.bf16" %{{.*}} ints [0] ins(%[[H]],
func.func @layers(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %scale = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %n = hone.rms_norm %x, %scale epsilon(1.0e-5) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %gate = hone.get_param @gate : tensor<16x8xf32, #hone.stored<bf16>>
  %up = hone.get_param @up : tensor<16x8xf32, #hone.stored<bf16, transposed>>
  %down = hone.get_param @down : tensor<8x16xf32, #hone.stored<bf16>>
  %y = hone.gated_mlp silu %n, gate(%gate), up(%up), down(%down) : (tensor<?x8xf32>, tensor<16x8xf32, #hone.stored<bf16>>, tensor<16x8xf32, #hone.stored<bf16, transposed>>, tensor<8x16xf32, #hone.stored<bf16>>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// Codes are read where they lie: planes, group and sign.
// CHECK-LABEL: @codes
// CHECK: hrt.kernel "cuda.linear.affine4" %{{.*}} ints [0, 32, 0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<16x32xi8>, tensor<16x2xf16>, tensor<16x1xi8>, tensor<f32>, tensor<f32>, tensor<f32>)
// CHECK: hrt.kernel "cuda.linear.affine8" %{{.*}} ints [0, 0, 1] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x16xf32>, tensor<64x16xi8>, tensor<64x1xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
func.func @codes(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = hone.get_param @codes4 : tensor<16x64xf32, #hone.affine<bits = 4, group = 32, scales = f16, hasZeros = true>>
  %v = hone.get_param @codes8 : tensor<64x16xf32, #hone.affine<bits = 8, isSigned = true>>
  %h = hone.linear %x, %w : (tensor<?x64xf32>, tensor<16x64xf32, #hone.affine<bits = 4, group = 32, scales = f16, hasZeros = true>>) -> tensor<?x16xf32>
  %y = hone.linear %h, %v : (tensor<?x16xf32>, tensor<64x16xf32, #hone.affine<bits = 8, isSigned = true>>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: @narrow_codes
// CHECK: hrt.kernel "cuda.linear.affine3" %{{.*}} ints [0, 32, 0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<16x24xi8>, tensor<16x2xf32>, tensor<f32>,
// CHECK: hrt.kernel "cuda.linear.outliers.affine2" %{{.*}} ints [0, 32, 0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<2xi32>, tensor<2x16xi16>, tensor<2x16xf16>, tensor<16x16xi8>, tensor<16x2xf32>, tensor<f32>,
func.func @narrow_codes(%x: tensor<?x64xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %w = hone.get_param @codes3 : tensor<16x64xf32, #hone.affine<bits = 3, group = 32>>
  %v = hone.get_param @outliers : tensor<16x64xf32, #hone.dense_sparse<of = #hone.affine<bits = 2, group = 32>, outliers = 32>>
  %y = hone.linear %x, %w : (tensor<?x64xf32>, tensor<16x64xf32, #hone.affine<bits = 3, group = 32>>) -> tensor<?x16xf32>
  %z = hone.linear %x, %v : (tensor<?x64xf32>, tensor<16x64xf32, #hone.dense_sparse<of = #hone.affine<bits = 2, group = 32>, outliers = 32>>) -> tensor<?x16xf32>
  return %y, %z : tensor<?x16xf32>, tensor<?x16xf32>
}

// Two of every four inputs and where they are; rows of 40 inputs are no whole words of that.
// CHECK-LABEL: @kept_inputs
// CHECK: hrt.kernel "cuda.sparse_linear.bf16" %{{.*}} ints [0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<16x32xbf16>, tensor<16x8xi8>, tensor<f32>,
// CHECK: hrt.kernel "cuda.sparse_linear.affine4" %{{.*}} ints [0, 64, 0] ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<16x16xi8>, tensor<16x8xi8>, tensor<16x1xf32>, tensor<f32>,
// CHECK-NOT: hrt.kernel
// CHECK: return
func.func @kept_inputs(%x: tensor<?x64xf32>, %n: tensor<?x40xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  %w = hone.get_param @kept : tensor<16x64xf32, #hone.nm<2:4, of = bf16>>
  %v = hone.get_param @kept4 : tensor<16x64xf32, #hone.nm<2:4, of = #hone.affine<bits = 4, group = 64>>>
  %u = hone.get_param @kept40 : tensor<16x40xf32, #hone.nm<2:4, of = f32>>
  %y = hone.linear %x, %w : (tensor<?x64xf32>, tensor<16x64xf32, #hone.nm<2:4, of = bf16>>) -> tensor<?x16xf32>
  %z = hone.linear %x, %v : (tensor<?x64xf32>, tensor<16x64xf32, #hone.nm<2:4, of = #hone.affine<bits = 4, group = 64>>>) -> tensor<?x16xf32>
  %a = hone.linear %n, %u : (tensor<?x40xf32>, tensor<16x40xf32, #hone.nm<2:4, of = f32>>) -> tensor<?x16xf32>
  return %y, %z, %a : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}

// Rows of 15 bytes are no whole words.
// CHECK-LABEL: @other_codes
// CHECK-NOT: hrt.kernel
// CHECK: return
func.func @other_codes(%n: tensor<?x40xf32>) -> tensor<?x16xf32> {
  %w = hone.get_param @narrow : tensor<16x40xf32, #hone.affine<bits = 3>>
  %y = hone.linear %n, %w : (tensor<?x40xf32>, tensor<16x40xf32, #hone.affine<bits = 3>>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// No kernel rounds activations: where that is part of what a product means, it is done before, and where it may be done, not at all.
// CHECK-LABEL: @rounded_activations
// CHECK: linalg.generic
// CHECK: arith.maximumf
// CHECK: %[[X:.*]] = linalg.generic
// CHECK: math.roundeven
// CHECK: hrt.kernel "cuda.linear.affine8" %{{.*}} ints [0, 32, 0] ins(%[[X]],
// CHECK-NOT: linalg.generic
// CHECK: hrt.kernel "cuda.linear.affine8" %{{.*}} ints [0, 32, 0]
func.func @rounded_activations(%x: tensor<?x64xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %w = hone.get_param @exactly8 : tensor<16x64xf32, #hone.affine<bits = 8, group = 32, activations = 8>>
  %v = hone.get_param @atLeast8 : tensor<16x64xf32, #hone.affine<bits = 8, group = 32, activations = 8, atLeast = true>>
  %y = hone.linear %x, %w : (tensor<?x64xf32>, tensor<16x64xf32, #hone.affine<bits = 8, group = 32, activations = 8>>) -> tensor<?x16xf32>
  %z = hone.linear %x, %v : (tensor<?x64xf32>, tensor<16x64xf32, #hone.affine<bits = 8, group = 32, activations = 8, atLeast = true>>) -> tensor<?x16xf32>
  return %y, %z : tensor<?x16xf32>, tensor<?x16xf32>
}

// Rows of 12 bytes do not begin at multiples of 16.
// CHECK-LABEL: @unaligned
// CHECK-NOT: hrt.kernel
// CHECK: linalg.generic
func.func @unaligned(%x: tensor<?x6xf32>) -> tensor<?x16xf32> {
  %w = hone.get_param @odd : tensor<16x6xf32, #hone.stored<bf16>>
  %y = hone.linear %x, %w : (tensor<?x6xf32>, tensor<16x6xf32, #hone.stored<bf16>>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// Keys and values are read as rows, whatever their type.
// CHECK-LABEL: @attention
// CHECK: hrt.kernel "cuda.attention.f32" %{{.*}} ints [1, -1, 0, 0, 0] floats [5.000000e-01, 0.000000e+00] ins({{.*}} : tensor<?x4x?x32xf32>, tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>,
func.func @attention(%q: tensor<?x4x?x32xf32>, %k: tensor<?x2x?x32xbf16>, %v: tensor<?x2x?x32xbf16>) -> tensor<?x4x?x32xf32> {
  %y = hone.attention %q, %k, %v pattern(#hone.causal) scale(0.5) : (tensor<?x4x?x32xf32>, tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>) -> tensor<?x4x?x32xf32>
  return %y : tensor<?x4x?x32xf32>
}
