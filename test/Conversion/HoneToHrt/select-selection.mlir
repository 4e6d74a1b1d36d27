// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cpu --canonicalize --split-input-file | FileCheck %s --enable-var-scope --check-prefixes=CHECK,CPU
// RUN: hone-opt %s --hone-convert-hone-to-hrt=target=cuda --canonicalize --split-input-file | FileCheck %s --enable-var-scope --check-prefixes=CHECK,CUDA

// CHECK-LABEL: @select
// CPU: hrt.kernel "hone.select_blocks.f32" %{{.*}} ints [64] floats [1.250000e-01]
// CUDA: hrt.kernel "cuda.select_blocks.f32" %{{.*}} ints [64] floats [1.250000e-01]
// CHECK-SAME: outs(%{{.*}} : tensor<?x2x?x16xi64>)
func.func @select(%q: tensor<?x14x?x64xf32>, %pooled: tensor<?x2x?x1xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>)
    -> tensor<?x2x?x16xi64> {
  %0 = hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
     : (tensor<?x14x?x64xf32>, tensor<?x2x?x1xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x16xi64>
  return %0 : tensor<?x2x?x16xi64>
}

// -----

// The CPU's kernel reads no 16 bits.
// CHECK-LABEL: @half
// CPU-NOT: hrt.kernel
// CUDA: hrt.kernel "cuda.select_blocks.f32"
func.func @half(%q: tensor<?x2x?x64xf16>, %pooled: tensor<?x2x?x1xf32>, %begin: tensor<?x?xi64>, %end: tensor<?x?xi64>) -> tensor<?x2x?x3xi64> {
  %0 = hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
     : (tensor<?x2x?x64xf16>, tensor<?x2x?x1xf32>, tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x2x?x3xi64>
  return %0 : tensor<?x2x?x3xi64>
}

// -----

// Heads of more elements than a GPU's kernel has room for.
// CHECK-LABEL: @wide
// CPU: hrt.kernel "hone.select_blocks.f32"
// CUDA-NOT: hrt.kernel
func.func @wide(%q: tensor<?x2x?x513xf32>, %pooled: tensor<?x2x?x9xf32>, %begin: tensor<?x?xi64>, %end: tensor<?x?xi64>) -> tensor<?x2x?x3xi64> {
  %0 = hone.select_blocks %q, %pooled from %begin to %end size(64) scale(0.125)
     : (tensor<?x2x?x513xf32>, tensor<?x2x?x9xf32>, tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x2x?x3xi64>
  return %0 : tensor<?x2x?x3xi64>
}

// -----

// Keys in rows are pooled by generated code on the CPU.
// CHECK-LABEL: @pool
// CPU-NOT: hrt.kernel
// CUDA: hrt.kernel "cuda.pool_keys.f32" %{{.*}} ints [64] ins(%{{.*}}, %{{.*}} : tensor<?x2x?x128xbf16>, tensor<?xi64>) outs(%{{.*}} : tensor<?x2x?x2xf32>)
func.func @pool(%k: tensor<?x2x?x128xbf16>, %begin: tensor<?xi64>) -> tensor<?x2x?x2xf32> {
  %two = arith.constant 2 : index
  %fresh = tensor.dim %k, %two : tensor<?x2x?x128xbf16>
  %0 = hone.pool_keys %k of %fresh key_begin(%begin) size(64) : (tensor<?x2x?x128xbf16>, index, tensor<?xi64>) -> tensor<?x2x?x2xf32>
  return %0 : tensor<?x2x?x2xf32>
}

// -----

// No kernel reads positions of 32 bits.
// CHECK-LABEL: @narrow
// CHECK-NOT: hrt.kernel
func.func @narrow(%k: tensor<?x2x?x128xf32>, %begin: tensor<?xi32>) -> tensor<?x2x?x2xf32> {
  %two = arith.constant 2 : index
  %fresh = tensor.dim %k, %two : tensor<?x2x?x128xf32>
  %0 = hone.pool_keys %k of %fresh key_begin(%begin) size(64) : (tensor<?x2x?x128xf32>, index, tensor<?xi32>) -> tensor<?x2x?x2xf32>
  return %0 : tensor<?x2x?x2xf32>
}

// -----

// CHECK-LABEL: @bounds
// CPU: hrt.kernel "hone.select_blocks.bounds.f32" %{{.*}} ints [64] floats [1.250000e-01]
// CUDA-NOT: hrt.kernel
func.func @bounds(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) -> tensor<?x2x?x3xi64> {
  %two = arith.constant 2 : index
  %fresh = tensor.dim %k, %two : tensor<?x2x?x64xf32>
  %0 = hone.pool_keys %k of %fresh size(64) bounds : (tensor<?x2x?x64xf32>, index) -> tensor<?x2x?x2xf32>
  %1 = hone.select_blocks %q, %0 from %begin to %end size(64) scale(0.125) bounds
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x2xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x3xi64>
  return %1 : tensor<?x2x?x3xi64>
}

// -----

// CHECK-LABEL: @antidiagonals
// CPU: hrt.kernel "hone.select_antidiagonals.f32" %{{.*}} ints [64, 64, 16] floats [1.250000e-01, 5.000000e-01]
// CUDA-NOT: hrt.kernel
func.func @antidiagonals(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) -> tensor<?x2x?x?xi64> {
  %0 = hone.select_antidiagonals %q, %k from %begin to %end size(64) queries(64) stride(16) scale(0.125) share(0.5)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x?xi64>
  return %0 : tensor<?x2x?x?xi64>
}

// -----

// CHECK-LABEL: @means
// CPU: hrt.kernel "hone.select_means.f32" %{{.*}} ints [64, 128] floats [1.250000e-01]
// CUDA-NOT: hrt.kernel
func.func @means(%q: tensor<?x4x?x64xf32>, %k: tensor<?x2x?x64xf32>, %t: tensor<1x3xf32>, %begin: tensor<1x?xi64>, %end: tensor<1x?xi64>) -> tensor<?x2x?x?xi64> {
  %0 = hone.select_means %q, %k by %t from %begin to %end size(64) queries(128) scale(0.125)
     : (tensor<?x4x?x64xf32>, tensor<?x2x?x64xf32>, tensor<1x3xf32>, tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<?x2x?x?xi64>
  return %0 : tensor<?x2x?x?xi64>
}
