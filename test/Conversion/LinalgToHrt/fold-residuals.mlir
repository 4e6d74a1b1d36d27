// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: hone-opt %s --hone-fold-residuals | FileCheck %s

#same = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#vector = affine_map<(d0, d1) -> (d1)>

// The residual is known only after the layer: the call moves.
// CHECK-LABEL: func.func @sum(
// CHECK: %[[R:.*]] = math.absf %{{.*}} : tensor<?x32xf32>
// CHECK: %[[Y:.*]] = hrt.kernel "hone.packed_linear.f32" %{{.*}} ins({{.*}}, %[[R]] :
// CHECK-NOT: linalg.generic
// CHECK: return %[[Y]]
func.func @sum(%call: !hrt.call, %x: tensor<?x16xf32>, %w: tensor<2x16x16x1xf32>, %r: tensor<?x32xf32>,
               %init: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %none = arith.constant dense<0.0> : tensor<f32>
  %y = hrt.kernel "hone.packed_linear.f32" %call ints [0]
      ins(%x, %w, %none, %none, %none : tensor<?x16xf32>, tensor<2x16x16x1xf32>, tensor<f32>, tensor<f32>, tensor<f32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %later = math.absf %r : tensor<?x32xf32>
  %s = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%later, %y : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  return %s : tensor<?x32xf32>
}

// The same on a GPU.
// CHECK-LABEL: func.func @sum_on_gpu(
// CHECK-SAME: %[[R:[a-z0-9]*]]: tensor<?x32xf32>
// CHECK: %[[Y:.*]] = hrt.kernel "cuda.linear.bf16" %{{.*}} ins({{.*}}, %[[R]] :
// CHECK: return %[[Y]]
func.func @sum_on_gpu(%call: !hrt.call, %x: tensor<?x16xf32>, %w: tensor<32x16xbf16>, %r: tensor<?x32xf32>,
                      %init: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %none = arith.constant dense<0.0> : tensor<f32>
  %y = hrt.kernel "cuda.linear.bf16" %call ints [0]
      ins(%x, %w, %none, %none, %none : tensor<?x16xf32>, tensor<32x16xbf16>, tensor<f32>, tensor<f32>, tensor<f32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%r, %y : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  return %s : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @after_block(
// CHECK-SAME: %[[R:[a-z0-9]*]]: tensor<?x32xf32>
// CHECK: %[[Y:.*]] = hrt.kernel "hone.packed_mlp.f32" %{{.*}} ins({{.*}}, %[[R]] :
// CHECK: return %[[Y]]
func.func @after_block(%call: !hrt.call, %x: tensor<?x16xf32>, %u: tensor<4x16x16x1xf32>, %d: tensor<2x64x16x1xf32>,
                       %r: tensor<?x32xf32>, %init: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %none = arith.constant dense<0.0> : tensor<f32>
  %y = hrt.kernel "hone.packed_mlp.f32" %call ints [1, 64] ins(%x, %none, %none, %u, %none, %d, %none, %none : tensor<?x16xf32>,
      tensor<f32>, tensor<f32>, tensor<4x16x16x1xf32>, tensor<f32>, tensor<2x64x16x1xf32>, tensor<f32>, tensor<f32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%r, %y : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  return %s : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @after_sparse(
// CHECK-SAME: %[[R:[a-z0-9]*]]: tensor<?x32xf32>
// CHECK: %[[Y:.*]] = hrt.kernel "hone.sparse_linear.f32" %{{.*}} ins({{.*}}, %[[R]] :
// CHECK: return %[[Y]]
func.func @after_sparse(%call: !hrt.call, %x: tensor<?x64xf32>, %w: tensor<2x32x16x1xf32>, %i: tensor<2x2x16x4xi8>, %r: tensor<?x32xf32>,
                        %init: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %none = arith.constant dense<0.0> : tensor<f32>
  %y = hrt.kernel "hone.sparse_linear.f32" %call ints [0]
      ins(%x, %w, %i, %none, %none, %none : tensor<?x64xf32>, tensor<2x32x16x1xf32>, tensor<2x2x16x4xi8>, tensor<f32>, tensor<f32>,
      tensor<f32>) outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%r, %y : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  return %s : tensor<?x32xf32>
}

// By 2:4 weights on a GPU.
// CHECK-LABEL: func.func @after_sparse_on_gpu(
// CHECK-SAME: %[[R:[a-z0-9]*]]: tensor<?x32xf32>
// CHECK: %[[Y:.*]] = hrt.kernel "cuda.sparse_linear.bf16" %{{.*}} ins({{.*}}, %[[R]] :
// CHECK-NOT: linalg.generic
// CHECK: return %[[Y]]
func.func @after_sparse_on_gpu(%call: !hrt.call, %x: tensor<?x64xf32>, %w: tensor<32x32xbf16>, %i: tensor<32x8xi8>,
                               %r: tensor<?x32xf32>, %init: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %none = arith.constant dense<0.0> : tensor<f32>
  %y = hrt.kernel "cuda.sparse_linear.bf16" %call ints [0]
      ins(%x, %w, %i, %none, %none, %none : tensor<?x64xf32>, tensor<32x32xbf16>, tensor<32x8xi8>, tensor<f32>, tensor<f32>,
      tensor<f32>) outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%r, %y : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %b, %a : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  return %s : tensor<?x32xf32>
}

// Rows in two dimensions are the same rows.
// CHECK-LABEL: func.func @reshaped(
// CHECK-SAME: %[[R:[a-z0-9]*]]: tensor<?x?x32xf32>
// CHECK: %[[Y:.*]] = hrt.kernel {{.*}} ins({{.*}}, %[[R]] :
// CHECK: %[[Z:.*]] = tensor.reshape %[[Y]]
// CHECK: return %[[Z]]
func.func @reshaped(%call: !hrt.call, %x: tensor<?x16xf32>, %w: tensor<2x16x16x1xf32>, %r: tensor<?x?x32xf32>,
                    %init: tensor<?x32xf32>, %shape: tensor<3xindex>) -> tensor<?x?x32xf32> {
  %none = arith.constant dense<0.0> : tensor<f32>
  %y = hrt.kernel "hone.packed_linear.f32" %call ints [0]
      ins(%x, %w, %none, %none, %none : tensor<?x16xf32>, tensor<2x16x16x1xf32>, tensor<f32>, tensor<f32>, tensor<f32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %z = tensor.reshape %y(%shape) : (tensor<?x32xf32>, tensor<3xindex>) -> tensor<?x?x32xf32>
  %s = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z, %r : tensor<?x?x32xf32>, tensor<?x?x32xf32>) outs(%r : tensor<?x?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?x?x32xf32>
  return %s : tensor<?x?x32xf32>
}

// Not: the result is read twice; the other operand is broadcast; the layer has a residual; rows are cut.
// CHECK-LABEL: func.func @refused(
// CHECK-COUNT-4: linalg.generic
func.func @refused(%call: !hrt.call, %x: tensor<?x16xf32>, %w: tensor<2x16x16x1xf32>, %r: tensor<?x32xf32>,
                   %v: tensor<32xf32>, %half: tensor<?x16xf32>, %init: tensor<?x32xf32>, %shape: tensor<2xindex>)
    -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x16xf32>) {
  %none = arith.constant dense<0.0> : tensor<f32>
  %y = hrt.kernel "hone.packed_linear.f32" %call ints [0]
      ins(%x, %w, %none, %none, %none : tensor<?x16xf32>, tensor<2x16x16x1xf32>, tensor<f32>, tensor<f32>, tensor<f32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %twice = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%y, %y : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  %y2 = hrt.kernel "hone.packed_linear.f32" %call ints [0]
      ins(%x, %w, %none, %none, %none : tensor<?x16xf32>, tensor<2x16x16x1xf32>, tensor<f32>, tensor<f32>, tensor<f32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %broadcast = linalg.generic {indexing_maps = [#same, #vector, #same], iterator_types = ["parallel", "parallel"]}
      ins(%y2, %v : tensor<?x32xf32>, tensor<32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  %y3 = hrt.kernel "hone.packed_linear.f32" %call ints [0]
      ins(%x, %w, %none, %none, %r : tensor<?x16xf32>, tensor<2x16x16x1xf32>, tensor<f32>, tensor<f32>, tensor<?x32xf32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %second = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%y3, %r : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  %y4 = hrt.kernel "hone.packed_linear.f32" %call ints [0]
      ins(%x, %w, %none, %none, %none : tensor<?x16xf32>, tensor<2x16x16x1xf32>, tensor<f32>, tensor<f32>, tensor<f32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %cut = tensor.reshape %y4(%shape) : (tensor<?x32xf32>, tensor<2xindex>) -> tensor<?x16xf32>
  %fourth = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%cut, %half : tensor<?x16xf32>, tensor<?x16xf32>) outs(%half : tensor<?x16xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?x16xf32>
  return %twice, %broadcast, %second, %fourth : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x16xf32>
}

// What no layer adds, the norm on a GPU does, and writes the sum for those that read it later.
// CHECK-LABEL: func.func @normed(
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<?x32xf32>, %[[B:[a-z0-9]*]]: tensor<?x32xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[Y:.*]]:2 = hrt.kernel "cuda.add_rms_norm.f32" %{{.*}} ints [1] floats [1.000000e-05] ins(%[[A]], %[[B]], %{{.*}} : {{.*}}) outs(%{{.*}}, %{{.*}} : {{.*}}) -> tensor<?x32xf32>, tensor<?x32xf32>
// CHECK: %[[Z:.*]] = math.absf %[[Y]]#0
// CHECK: return %[[Y]]#1, %[[Z]]
func.func @normed(%call: !hrt.call, %a: tensor<?x32xf32>, %b: tensor<?x32xf32>, %w: tensor<32xf32>,
                  %init: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %s = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %c = arith.addf %p, %q : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  %y = hrt.kernel "cuda.rms_norm.f32" %call ints [1] floats [1.0e-5] ins(%s, %w : tensor<?x32xf32>, tensor<32xf32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %z = math.absf %s : tensor<?x32xf32>
  return %y, %z : tensor<?x32xf32>, tensor<?x32xf32>
}

// Not where the sum is read before the norm, nor by the norms of the CPU.
// CHECK-LABEL: func.func @not_normed(
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: add_
func.func @not_normed(%call: !hrt.call, %a: tensor<?x32xf32>, %b: tensor<?x32xf32>, %w: tensor<32xf32>,
                      %init: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %s = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %c = arith.addf %p, %q : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  %early = math.absf %s : tensor<?x32xf32>
  %y = hrt.kernel "cuda.rms_norm.f32" %call ints [1] floats [1.0e-5] ins(%s, %w : tensor<?x32xf32>, tensor<32xf32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %t = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%early, %y : tensor<?x32xf32>, tensor<?x32xf32>) outs(%init : tensor<?x32xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %c = arith.addf %p, %q : f32
    linalg.yield %c : f32
  } -> tensor<?x32xf32>
  %z = hrt.kernel "hone.rms_norm.f32" %call ints [0] floats [1.0e-5] ins(%t, %w : tensor<?x32xf32>, tensor<32xf32>)
      outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y, %z : tensor<?x32xf32>, tensor<?x32xf32>
}

// Sizes of a convolution's result may all be open.
// CHECK-LABEL: func.func @convolved(
// CHECK: hrt.kernel "hone.packed_convolution.f32" {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}}, %arg3 :
// CHECK-NOT: linalg.generic
func.func @convolved(%call: !hrt.call, %x: tensor<?x3x?xf32>, %w: tensor<1x3x16x1xf32>, %r: tensor<?x16x?xf32>, %out: tensor<?x16x?xf32>) -> tensor<?x16x?xf32> {
  %absent = tensor.empty() : tensor<f32>
  %0 = hrt.kernel "hone.packed_convolution.f32" %call ints [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0] floats [1.0, 0.0, -3.0e+38, 3.0e+38]
      ins(%x, %w, %absent, %absent : tensor<?x3x?xf32>, tensor<1x3x16x1xf32>, tensor<f32>, tensor<f32>) outs(%out : tensor<?x16x?xf32>) -> tensor<?x16x?xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
                                        affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %r : tensor<?x16x?xf32>, tensor<?x16x?xf32>) outs(%out : tensor<?x16x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x16x?xf32>
  return %1 : tensor<?x16x?xf32>
}
